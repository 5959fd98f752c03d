"""Hard training data, made from a random generator: values, labels, weights and how they are stored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

SCALES = (1e-300, 1e-160, 1e-100, 1e-30, 1e-8, 1e-3, 1e4, 1e8, 1e15, 1e30, 1e75, 1e100, 1e150, 1e200, 1e300)
OFFSETS = (1e2, 1e4, 1e7, 1e10, 1e15, 1e100)


class Rows(NamedTuple):
    """Training data, and in a few words what is hard about them."""

    X: object
    y: object
    weight: object
    told: tuple[str, ...]


def pick(rng, options):
    """One of the options; numpy's ``choice`` would turn them into an array."""
    return options[int(rng.integers(len(options)))]


def sizes(rng):
    """Rows, classes and features."""
    n = int(pick(rng, (2, 3, 5, 8, 20, 40, 60, 90, 150, 150, 300, 600)))
    m = int(min(n, pick(rng, (2, 2, 3, 3, 5, 9, 26, max(2, n // 2), n))))
    if m > 60:
        n, m = 60, 60  # every row a class of its own is 600 classes otherwise, which is only slow
    d = int(pick(rng, (1, 2, 3, 4, 8, 40, 200)))
    return n, m, d


def base(rng):
    """Values and classes before anything is done to them."""
    n, m, d = sizes(rng)
    y = np.concatenate([np.arange(m), rng.integers(m, size=n - m)])
    kind = pick(rng, ("blobs", "blobs", "noise", "separable", "line", "grid", "lonely class"))
    if kind == "lonely class":  # all but one row of each other class are of the first
        y = np.concatenate([np.arange(m), np.zeros(n - m, dtype=int)])
    y = rng.permutation(y)
    centres = rng.normal(size=(m, d)) * {"separable": 100.0, "noise": 0.0}.get(kind, 1.5)
    X = rng.normal(size=(n, d)) + centres[y]
    if kind == "line":
        X = np.outer(np.linspace(-1, 1, n), rng.normal(size=d))
    if kind == "grid":
        X = np.round(X)
    return X, y, f"{n} x {d}, {m} classes, {kind}"


# -- what is done to the values ---------------------------------------------------------------------------
def times(rng, X):
    scale = pick(rng, SCALES)
    return X * scale, f"times {scale:g}"


def plus(rng, X):
    offset = pick(rng, OFFSETS)
    return X + offset, f"plus {offset:g}"


def half_plus(rng, X):
    offset = pick(rng, OFFSETS)
    X[: len(X) // 2] += offset
    return X, f"half of the rows plus {offset:g}"


def duplicates(rng, X):
    return X[rng.integers(max(1, len(X) // 4), size=len(X))], "rows repeated, whatever their labels"


def nearly_duplicates(rng, X):
    near = X[rng.integers(max(1, len(X) // 4), size=len(X))]
    return near * (1 + 1e-13 * rng.normal(size=X.shape)), "rows nearly repeated"


def all_equal(rng, X):
    return np.repeat(X[:1], len(X), axis=0), "all rows equal"


def all_zero(rng, X):
    return np.zeros_like(X), "all zero"


def one_value(rng, X):
    value = pick(rng, (1e12, 1e18, -1e150, 1e300, 5e-324))
    X[rng.integers(len(X)), rng.integers(X.shape[1])] = value
    return X, f"one value {value:g}"


def constant_columns(rng, X):
    value = pick(rng, (0.0, 1.0, -1e8, 1e20))
    X[:, rng.random(X.shape[1]) < 0.5] = value
    return X, f"columns {value:g}"


def columns_of_all_scales(rng, X):
    reach = pick(rng, (6, 12, 150, 300))
    return X * np.logspace(-reach, reach, X.shape[1]), f"columns 1e-{reach} to 1e{reach}"


def rows_of_all_scales(rng, X):
    reach = pick(rng, (6, 12, 75, 150))
    return X * np.logspace(-reach, reach, len(X))[:, None], f"rows 1e-{reach} to 1e{reach}"


def one_direction(rng, X):
    return np.outer(X[:, 0], rng.normal(size=X.shape[1])), "columns are multiples of the first"


def some_zero_rows(rng, X):
    X[rng.random(len(X)) < 0.3] = -0.0
    return X, "rows of -0.0"


def whole_numbers(rng, X):
    return np.round(8 * X), "whole numbers"


def yes_or_no(rng, X):
    return (X > 0).astype(float), "zeros and ones"


def not_finite(rng, X):
    value = pick(rng, (np.nan, np.inf, -np.inf))
    X[rng.integers(len(X)), rng.integers(X.shape[1])] = value
    return X, f"one value {value}"


CHANGES = (
    *(times, times, times, plus, plus, half_plus, duplicates, nearly_duplicates, all_equal, all_zero),
    *(one_value, constant_columns, columns_of_all_scales, rows_of_all_scales, one_direction),
    *(some_zero_rows, whole_numbers, yes_or_no),
)


# -- how they are stored ----------------------------------------------------------------------------------
def _strided(X):
    wide = np.full((2 * len(X), 2 * X.shape[1]), np.nan)
    wide[::2, ::2] = X
    return wide[::2, ::2]


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def _limited(dtype):
    """Values rounded and cut off to those of an integer type."""
    limits = np.iinfo(dtype)
    return lambda X: np.clip(np.round(X), float(limits.min), float(limits.max) * (1 - 1e-9)).astype(dtype)


def _csr(form, values, explicit=0):
    """Sparse rows; ``explicit`` zeros are stored as well."""
    cells = sp.coo_array(values)
    rows = np.concatenate([cells.row, np.arange(explicit) % len(values)])
    columns = np.concatenate([cells.col, np.zeros(explicit, dtype=int)])
    data = np.concatenate([cells.data, np.zeros(explicit)])  # beside a value these are duplicates
    return form(sp.coo_array((data, (rows, columns)), shape=values.shape))


def _thinned(X):
    """Most values zero, some rows and columns empty."""
    X = X * (np.random.default_rng(0).random(X.shape) < 0.4)
    X[::5] = 0
    X[:, ::7] = 0
    return X


def _long_indices(X):
    X = sp.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _unsorted(X):
    X = sp.csr_array(X)
    for first, last in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[first:last] = X.indices[first:last][::-1].copy()
        X.data[first:last] = X.data[first:last][::-1].copy()
    X.has_sorted_indices = False
    return X


PLAIN = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "every second row and column": _strided,
    "rows backwards": lambda X: X[::-1].copy()[::-1],
    "read-only": _read_only,
    "bytes swapped": lambda X: X.astype(">f8"),
    "float16": lambda X: X.astype(np.float16),
    "longdouble": lambda X: X.astype(np.longdouble),
    "int8": _limited(np.int8),
    "uint8": _limited(np.uint8),
    "int16": _limited(np.int16),
    "uint16": _limited(np.uint16),
    "int64": _limited(np.int64),
    "uint64": _limited(np.uint64),
    "bool": lambda X: X > 0,
    "objects": lambda X: X.astype(object),
    "a list": lambda X: X.tolist(),
}
SPARSE = {
    "CSR": sp.csr_matrix,
    "CSR array, float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "thinned CSR array": lambda X: sp.csr_array(_thinned(X)),
    "CSR with stored zeros": lambda X: _csr(sp.csr_array, _thinned(X), explicit=2 * len(X)),
    "CSC": lambda X: sp.csc_array(_thinned(X)),
    "COO": lambda X: _csr(sp.coo_array, _thinned(X), explicit=len(X)),
    "64-bit indices": lambda X: _long_indices(_thinned(X)),
    "unsorted indices": lambda X: _unsorted(_thinned(X)),
    "CSR uint8": lambda X: sp.csr_array(_limited(np.uint8)(X)),
}

LABELS = {
    "0..": lambda y: y,
    "words": lambda y: np.array([f"class {k}" for k in range(y.max() + 1)])[y],
    "objects": lambda y: np.array([f"c{k}" for k in range(y.max() + 1)], dtype=object)[y],
    "negative": lambda y: -7 * y - 3,
    "whole floats": lambda y: 1e6 * y.astype(float),
    "int8": lambda y: y.astype(np.int8),
    "uint64": lambda y: np.uint64(2**63) + y.astype(np.uint64),
    "a list": lambda y: y.tolist(),
}


# -- weights ----------------------------------------------------------------------------------------------
def weights(rng, y):
    """Sample weights, or None."""
    n = len(y)
    kind = pick(
        rng,
        ("none",) * 6
        + ("some zero", "a class of zeros", "1e-8 to 1e8", "one 1e-300", "one 1e300", "all equal"),
    )
    weight = np.ones(n)
    if kind == "none":
        return None, kind
    if kind == "some zero":
        weight[rng.random(n) < 0.3] = 0
    elif kind == "a class of zeros":
        weight[y == y.max()] = 0
    elif kind == "1e-8 to 1e8":
        weight = 10.0 ** rng.uniform(-8, 8, n)
    elif kind == "all equal":
        weight *= pick(rng, (1e-200, 1e-8, 1e8, 1e200))
    else:
        weight[rng.integers(n)] = float(kind.split()[1])
    return weight, kind


def hard_rows(rng):
    """Training data with none to three changes, stored somehow."""
    with np.errstate(all="ignore"):
        X, y, size = base(rng)
        told = [size]
        for _ in range(int(pick(rng, (0, 0, 1, 1, 1, 1, 2, 3)))):
            X, said = pick(rng, CHANGES)(rng, X)
            told.append(said)
        if rng.random() < 0.02:
            X, said = not_finite(rng, X)
            told.append(said)
        kind, forms = ("sparse", SPARSE) if rng.random() < 0.25 else ("dense", PLAIN)
        if not np.isfinite(X).all():  # other forms would change what is wrong with them
            forms = {"float64": PLAIN["float64"]} if kind == "dense" else {"CSR": SPARSE["CSR"]}
        form = pick(rng, ("float64",) * 8 + tuple(forms)) if kind == "dense" else pick(rng, tuple(forms))
        weight, of_rows = weights(rng, y)
        label = pick(rng, ("0..",) * 6 + tuple(LABELS))
        told += [f"{kind}: {form}", f"labels {label}", f"weights {of_rows}"]
        return Rows(forms[form](X), LABELS[label](y), weight, tuple(told))
