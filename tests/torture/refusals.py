"""Errors that a fit may raise, and when each of them is true. Any other error is a fault of the package."""

from __future__ import annotations

import re

import numpy as np
from lying import FUNCTIONS
from truth import Truth

HUGE = np.longdouble(1e307)
LYING_SHAPES = ("None", "a number", "transposed", "too many columns", "words", "complex")


def _not_finite(truth):
    return not np.isfinite(truth.X.astype(float)).all()


def _overflows(truth):
    """Whether float64 cannot hold some K(x, x), the bias in it, or a product of values with costs."""
    if truth.is_function:
        return "1e300" in truth.case.lie
    diagonal = np.abs(truth.diagonal(truth.gamma, normalised=False))
    largest = diagonal.max() if not truth.is_matrix else np.abs(truth.X).max()
    return bool(largest > HUGE or not np.isfinite(largest) or truth.offset > HUGE)


def _products_overflow(truth):
    """Whether sums of costs times kernel values may leave float64."""
    if truth.is_function:
        return "1e300" in truth.case.lie
    largest = np.abs(truth.X).max() if truth.is_matrix else np.abs(truth.diagonal(truth.gamma)).max()
    return bool(largest * truth.C.sum() > 1e-10 * HUGE) or _overflows(truth)


def _indefinite(truth):
    """Whether the kernel has a negative eigenvalue that is no rounding."""
    if truth.is_function or truth.is_matrix:
        return True if truth.is_function else _negative(truth.X)
    K = truth.columns(np.arange(truth.n), truth.gamma)
    return _negative(K)


def _negative(K):
    K = np.asarray(K)
    scale = np.sqrt(np.abs(K.diagonal()))
    scale[scale == 0] = 1
    K = (K / scale[:, None] / scale).astype(float)
    return not np.isfinite(K).all() or np.linalg.eigvalsh((K + K.T) / 2).min() < -1e-10 * len(K)


def _asymmetric(truth):
    if truth.is_function:
        return truth.case.lie in ("not symmetric", "a little asymmetric", "share of the batch", "noisy")
    K = truth.X.astype(float)
    with np.errstate(all="ignore"):
        return not np.abs(K - K.T).max() <= 1e-6 * np.abs(K).max()


def _scale_fails(truth):
    largest = np.abs(truth.X).max()
    return bool(not 1e-307 < truth.gamma < HUGE or 4 * truth.X.shape[1] * largest**2 > HUGE)


def _costs_fail(truth):
    C = truth.C[truth.kept]
    return bool(C.min() < 1.01e-302 or C.sum() > HUGE)


def _one_class(truth):
    return len(np.unique(truth.y[truth.kept])) < 2


def _lie(*names):
    return lambda truth: truth.is_function and truth.case.lie in names


def _small_cache(truth):
    return truth.params.get("cache_size", "auto") != "auto"


def _long_rows(truth):
    """Whether float64 cannot hold |x|² of some row of a linear machine."""
    return bool(((truth.X**2).sum(axis=1) + truth.offset).max() > HUGE)


def _beyond_float32(truth):
    """Whether a value, the bias, what values are divided by, or a ridge is near the end of float32."""
    largest = np.abs(truth.X).max() if truth.is_matrix else np.abs(truth.diagonal(truth.gamma)).max()
    if truth.normalised:
        raw = truth.diagonal(truth.gamma, normalised=False)
        largest = max(largest, raw.max(), (1 / raw[raw > 0]).max(initial=0))
    ridge = 1 / truth.C[truth.kept].min()
    return bool(largest + truth.offset + ridge > 1e35) or truth.params["bias"] == "free"


def _costs_underflow(truth):
    C = truth.C[truth.kept]
    return bool(C.sum() < 1e-100 or C.max() / C.min() > 1e100)


REFUSALS = (
    (r"\|x\|\^2 of some rows is not finite: scale the features", _long_rows),
    (r"dtype='float32' holds numbers up to", _beyond_float32),
    (r"degree must be an integer >= 0, at most", lambda truth: truth.parameter("degree") >= 2**31),
    (r"contains NaN|contains infinity|Input X contains", _not_finite),
    (r"value too large for dtype", _not_finite),
    (r"kernel overflows on some samples.* Scale the features", _overflows),
    (r"gave NaN or infinite values. Scale the features", _products_overflow),
    (r"Scores or objectives overflow float64", _products_overflow),
    (r"float64 cannot hold what follows from costs from", _costs_underflow),
    (r"needs a positive semidefinite kernel", _indefinite),
    (r"is not symmetric", _asymmetric),
    (r"gamma='scale' is the inverse of the features' variance", _scale_fails),
    (r"C times class_weight times sample_weight must be", _costs_fail),
    (r"sum of the sample weights overflows", lambda truth: truth.weight.sum() > HUGE),
    (r"At least 2 classes are needed", _one_class),
    (r"All sample weights are zero", lambda truth: not truth.kept.any()),
    (r"cache_size|memory budget", _small_cache),
    (r"callable returned NaN or infinite", _lie("NaN on some pairs", "infinite on some pairs")),
    (r"callable returned an array of shape", _lie(*LYING_SHAPES)),
    (r"callable returned values that are no real numbers", _lie("complex", "words", "None")),
    (r"needs a square matrix", lambda truth: truth.is_matrix and truth.X.shape[0] != truth.X.shape[1]),
)
assert all(name in FUNCTIONS for name in LYING_SHAPES)


def is_true(case, error):
    """Whether what the error says is so."""
    if case.lie == "raises" and "this kernel gives up" in str(error):
        return True
    if not isinstance(error, ValueError | TypeError):
        return False
    truth = Truth(case)
    with np.errstate(all="ignore"):
        return any(re.search(text, str(error)) and holds(truth) for text, holds in REFUSALS)
