"""What a leap does between two exact gradients: models around a point whose kernel is F Fᵀ.

    repeat   solve the model around α with lengths σ_i = s C_i, by the first columns of F;
             move there if the dual falls, and lengthen s if Newton's method took few steps;
             else take more columns, or shorten s.

A model's columns must leave at most ``LEFT`` / σ_i of the kernel's diagonal: then what they leave out changes
the gradient by less than the proximal term does. The point's kernel has more columns and must leave at most
``_LEFT_NEAR`` / σ_i. As soon as s is too long for that, the exact gradient is due.

The first model starts from a least squares fit to the labels: as good as what descent has reached by then.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.linalg import solve

from ...system.typing import FloatArray
from .leap_point import Point
from .near_point import NearPoint
from .pivoted_cholesky import PivotedCholesky
from .proximal_newton import ProximalModel

LEFT = 0.5  # see above
_LEFT_NEAR = 0.2
LENGTH, _FAR_LENGTH = 12.0, 48.0  # s at the start; at most, before any descent
_TINY = 1e-300  # left by a factor that is exact
_LONGER, _FEW_STEPS = 4.0, 5
_SHORTER = 1.0 / 16.0
_LONGEST = 1e9
_AHEAD = 16.0  # so much longer may s become before the exact gradient is due
_SHARE_OF_EXACT = 0.03  # of the violation at the exact point: as far as the others are followed
_SHARE_OF_VIOLATION = 0.1  # how exactly a model is solved
_SHARE_OF_TOL = 0.1
ENOUGH = 0.5  # of tol
_MOST_STEPS = 120  # of Newton's method per model
_MOST_FAILURES = 4
_MORE_COLUMNS, _LEAST_COLUMNS = 1.3, 8  # after a failure: so many times as many, or so many more
_START_COLUMNS, _RIDGE = 100, 1e-2  # of the least squares fit
_SCALES = 2.0 ** np.arange(-3, 12)  # of that fit


class Approach:
    """The models of one leap: how long they are, and of how many columns."""

    def __init__(self, exact: Point, factor: PivotedCholesky, rank: int, memory: int) -> None:
        self._exact, self._factor, self._memory = exact, factor, memory
        self._largest_cost = exact.team.max(float(exact.C.max(initial=0.0)))
        self._length, self._has_started = LENGTH, False
        self.rank = rank
        self._model = self._of_columns(rank)

    def begin_far(self) -> None:
        """Begin with models as long as their columns allow: far from the solution that saves some."""
        allowed = LEFT / (max(self._factor.left, _TINY) * self._largest_cost)
        self._length = float(np.clip(allowed, LENGTH, _FAR_LENGTH))

    def rest(self, longer: float = _AHEAD) -> float:
        """What a point's kernel may leave of the diagonal until lengths are so many times as long."""
        return _LEFT_NEAR / (longer * self._length * self._largest_cost)

    def run(self, violation: float, tol: float, late: Callable[[], bool]) -> NearPoint:
        """The point that models lead to from the exact one, whose violation is given.

        Raises ``NoDirectionError`` if there is no Newton direction.
        """
        near, failures = NearPoint(self._exact, self._factor.factor), 0
        aim = max(_SHARE_OF_EXACT * violation, ENOUGH * tol)
        while violation > aim and failures < _MOST_FAILURES and not late():
            eps = max(_SHARE_OF_VIOLATION * violation, _SHARE_OF_TOL * tol)
            U = None if self._has_started else self._start(near)
            found = self._model.minimise(near.centre(self._length), eps, U, _MOST_STEPS, late)
            self._has_started = True
            if not near.move(found.alpha):
                failures += 1
                if not self.widen():
                    self.shorten()
                continue
            violation = near.violation()
            self._length *= _LONGER if found.steps <= _FEW_STEPS and self._length < _LONGEST else 1.0
            if self._factor.left > self.rest(1.0):
                break
        return near

    def widen(self) -> bool:
        """Take more columns of the factor; whether there are more."""
        rank = max(self.rank + _LEAST_COLUMNS, int(_MORE_COLUMNS * self.rank))
        if self.rank == self._factor.rank:
            return False
        self.rank = min(rank, self._factor.rank)
        self._model = self._of_columns(self.rank)
        return True

    def shorten(self) -> None:
        """Make the next model shorter."""
        self._length *= _SHORTER

    def _of_columns(self, rank: int) -> ProximalModel:
        exact = self._exact
        F = self._factor.factor[:, :rank]
        return ProximalModel(exact.problem, F, exact.y, exact.C, self._memory, exact.team)

    def _start(self, near: NearPoint) -> FloatArray | None:
        """U such that F U leads from the current scores to a multiple of the targets, or None for U = 0."""
        exact, model, at = self._exact, self._model, near.centre(self._length)
        F = model.F[:, :_START_COLUMNS]
        target = exact.problem.target(exact.y)
        now = at.G + target - exact.bias
        target = target - target.mean(axis=1, keepdims=True)
        A = np.asarray(exact.team.sum(F.T @ F))
        A.flat[:: len(A) + 1] += _RIDGE
        fits = solve(A, np.asarray(exact.team.sum(F.T @ np.hstack([target, now]))), assume_a="pos")
        U = np.zeros((model.F.shape[1], 2 * target.shape[1]))
        U[: len(fits)] = fits
        aim, now = np.hsplit(U, 2)
        Faim, Fnow = np.hsplit(model.F @ U, 2)

        @cache
        def value(k: int) -> float:
            return model.value(at, _SCALES[k] * aim - now, _SCALES[k] * Faim - Fnow)

        best = lowest(value, len(_SCALES))
        still = model.value(at, np.zeros_like(aim), np.zeros_like(Faim))
        return _SCALES[best] * aim - now if value(best) < still else None


def lowest(value: Callable[[int], float], count: int) -> int:
    """Where a function of 0, 1, ..., count - 1 that first falls and then rises is least."""
    first, last = 0, count - 1
    while first < last:
        middle = (first + last) // 2
        if value(middle) <= value(middle + 1):
            last = middle
        else:
            first = middle + 1
    return first
