"""The thousand fits of `make torture`: each is made from its number alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lying
import numpy as np
from samples import Rows, hard_rows, pick

from multimargin import Decomposition, KernelSVC, LinearSVC, kernels
from multimargin.inner import CoordinateDescent, FrankWolfe, InteriorPoint, PairDescent, ProjectedGradient
from multimargin.working_set import Cyclic, Gain, Growing, MaxViolator, Practical, Random, SvmLight

MOST = 1000  # cases
COSTS = (1.0,) * 8 + (0.01, 0.1, 10.0, 100.0, 1e3) + (1e-300, 1e-100, 1e-9, 1e6, 1e9, 1e15, 1e100, 1e300)
GAMMAS = ("scale",) * 6 + ("auto", 1e-300, 1e-9, 1e-3, 1.0, 1e3, 1e9, 1e300)
DEGREES = (0, 1, 2, 2, 3, 3, 3, 4, 5) * 2 + (10, 100, 1000, 10**6, 2**31 - 1, 2**31)
CONSTANTS = (0.0, 1.0, 1.0, -1.0, 1e9, -1e9, 1e300, 1e-300)
TOLERANCES = (1e-3,) * 8 + (0.5, 0.1, 1e-6, 1e-9, 10.0)
LIMITS = (1e-9, 0.02, 0.5, 1.0, 1.0, 1.0)  # seconds
UNLIMITED = 150  # rows that "auto" may fit without a limit: then small problems are solved at once
MACHINES = ("crammer-singer", "weston-watkins", "lee-lin-wahba", "msvm2", "one-vs-rest", "c-svc")
BIASES = ("auto", "auto", "none", "regularized", "free")
ALL_BUT_CONE = ("crammer-singer", "weston-watkins", "lee-lin-wahba", "one-vs-rest")
MULTICLASS = (*ALL_BUT_CONE, "msvm2")

# Methods with the machines that they are for.
SOLVERS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "auto": ("auto", MACHINES),
    "mcsvm": ("mcsvm", ("crammer-singer",)),
    "ell-based": ("ell-based", ("crammer-singer",)),
    "dasmc": ("dasmc", MULTICLASS),
    "msvmpack": ("msvmpack", ALL_BUT_CONE),
    "vpdt": ("vpdt", ("c-svc",)),
    "svm-light": ("svm-light", ("c-svc",)),
    "cyclic, sort": (Decomposition(Cyclic(5), CoordinateDescent("sort")), MULTICLASS),
    "growing, projected gradient": (Decomposition(Growing(start=4), ProjectedGradient()), MULTICLASS),
    "random, pivot": (Decomposition(Random(8), CoordinateDescent("pivot")), ("crammer-singer",)),
    "gain, smo": (Decomposition(Gain(6), CoordinateDescent("smo")), ("crammer-singer",)),
    "practical, bisection": (
        Decomposition(Practical(20, 10), CoordinateDescent("bisection")),
        ("crammer-singer",),
    ),
    "largest violation, frank-wolfe": (Decomposition(MaxViolator(5), FrankWolfe()), ALL_BUT_CONE),
    "growing, interior point": (
        Decomposition(Growing(), InteriorPoint()),
        ("crammer-singer",),
    ),
    "svm-light, second order": (
        Decomposition(SvmLight(12, 4, select="second-order"), PairDescent()),
        ("c-svc",),
    ),
}


@dataclass(frozen=True)
class Case:
    """One fit: an estimator, its parameters, and training data."""

    number: int
    model: str  # "KernelSVC" or "LinearSVC"
    params: dict[str, Any]
    rows: Rows
    solver: str = "auto"  # key of SOLVERS
    lie: str | None = None  # key of FUNCTIONS or MATRICES of ``lying``

    def estimator(self):
        """The estimator, not fitted."""
        return (KernelSVC if self.model == "KernelSVC" else LinearSVC)(**self.params)

    @property
    def limit(self):
        """Seconds that the fit may take; None if it was not told."""
        return self.params.get("time_limit")

    @property
    def facts(self):
        """What the case is an example of, for the table of all cases."""
        if self.model == "LinearSVC":
            loss = self.params["loss"].replace("_", " ")
            return {"model": f"LinearSVC {self.params['machine']}, {loss}"}
        kernel = self.params["kernel"]
        name = kernel if isinstance(kernel, str) else type(kernel).__name__
        return {
            "model": f"KernelSVC {self.params['machine']}",
            "kernel": "a function" if isinstance(kernel, lying.Lie) else name,
            "bias": self.params["bias"],
            "solver": self.solver,
            "engine": self.params["engine"],
        }

    def __str__(self):
        said = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        return f"case {self.number}: {'; '.join(self.rows.told)}; {self.model}({said})"


def case(number):
    """The case of that number."""
    rng = np.random.default_rng([number, 22])
    rows = hard_rows(rng)
    make = _linear if rng.random() < 0.2 else _kernel
    return make(number, rng, rows)


def _shared(rng, y):
    """Parameters of both estimators."""
    y = y if isinstance(y, list) else y.tolist()
    labels = sorted(set(y))
    some = {labels[0]: float(pick(rng, (1e-8, 0.5, 1e8)))}
    return {
        "C": pick(rng, COSTS),
        "tol": pick(rng, TOLERANCES),
        "time_limit": None if len(y) <= UNLIMITED and rng.random() < 0.5 else pick(rng, LIMITS),
        "class_weight": pick(rng, (None, None, None, None, "balanced", some)),
        "shrinking": bool(rng.random() < 0.8),
        "n_threads": int(pick(rng, (1, 1, 1, 2))),
        "dtype": pick(rng, ("auto", "auto", "float32", "float64")),
        "random_state": int(rng.integers(1000)),
    }


def _linear(number, rng, rows):
    loss = pick(rng, ("hinge", "hinge", "hinge", "squared_hinge"))
    machine = (
        "one-vs-rest"
        if loss == "squared_hinge"
        else pick(rng, ("crammer-singer", "weston-watkins", "one-vs-rest"))
    )
    exact = ("auto", "auto", "sort")
    if machine == "crammer-singer":
        exact = (*exact, "pivot", "bisection", "fixed-point", "smo", "frank-wolfe")
    elif loss == "hinge":
        exact = (*exact, "frank-wolfe")
    params = {
        "machine": machine,
        "loss": loss,
        "subproblem": pick(rng, exact),
        "fit_intercept": bool(rng.random() < 0.7),
        "intercept_scaling": float(pick(rng, (1.0, 1.0, 1e-9, 1e4, 1e150))),
        "gap_tol": pick(rng, (None, None, None, 0.1)),
        **_shared(rng, rows.y),
    }
    return Case(number, "LinearSVC", params, rows)


def _kernel_of(rng):
    """A kernel with its parameters, by name or as an object."""
    name = pick(rng, ("rbf", "rbf", "laplacian", "linear", "poly", "poly", "sigmoid", "normalised"))
    gamma, degree, coef0 = pick(rng, GAMMAS), int(pick(rng, DEGREES)), pick(rng, CONSTANTS)
    if name == "normalised":
        return {"kernel": kernels.Polynomial(gamma, min(degree, 2**31 - 1), coef0, normalize=True)}
    return {"kernel": name, "gamma": gamma, "degree": degree, "coef0": coef0}


def _kernel(number, rng, rows):
    classes = len(set(rows.y if isinstance(rows.y, list) else rows.y.tolist()))
    machine = "c-svc" if classes == 2 and rng.random() < 0.6 else pick(rng, MULTICLASS)
    able = [name for name, (_, machines) in SOLVERS.items() if machine in machines]
    solver = "auto" if rng.random() < 0.5 else pick(rng, able)
    params = {
        "machine": machine,
        **_kernel_of(rng),
        "bias": pick(rng, ("auto", "free")) if machine == "c-svc" else pick(rng, BIASES),
        "solver": SOLVERS[solver][0],
        "engine": "numpy" if len(rows.told) < 6 and len(rows.y) <= 60 and rng.random() < 0.15 else "cpu",
        "cache_size": pick(rng, ("auto", "auto", "auto", 0.2, 1e-3)),
        "working_set_size": pick(rng, ("auto",) * 6 + (2, 17)),
        **_shared(rng, rows.y),
    }
    hard = (
        params["dtype"] == "float32"
        or rows.weight is not None
        or params["C"] > 1e6
        or params["engine"] == "numpy"
        or solver != "auto"
    )
    if hard:  # may take hours
        params["time_limit"] = params["time_limit"] or LIMITS[-1]
    lie, kind = None, rng.random()
    if kind < 0.12:
        lie = pick(rng, tuple(lying.FUNCTIONS))
        params["kernel"] = lying.function(lie)
    elif kind < 0.24:
        lie, params["kernel"] = pick(rng, tuple(lying.MATRICES)), "precomputed"
        with np.errstate(all="ignore"):
            K = lying.MATRICES[lie](rng, len(rows.y))
        rows = rows._replace(X=K, told=(f"kernel matrix: {lie}", *rows.told[:1], *rows.told[-2:]))
    return Case(number, "KernelSVC", params, rows, solver, lie)
