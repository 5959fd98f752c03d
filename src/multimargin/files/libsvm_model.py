"""A machine of two classes as the text that LIBSVM's ``svm-predict`` reads.

LIBSVM scores by Σ_i coef_i K(x_i, x) - rho, and a positive score is its first label. So the second class
comes first here. The numbers are written with 17 digits, which give the same float64 back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from ..kernels import RBF, Kernel, Linear, Polynomial, Precomputed, Sigmoid
from ..system.arithmetic import as_float64
from ..system.atomic import prepare, replacing
from .machine import TrainedMachine


def write_libsvm(path: str | os.PathLike[str], machine: TrainedMachine) -> None:
    """Write the text; ``ValueError`` if LIBSVM has no such machine."""
    classes = machine.classes
    if len(classes) != 2 or machine.owners is None:
        raise ValueError(
            f"LIBSVM's model file is for kernel machines with two classes, and this one has {len(classes)} "
            "classes: LIBSVM trains one machine per pair of classes instead. Use format='onnx'."
        )
    if classes.dtype.kind not in "iub":
        raise ValueError(
            f"LIBSVM's labels are whole numbers, and these are {classes.tolist()}. Train with 0 and 1 "
            "instead, or use format='onnx'."
        )
    kernel = _kernel_lines(machine.kernel)
    order = np.argsort(-machine.owners.astype(np.int64), kind="stable")  # the second class first
    counts = np.bincount(machine.owners, minlength=2)
    head = [
        "svm_type c_svc",
        *kernel,
        "nr_class 2",
        f"total_sv {len(order)}",
        f"rho {-machine.intercept[0]:.17g}",
        f"label {int(classes[1])} {int(classes[0])}",
        f"nr_sv {counts[1]} {counts[0]}",
        "SV",
    ]
    target = Path(path)
    prepare(target, "model file")
    with replacing(target) as file:
        file.write(("\n".join(head) + "\n").encode())
        for row, coef in zip(_rows(machine, order), machine.coef[order, 0], strict=True):
            file.write(f"{coef:.17g} {row}\n".encode())


def _kernel_lines(kernel: Kernel) -> list[str]:
    """The kernel in LIBSVM's words."""
    if isinstance(kernel, Polynomial) and not kernel.normalize:
        parameters = [f"degree {kernel.degree}", f"gamma {kernel.gamma:.17g}", f"coef0 {kernel.coef0:.17g}"]
        return ["kernel_type polynomial", *parameters]
    if isinstance(kernel, Sigmoid):
        return ["kernel_type sigmoid", f"gamma {kernel.gamma:.17g}", f"coef0 {kernel.coef0:.17g}"]
    if isinstance(kernel, RBF):
        return ["kernel_type rbf", f"gamma {kernel.gamma:.17g}"]
    if isinstance(kernel, Linear):
        return ["kernel_type linear"]
    if isinstance(kernel, Precomputed):
        return ["kernel_type precomputed"]
    raise ValueError(
        f"LIBSVM does not have the kernel {kernel!r}: it has linear, poly, rbf, sigmoid and precomputed."
    )


def _rows(machine: TrainedMachine, order: np.ndarray) -> Iterator[str]:
    """The support vectors in LIBSVM's form; of kernel values their number, from 1."""
    if machine.kernel.pairwise:
        yield from (f"0:{number + 1}" for number in machine.support[order])
        return
    rows = sp.csr_array(as_float64(machine.support[order]))
    for k in range(rows.shape[0]):
        part = slice(rows.indptr[k], rows.indptr[k + 1])
        pairs = zip((rows.indices[part] + 1).tolist(), rows.data[part].tolist(), strict=True)
        yield " ".join(f"{column}:{value:.17g}" for column, value in pairs)
