"""Write models-0.1.0.pkl.xz: models that version 0.1.0 fitted, and what it answered with them.

Run it with the Python of an environment that has 0.1.0 (commit 1067630) installed:

    python tests/reference/make_models.py

The file is a compressed pickle of a dict of cases. Each has the pickled model, a few rows, and the answers of
0.1.0: decision values and labels of those rows; of a kernel machine the label distributions of some training
rows and its suspects; of a linear machine the decision values after one more batch.
``tests/estimators/test_stored_models.py`` asks the current version for the same.
"""

# ruff: noqa: I001  (modules of 0.1.0 that have moved since)
import lzma
import pickle
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits, load_iris

from multimargin import Decomposition, KernelSVC, LinearSVC
from multimargin.box_interior_point import BoxInteriorPoint
from multimargin.frank_wolfe import FrankWolfe
from multimargin.inner import CoordinateDescent, ProjectedGradient
from multimargin.kernels import Laplacian, Polynomial, Sigmoid
from multimargin.methods import METHODS
from multimargin.smo import PairDescent
from multimargin.working_set import Cyclic, Growing, Random

OUT = Path(__file__).with_name("models-0.1.0.pkl.xz")

iris, names = load_iris(return_X_y=True)
order = np.random.default_rng(0).permutation(len(iris))
iris, kinds = iris[order][:40], load_iris().target_names[names[order][:40]].astype(str)
codes = names[order][:40]
two, signs = iris[codes > 0], codes[codes > 0]
digits, figures = (part[:40] for part in load_digits(return_X_y=True))
gaussian = np.exp(-0.2 * ((iris[:, None] - iris[None]) ** 2).sum(axis=2))

MACHINES = ("crammer-singer", "weston-watkins", "lee-lin-wahba", "msvm2", "one-vs-rest")


def kernel_cases():
    """(name, model, training rows, labels, weights, rows to predict)."""
    weights = np.linspace(0.0, 2.0, len(iris))
    for machine in MACHINES:
        for bias in ("none", "regularized", "free"):
            yield f"{machine}, {bias}", KernelSVC(machine, bias=bias, gamma=0.2), iris, kinds, None, iris[:4]
    yield "c-svc", KernelSVC("c-svc", bias="free", gamma=0.2), two, signs, None, two[:4]
    yield "c-svc, no bias", KernelSVC("c-svc", bias="none", gamma=0.2), two, signs, None, two[:4]
    yield "two classes", KernelSVC(gamma=0.2), two, signs, None, two[:4]
    yield "weights", KernelSVC(gamma="scale", class_weight="balanced"), iris, kinds, weights, iris[:4]
    kernels = {
        "linear": "linear",
        "poly normalised": Polynomial(degree=2, gamma=0.1, coef0=1.0, normalize=True),
        "laplacian": Laplacian(gamma=0.1),
        "sigmoid": Sigmoid(gamma=0.01, coef0=0.1),
    }
    for name, kernel in kernels.items():
        yield name, KernelSVC(kernel=kernel, C=0.5), iris, kinds, None, iris[:4]
    yield "precomputed", KernelSVC(kernel="precomputed"), gaussian, kinds, None, gaussian[:4]
    rows = sparse.csr_array(digits / 16.0)
    yield "sparse", KernelSVC(gamma=0.05), rows, figures, None, rows[:4]
    yield "bytes", KernelSVC(gamma=0.001), digits.astype(np.uint8), figures, None, digits[:4]
    yield "numpy engine", KernelSVC(gamma=0.2, engine="numpy"), iris, kinds, None, iris[:4]
    for name, solver in solvers():
        binary = name in ("vpdt", "svm-light", "box-interior-point", "pairs")
        machine, bias = ("c-svc", "none") if binary else ("weston-watkins", "none")
        machine = "crammer-singer" if name in ("auto", "ell-based", "mcsvm") else machine
        bias = "free" if name == "balanced" else bias
        X, y = (two, signs) if binary else (iris, kinds)
        model = KernelSVC(machine, gamma=0.2, bias=bias, solver=solver, tol=0.05, random_state=0)
        yield f"solver {name}", model, X, y, None, X[:4]


def linear_cases():
    """(name, fitted model, its rows, labels)."""
    rows, options = sparse.csr_array(digits / 16.0), {"max_iter": -1, "random_state": 0}
    for keep in (False, True):
        yield (
            f"linear, keep_dual={keep}",
            LinearSVC(keep_dual=keep, **options).fit(rows, figures),
            rows,
            figures,
        )
        stream = LinearSVC(keep_dual=keep, **options)
        for part in (slice(0, 30), slice(30, None)):
            stream.partial_fit(iris[part], kinds[part], classes=np.unique(kinds))
        yield f"stream, keep_dual={keep}", stream, iris, kinds
    plain = LinearSVC(C=0.1, fit_intercept=False, tol=0.1, **options)
    yield "linear, two classes", plain.fit(two, signs), two, signs


def solvers():
    """Decompositions whose classes cover every rule and inner solver."""
    yield from METHODS.items()
    yield "cyclic", Decomposition(Cyclic(q=5), CoordinateDescent("sort"))
    yield "projected", Decomposition(Growing(), ProjectedGradient())
    yield "balanced", Decomposition(Random(q=20), FrankWolfe(balanced=True), stop="gap")
    yield "box-interior-point", Decomposition(Growing(), BoxInteriorPoint())
    yield "pairs", Decomposition(Growing(), PairDescent())


def answers(model, rows):
    if hasattr(model, "trace_"):  # its last two rows: long traces would be most of the file
        model.trace_._rows = model.trace_._rows[: len(model.trace_)][-2:].copy()
        model.trace_._n = len(model.trace_._rows)
    found = {"model": pickle.dumps(model, protocol=4), "rows": rows}
    found |= {"decision": model.decision_function(rows), "labels": model.predict(rows)}
    if isinstance(model, KernelSVC):
        asked = np.unique([model._kept[0], *model.support_[:2], model._kept[-1]])
        found |= {
            "asked": asked,
            "distribution": model.label_distribution(asked),
            "suspects": model.suspects(5),
        }
    return found


def main():
    cases = {}
    for name, model, X, y, weights, rows in kernel_cases():
        cases[name] = answers(model.fit(X, y, sample_weight=weights), rows)
    for name, model, X, y in linear_cases():
        cases[name] = answers(model, X[:4])
        cases[name] |= {
            "batch": (X[-9:], y[-9:]),
            "after": model.partial_fit(X[-9:], y[-9:]).decision_function(X[:4]),
        }
    OUT.write_bytes(lzma.compress(pickle.dumps(cases, protocol=4)))
    print(f"{OUT.name}: {len(cases)} models, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    warnings.simplefilter("error")
    main()
