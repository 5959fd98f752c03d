"""Nanoseconds per kernel value, one thread: the data type decides the kernel.

- Integer and binary forms against the float32 product of the same rows (RBF, the exponential included):
  256 rows against all. uint8 and int16 mnist must be 3× as fast, binary a9a and connect4 4×.
- The same forms on a machine with less (AVX2 only) and their float64 scores, for information.
- Sparse blocks of 128 rows against SciPy's ``(A @ B.T).toarray()``, linear kernel: 2× as fast.

Both sides take turns; the best of ``--repeats`` counts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from multimargin import _core
from multimargin.engines.cpu.layouts import Layout
from multimargin.kernels import RBF, Linear

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.data import FOLDER
from benchmarks.lib.report import Report, Table, options

ROWS = 256
SPARSE_ROWS = 128


@dataclass(frozen=True)
class Case:
    name: str
    X: Any
    gamma: float
    bar: float | None  # times the float32 product


def stored(name: str) -> Any:
    """The training rows as they are stored, or None if the file is missing."""
    path = FOLDER / f"{name}.npz"
    if not path.is_file():
        print(f"skipped: no {path.name} in {FOLDER} (set MULTIMARGIN_DATA to the folder that has it)")
        return None
    data = np.load(path)
    if "X_train" in data:
        return data["X_train"]
    parts = (data[f"X_train_{part}"] for part in ("data", "indices", "indptr"))
    return sp.csr_array(tuple(parts), shape=tuple(data["X_train_shape"]))


def dense_cases() -> Iterator[Case]:
    if (X := stored("mnist")) is not None:
        X = X[:10000]
        yield Case("mnist uint8", X, 2**-5 / 255**2, 3.0)
        yield Case("mnist int16", X.astype(np.int16), 2**-5 / 255**2, 3.0)
        yield Case("mnist float32 / 255", (X / 255).astype(np.float32), 2**-5, 3.0)
        yield Case("mnist as CSR", sp.csr_array(X), 2**-5 / 255**2, 3.0)
    if (X := stored("a9a")) is not None:
        yield Case("a9a CSR", X, 0.05, 4.0)
        yield Case("a9a bool", X.toarray() != 0, 0.05, 4.0)
    if (X := stored("connect4")) is not None:
        yield Case("connect4 CSR", X[:20000], 2**-4, 4.0)
    for name, scale, gamma in (("usps", 1e-3, 1 / 128), ("isolet", 1e-4, 2**-6), ("letter", 1 / 15, 4.0)):
        if (X := stored(name)) is not None:
            yield Case(f"{name} float64", X * scale, gamma, None)
    if (X := stored("shuttle")) is not None:
        yield Case("shuttle int16", X[:20000], 2**-9, None)


def best(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The shortest time of each, taken in turns."""
    seconds = dict.fromkeys(calls, np.inf)
    for _ in range(repeats):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            seconds[name] = min(seconds[name], time.perf_counter() - begin)
    return seconds


def rows_of(samples: _core.Samples, spec: _core.KernelSpec, rows: int, dtype: type) -> Callable[[], None]:
    ids = np.sort(np.random.default_rng(0).permutation(samples.n)[:rows])
    out, at = np.zeros((len(ids), samples.n), dtype=dtype), np.arange(len(ids))
    return lambda: _core.kernel_block(spec, samples, ids, samples, 0, samples.n, out, at, 1)


def scores_of(samples: _core.Samples, spec: _core.KernelSpec, rows: int = ROWS) -> Callable[[], None]:
    rng = np.random.default_rng(0)
    sv = samples.take(rng.permutation(samples.n)[:rows])
    coef = np.where(rng.random((sv.n, 10)) < 0.3, rng.normal(size=(sv.n, 10)), 0.0)
    out = np.empty((samples.n, 10))
    return lambda: _core.kernel_scores(spec, sv, coef, samples, 0, samples.n, out, 1)


def compare_dense(case: Case, repeats: int) -> tuple[str, dict[str, float]]:
    """The form chosen, and nanoseconds per value of everything that is compared."""
    X = case.X.astype(np.uint8) if case.X.dtype == np.bool_ else case.X
    layout = Layout.plan(RBF(case.gamma), X, "auto")
    spec, samples = layout.spec(0.0), layout.samples(X)
    plain = _core.dense_product(np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float32))
    calls = {
        "product": rows_of(plain, spec, ROWS, np.float32),
        "float32": rows_of(samples, spec, ROWS, np.float32),
        "float64": rows_of(samples, spec, ROWS, np.float64),
        "scores": scores_of(samples, spec),
    }
    if layout.form == "integer" and _core.integer_simd() == "vnni":
        _core.set_integer_simd("avx2")
        calls["avx2"] = rows_of(layout.samples(X), spec, ROWS, np.float32)
        _core.set_integer_simd("best")
    values = ROWS * samples.n
    return layout.describe(), {name: s / values * 1e9 for name, s in best(calls, repeats).items()}


def sparse_cases() -> Iterator[tuple[str, Any]]:
    for name in ("news20_libsvm_train", "sector_scale", "a9a", "mnist"):
        if (X := stored(name)) is not None:
            X = sp.csr_array(X[:10000]).astype(np.float32)
            yield f"{name} as float32", X
            rough = X.copy()  # no integers times one scale: stays sparse
            rough.data *= np.random.default_rng(0).uniform(0.5, 1.5, size=rough.nnz).astype(np.float32)
            yield f"{name} off the grid", rough


def compare_sparse(X: Any, repeats: int) -> tuple[str, dict[str, float]]:
    layout = Layout.plan(Linear(), X, "auto")
    ids = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:SPARSE_ROWS])
    A = X[ids]
    calls = {
        "scipy": lambda: (A @ X.T).toarray(),
        "native": rows_of(layout.samples(X), layout.spec(0.0), SPARSE_ROWS, np.float32),
    }
    values = SPARSE_ROWS * X.shape[0]
    return layout.describe(), {name: s / values * 1e9 for name, s in best(calls, repeats).items()}


def main() -> int:
    args = options(__doc__, repeats=5).parse_args()
    report = Report("kernel_rows", args, words=("PASS", "MISS"))
    print(f"nanoseconds a kernel value, one thread, {_core.integer_simd()}\n")
    table = Table(
        ("data", "form", "float32 product", "float32", "float64", "scores", "avx2", "times faster"),
        (20, 16, 15, 8, 8, 8, 8, 12),
    )
    claims = []
    with threadpool_limits(1):
        for case in dense_cases():
            form, ns = compare_dense(case, args.repeats)
            ratio = ns["product"] / ns["float32"]
            cells = [
                f"{ns[key]:.2f}" if key in ns else ""
                for key in ("product", "float32", "float64", "scores", "avx2")
            ]
            table.row(case.name, form, *cells, f"{ratio:.1f}")
            report.keep("rows", {"data": case.name, "form": form} | ns)
            if case.bar is not None:
                claims.append(
                    (f"{case.name}: {case.bar:g}× the float32 product", ratio >= case.bar, f"{ratio:.1f}×")
                )
        print()
        table = Table(("sparse data", "form", "SciPy", "native", "times faster"), (34, 16, 8, 8, 12))
        for name, X in sparse_cases():
            form, ns = compare_sparse(X, args.repeats)
            ratio = ns["scipy"] / ns["native"]
            table.row(name, form, f"{ns['scipy']:.2f}", f"{ns['native']:.2f}", f"{ratio:.1f}")
            report.keep("sparse", {"data": name, "form": form} | ns)
            claims.append((f"{name}: 2× SciPy's product", ratio >= 2, f"{ratio:.1f}×"))
    print()
    for claim in claims:
        report.claim(*claim)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
