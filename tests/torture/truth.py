"""What a case is, computed in 80-bit arithmetic: its data, costs and kernel values, without the package."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import sparse

Long = np.longdouble
NORMAL = np.finfo(np.float64).tiny  # samples whose K(x, x) is less are zero to a normalised kernel
BOUNDED = ("rbf", "laplacian", "sigmoid")


def long(X):
    """The values as numbers of 80 bits, those of other types after they were rounded to float64."""
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    return X.astype(np.float64).astype(Long)


def base_kernel(name, A, B, gamma, coef0, degree):
    """Kernel values of all rows of A and B, by differences and products."""
    if name in ("rbf", "laplacian"):
        power = 2 if name == "rbf" else 1
        rows = [(np.abs(row - B) ** power).sum(axis=1) for row in A]
        return np.exp(-Long(gamma) * np.array(rows, dtype=Long).reshape(len(A), len(B)))
    dots = A @ B.T
    if name == "linear":
        return dots
    inner = Long(gamma) * dots + Long(coef0)
    return inner ** Long(degree) if name == "poly" else np.tanh(inner)


class Truth:
    """A case's data, costs and kernel."""

    def __init__(self, case):
        self.case, self.params = case, case.params
        self.labels, self.y = np.unique(np.asarray(case.rows.y), return_inverse=True)
        self.n = len(self.y)
        weight = case.rows.weight
        self.weight = (np.ones(self.n) if weight is None else np.asarray(weight, dtype=float)).astype(Long)
        self.kept = self.weight > 0

    @cached_property
    def X(self):  # noqa: N802 (a name of the formulas)
        """The samples; kernel values if the kernel is a matrix."""
        return long(self.case.rows.X)

    @cached_property
    def C(self):  # noqa: N802
        """The cost of every row."""
        given, factors = self.params["class_weight"], np.ones(len(self.labels), dtype=Long)
        if given == "balanced":
            totals = np.array([self.weight[self.y == k].sum() for k in range(len(self.labels))])
            present = totals > 0
            factors[present] = totals.sum() / (present.sum() * totals[present])
        elif given is not None:
            factors = np.array([given.get(label, 1.0) for label in self.labels.tolist()], dtype=Long)
        return Long(self.params["C"]) * factors[self.y] * self.weight

    # -- the kernel ------------------------------------------------------------------------------------
    @property
    def kernel(self):
        """The kernel's name, or the function, or "linear" for a linear machine."""
        given = self.params.get("kernel", "linear")
        return given if isinstance(given, str) or self.is_function else "poly"

    @property
    def is_function(self):
        return self.case.lie is not None and self.params["kernel"] != "precomputed"

    @property
    def is_matrix(self):
        return self.params.get("kernel") == "precomputed"

    @property
    def normalised(self):
        return not self.is_function and getattr(self.params.get("kernel"), "normalize", False)

    def parameter(self, name):
        """A parameter of the kernel, which may be an object that has it."""
        return getattr(self.params["kernel"], name) if self.normalised else self.params.get(name, 0)

    @cached_property
    def gamma(self):
        """The coefficient that the parameter stands for: "scale" is 1 / (features · variance)."""
        given = self.parameter("gamma")
        X = self.X[self.kept]
        if given == "auto":
            return 1 / Long(X.shape[1])
        if given != "scale":
            return Long(given)
        weight = self.weight[self.kept] / self.weight[self.kept].sum() / X.shape[1]
        mean = (weight[:, None] * X).sum()
        variance = (weight[:, None] * (X - mean) ** 2).sum()
        if (X == X.flat[0]).all() or not variance > 0:
            return Long(1)
        return 1 / (X.shape[1] * variance)

    def values(self, A, B, gamma):
        """Native kernel values between rows, without normalisation."""
        return base_kernel(self.kernel, A, B, gamma, self.parameter("coef0"), self.parameter("degree"))

    def diagonal(self, gamma, normalised=True):
        """K(x, x) of all rows."""
        if self.is_matrix:
            return self.X.diagonal()
        if self.is_function:
            return np.array([self._called(row, row)[0, 0] for row in self._rows()], dtype=Long)
        values = [self.values(row[None], row[None], gamma)[0, 0] for row in self.X]
        values = np.array(values, dtype=Long)
        return (values >= NORMAL).astype(Long) if self.normalised and normalised else values

    def columns(self, support, gamma):
        """K of all rows with the rows ``support``."""
        if not len(support):
            return np.zeros((self.n, 0), dtype=Long)
        if self.is_matrix:
            return self.X[:, support]
        if self.is_function:
            rows = self.case.rows.X
            rows = rows if hasattr(rows, "shape") else np.asarray(rows)
            rows = rows.tocsr() if sparse.issparse(rows) else rows
            return self._called(rows, rows[support])
        K = self.values(self.X, self.X[support], gamma)
        if self.normalised:
            raw = self.diagonal(gamma, normalised=False)
            scale = np.where(raw >= NORMAL, 1 / np.sqrt(np.maximum(raw, NORMAL)), 0)
            K = K * scale[:, None] * scale[support]
        return K

    def _rows(self):
        rows = self.case.rows.X
        rows = rows.tocsr() if sparse.issparse(rows) else np.asarray(rows)
        return (rows[i : i + 1] for i in range(self.n))

    def _called(self, A, B):
        """What the function gives, as an array."""
        A, B = (S if sparse.issparse(S) else np.asarray(S).astype(np.float64) for S in (A, B))
        return long(self.params["kernel"](A, B))

    @cached_property
    def offset(self):
        """What a regularised bias adds to the kernel."""
        if self.case.model == "LinearSVC":
            return Long(self.params["intercept_scaling"] * self.params["fit_intercept"]) ** 2
        if self.params["bias"] == "regularized" or self.is_function or self.kernel in BOUNDED:
            return Long(1)
        diagonal = (
            self.diagonal(self.gamma)[self.kept].astype(float).astype(Long)
        )  # zero if float64 has it so
        weight = self.weight[self.kept]
        positive = diagonal > 0
        if not positive.any():
            return Long(1)
        return np.exp(
            (weight * np.log(np.where(positive, diagonal, 1)))[positive].sum() / weight[positive].sum()
        )
