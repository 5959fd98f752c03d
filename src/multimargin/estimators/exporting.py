"""Models for other programs: ``export`` of an estimator."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ..files.libsvm_model import write_libsvm
from ..files.machine import TrainedMachine
from ..files.onnx_model import write_onnx
from ..kernels import Linear
from ..selection.calibration import Temperature
from .validation import check_choice

_BY_SUFFIX = {".onnx": "onnx", ".model": "libsvm", ".libsvm": "libsvm"}


class ExportedModel:
    """Gives an estimator ``export``."""

    def export(self, path: str | os.PathLike[str], format: str = "auto", *, scaling: Any = None) -> None:
        """Write the fitted model in the format of another program.

        Parameters
        ----------
        path : path
            The file; an older one is replaced.
        format : {"auto", "libsvm", "onnx"}, default="auto"
            "libsvm" is the text that LIBSVM's ``svm-predict`` reads, for kernel machines with two classes
            whose labels are whole numbers. "onnx" is a graph of plain operators with the outputs ``label``
            and ``scores``, and ``probabilities`` for a search with ``calibration="temperature"``; it needs
            ``multimargin[onnx]``.
            "auto" goes by the end of the name: ``.onnx``, or ``.model`` and ``.libsvm``.
        scaling : Scaling or None, default=None
            What the training data were scaled by; the graph of ONNX then scales its input too. LIBSVM's text
            has no place for it.

        Examples
        --------
        >>> import os, tempfile
        >>> from pathlib import Path
        >>> from multimargin import KernelSVC
        >>> path = os.path.join(tempfile.mkdtemp(), "up.model")
        >>> KernelSVC("c-svc", kernel="linear").fit([[0.0], [1.0]], [-1, 1]).export(path)
        >>> Path(path).read_text().splitlines()[:4]
        ['svm_type c_svc', 'kernel_type linear', 'nr_class 2', 'total_sv 2']
        """
        if format == "auto":
            suffix = os.path.splitext(os.fspath(path))[1].lower()
            if suffix not in _BY_SUFFIX:
                raise ValueError(
                    f"The name {os.fspath(path)!r} does not say which format to write: end it with .onnx or "
                    ".model, or give format='onnx' or format='libsvm'."
                )
            format = _BY_SUFFIX[suffix]
        check_choice("format", format, ("libsvm", "onnx"))
        machine = trained_machine(self)
        if format == "onnx":
            write_onnx(path, machine, scaling)
        elif scaling is not None:
            raise ValueError(
                "LIBSVM's model file has no place for a scaling. Scale the data first and train with "
                "these, or use format='onnx'."
            )
        else:
            write_libsvm(path, machine)


def trained_machine(model: Any) -> TrainedMachine:
    """What an estimator is to other programs."""
    check_is_fitted(model)
    best = model._best() if hasattr(model, "_best") else model
    calibrator = getattr(model, "calibrator_", None)
    temperature = calibrator.temperature if isinstance(calibrator, Temperature) else None
    if not hasattr(best, "_kernel"):
        return _linear_machine(best, temperature)
    best._check_has_model()
    coef = best.dual_coef_
    coef = coef[:, 1:] - coef[:, :1] if coef.shape[1] == 2 else coef
    owners = best._labels[np.searchsorted(best._kept, best.support_)]
    return TrainedMachine(
        best._kernel,
        best._support,
        coef,
        best.intercept_,
        best.classes_,
        best.n_features_in_,
        owners,
        temperature,
        getattr(best._support, "dtype", None) == np.float32,
    )


def _linear_machine(model: Any, temperature: float | None) -> TrainedMachine:
    """A machine that has weights instead of support vectors."""
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
    known = model.intercept_, model.classes_, model.n_features_in_
    return TrainedMachine(Linear(), None, coef.T, *known, temperature=temperature)
