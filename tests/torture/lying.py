"""Kernels that are none: functions and matrices that do what no kernel may do.

A function with ``steady = False`` gives other values for the same pair at another time, so no certificate of
its fit can be checked. Of the others it can: scores are the values of rows with support vectors.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist


def honest(A, B):
    """exp(-‖a - b‖² / features), what the others are made of."""
    A, B = (np.asarray(S.toarray() if sp.issparse(S) else S, dtype=np.float64) for S in (A, B))
    with np.errstate(all="ignore"):
        return np.exp(-cdist(A, B, "sqeuclidean") / A.shape[1])


def _first(S):
    """A number per row in [0, 1)."""
    S = S.toarray() if sp.issparse(S) else np.asarray(S)
    with np.errstate(all="ignore"):
        return np.abs(np.sin(1e3 * S.astype(np.float64).sum(axis=1)))


class Lie:
    """A kernel function with a name; whether it gives the same values at all times."""

    def __init__(self, name, values, steady=True):
        self.name, self.values, self.steady = name, values, steady
        self.calls = 0

    def __call__(self, A, B):
        self.calls += 1
        return self.values(self, A, B)

    def __repr__(self):
        return f"<kernel: {self.name}>"


def _raises(self, A, B):
    if self.calls > 3:
        raise RuntimeError("this kernel gives up")
    return honest(A, B)


def _reused(self, A, B):
    """The same memory for every result, which a caller that keeps results would not expect."""
    values = honest(A, B)
    memory = self.__dict__.setdefault("memory", np.empty(1 << 20))
    out = memory[: values.size].reshape(values.shape)
    out[:] = values
    return out


def _noisy(self, A, B):
    return honest(A, B) + 1e-3 * np.random.default_rng(self.calls).normal(size=(A.shape[0], B.shape[0]))


def _with(value):
    """Some pairs have another value; the same ones both ways."""

    def values(self, A, B):
        K = honest(A, B)
        K[np.minimum.outer(_first(A), _first(B)) > 0.9] = value
        return K

    return values


FUNCTIONS = {
    "honest": lambda self, A, B: honest(A, B),
    "not symmetric": lambda self, A, B: honest(A, B) * (1 + np.outer(_first(A), 1 - _first(B))),
    "a little asymmetric": lambda self, A, B: honest(A, B) * (1 + 1e-3 * np.outer(_first(A), 1 - _first(B))),
    "NaN on some pairs": _with(np.nan),
    "infinite on some pairs": _with(np.inf),
    "1e300 on some pairs": _with(1e300),
    "-1 on some pairs": _with(-1.0),
    "negative": lambda self, A, B: -honest(A, B),
    "zero": lambda self, A, B: np.zeros((A.shape[0], B.shape[0])),
    "one": lambda self, A, B: np.ones((A.shape[0], B.shape[0])),
    "whole numbers": lambda self, A, B: np.round(100 * honest(A, B)).astype(np.int32),
    "float32": lambda self, A, B: honest(A, B).astype(np.float32),
    "a list": lambda self, A, B: honest(A, B).tolist(),
    "sparse": lambda self, A, B: sp.csr_array(honest(A, B)),
    "complex": lambda self, A, B: honest(A, B) + 1j,
    "words": lambda self, A, B: honest(A, B).astype(str).astype(object),
    "None": lambda self, A, B: None,
    "a number": lambda self, A, B: 1.0,
    "transposed": lambda self, A, B: honest(A, B).T,
    "too many columns": lambda self, A, B: np.pad(honest(A, B), ((0, 0), (0, 1))),
    "raises": _raises,
    "reused memory": _reused,
    "noisy": _noisy,
    "share of the batch": lambda self, A, B: honest(A, B) / (1 + honest(A, B).sum(axis=1, keepdims=True)),
}
UNSTEADY = frozenset({"noisy", "share of the batch"})


def function(name):
    return Lie(name, FUNCTIONS[name], name not in UNSTEADY)


# -- matrices ---------------------------------------------------------------------------------------------
def _gram(rng, n):
    Z = rng.normal(size=(n, 4))
    return Z @ Z.T


def _symmetric(rng, n):
    K = rng.normal(size=(n, n))
    return K + K.T


def _spoilt(rng, n, value, mirrored):
    K = rng.normal(size=(n, 3))
    K = K @ K.T
    i, j = rng.integers(n, size=2)
    K[i, j] = value
    if mirrored:
        K[j, i] = value
    return K


MATRICES = {
    "positive semidefinite": _gram,
    "indefinite": _symmetric,
    "not symmetric": lambda rng, n: rng.normal(size=(n, n)),
    "skew": lambda rng, n: np.triu(rng.normal(size=(n, n)), 1) - np.triu(rng.normal(size=(n, n)), 1).T,
    "zero": lambda rng, n: np.zeros((n, n)),
    "ones": lambda rng, n: np.ones((n, n)),
    "zero diagonal": lambda rng, n: _symmetric(rng, n) * (1 - np.eye(n)),
    "negative diagonal": lambda rng, n: -_gram(rng, n),
    "minus a square": lambda rng, n: -np.outer(np.arange(n) + 1.0, np.arange(n) + 1.0),
    "one pair 1e6": lambda rng, n: _spoilt(rng, n, 1e6, True),
    "one pair 1e300": lambda rng, n: _spoilt(rng, n, 1e300, True),
    "one value NaN": lambda rng, n: _spoilt(rng, n, np.nan, False),
    "one pair infinite": lambda rng, n: _spoilt(rng, n, np.inf, True),
    "one value wrong by 1": lambda rng, n: _spoilt(rng, n, 50.0, False),
    "one value wrong by 1e-9": lambda rng, n: (
        _gram(rng, n) * (1 + 1e-9 * np.triu(rng.normal(size=(n, n)), 1))
    ),
    "times 1e300": lambda rng, n: _gram(rng, n) * 1e300,
    "times 1e-300": lambda rng, n: _gram(rng, n) * 1e-300,
    "diagonal of all scales": lambda rng, n: np.diag(np.logspace(-150, 150, n)),
    "identity": lambda rng, n: np.eye(n),
    "whole numbers": lambda rng, n: np.round(_gram(rng, n)).astype(np.int64),
    "float32": lambda rng, n: _gram(rng, n).astype(np.float32),
    "sparse": lambda rng, n: sp.csr_array(np.diag(np.arange(n) + 0.5)),
    "Fortran order": lambda rng, n: np.asfortranarray(_gram(rng, n)),
    "not square": lambda rng, n: rng.normal(size=(n, n + 1)),
}
