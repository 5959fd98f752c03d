"""What rounding does to kernel values, and so which precision and which form the data need.

A kernel value exp(-g) is as wrong as g = gamma · distance is, absolutely. How wrong g is depends on how the
distance is computed:

- products, ‖a‖² + ‖b‖² - 2a·b: by a few roundings of gamma · (‖a‖² + ‖b‖²), however small the distance is;
- differences of values that were rounded to float32: by a rounding of the values, times the distance;
- differences of float64 values as they are: by a rounding of g, so they are exact at any offset and scale.

A bound for the samples on one side is enough. A sample farther away than twice the largest norm has a
distance as large as its own norm, and then g is only wrong by a few roundings of itself.

With a team, what is found is that of the samples of all its processes.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from ...kernels import Kernel
from ...system.arithmetic import row_parts
from ...system.team import SOLO, Team
from ...system.typing import Data, FloatArray

# The largest gamma · norm of a sample (the squared norm, for L1 distances the L1 norm) at which products in
# float64 keep g within about 1e-9.
FLOAT64_REACH = 1e6
# The same for kernel rows in float32, which are refined later: g within about 1e-5.
_FLOAT32_PRODUCTS = 50.0
_FLOAT32_DIFFERENCES = {"rbf": 1e4, "laplacian": 1e2}
_FLOAT32_LARGEST = 1e15  # squares must not overflow float32
_FLOAT32_GAMMA = 1e30  # the inverse of distances and products that are lost in float32
SCORE_ERROR = 1e-4  # of scores in float32: a tenth of the default tolerance
_DEVIATIONS = 6.0  # so many standard deviations of a sum of roundings are its bound


def within_float32(kernel: Kernel, X: Data, team: Team = SOLO) -> bool:
    """Whether squares of the values, and the distances or products that matter, are numbers in float32."""
    return _gamma(kernel) <= _FLOAT32_GAMMA and team.max(_largest(X)) <= _FLOAT32_LARGEST


def float32_suffices(kernel: Kernel, reach: float, direct: bool) -> bool:
    """Whether kernel rows of samples of this ``reach`` may be computed in float32."""
    return reach <= (_FLOAT32_DIFFERENCES[str(kernel.native)] if direct else _FLOAT32_PRODUCTS)


def float32_difference_error(reach: float, features: int) -> float:
    """A bound of what differences in float32 change an RBF kernel value by, in units of u = 2⁻²⁴.

    With norms up to R, rounded values and differences change the difference of two samples by 4uR at most,
    and the sum of its squares rounds ``features`` + 2 times. So g changes by at most

        8u √(g reach) + (features + 2) u g,

    up to u². The most that this does to exp(-g) is at √g exp(-g) = 0.43 and at g exp(-g) = 0.37.
    """
    return 4.0 * math.sqrt(reach) + 0.4 * (features + 3)


def float32_product_error(reach: float, features: int) -> float:
    """A bound of what products in float32 change an RBF kernel value by, in units of u = 2⁻²⁴.

    With norms up to R, a rounded norm is wrong by uR², and so a sum of two by 4uR² in all. In any order of
    summation 2a·b is wrong by 2 ``features`` u R², and the distance, at most 4R², is rounded once more.
    Rounded values change the distance by 8uR². So g changes by at most

        (2 features + 16) u reach,

    up to u², and exp(-g) by no more than g does.
    """
    return (2.0 * features + 20.0) * reach


def float32_score_error(reach: float, direct: bool, coef: FloatArray) -> float:
    """A bound of the error of scores Σ_i K(x, sv_i) coef_i whose kernel values are computed in float32.

    Values of different support vectors are rounded independently, so their errors add up as random numbers
    do: as the root of their squares. One value is wrong by about a rounding of 1 and of what the distance is
    made of, which is the reach, or its root for differences.
    """
    value = np.finfo(np.float32).eps / 2 * (1.0 + (np.sqrt(reach) if direct else reach))
    return float(_DEVIATIONS * value * np.sqrt(np.square(coef).sum(axis=0).max(initial=0.0)))


def centre_of(X: Data, team: Team = SOLO) -> FloatArray:
    """The mean of the rows; infinite or NaN if their sum overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(team.sum(X.sum(axis=0, dtype=np.float64)) / team.sum(X.shape[0]))


def dense_reach(kernel: Kernel, X: Data, center: FloatArray, team: Team = SOLO) -> float:
    """The largest gamma · norm of the rows about ``center``; infinite if that overflows."""
    largest = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for part in row_parts(X):
            rows = part - center
            if kernel.native == "laplacian":
                norms = np.abs(rows, out=rows).sum(axis=1)
            else:
                norms = np.einsum("ij,ij->i", rows, rows)
            largest = np.maximum(largest, norms.max(initial=0.0))
    reach = float(_gamma(kernel) * largest)
    return team.max(math.inf if math.isnan(reach) else reach)


def sparse_reach(kernel: Kernel, X: Data, team: Team = SOLO) -> float:
    """The largest gamma · norm of sparse rows, or an upper bound that is small enough."""
    gamma, largest = _gamma(kernel), team.max(_largest(X))
    entries = team.max(float(np.diff(X.indptr).max(initial=0)))
    power = 1 if kernel.native == "laplacian" else 2
    with np.errstate(over="ignore"):
        bound = gamma * np.float64(largest) ** power * entries
        if bound <= FLOAT64_REACH:
            return float(bound)
        norms = (np.abs(part.astype(np.float64)).power(power).sum(axis=1).max() for part in row_parts(X))
        return team.max(float(gamma * max(norms, default=0.0)))


def _gamma(kernel: Kernel) -> float:
    return float(getattr(kernel, "gamma", 0.0))


def _largest(X: Data) -> float:
    values = X.data if sp.issparse(X) else X
    return max(float(values.max(initial=0)), -float(values.min(initial=0)))
