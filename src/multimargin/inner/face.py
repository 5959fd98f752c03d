"""Conjugate gradients over the face of a block: the pairs (sample, class) off their bounds.

Coordinate descent soon knows which pairs have weight, and then creeps where the kernel is nearly singular.
With the other pairs held, over the steps d of those with weight,

    minimise  ½ ⟨d, H d⟩ + ⟨G, d⟩   subject to   Σ_r d_ir = 0 in every sample i,

where H is K within a class. This is solved by conjugate gradients, projected on the constraint and
preconditioned by K_ii. Every sample then goes as far along its part of t d as its bounds let it, with the t
of a few that lowers the objective most. Pairs that came to their bounds leave the face, and conjugate
gradients start again over the others. Pairs never join: coordinate descent does that. The native form is
``native/solvers/face.hpp``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..problems.base import ON_BOUND
from ..problems.crammer_singer import coefficients, simplex_point
from ..system.typing import FloatArray

if TYPE_CHECKING:
    from .block import Block

_ROUNDS = 30  # of conjugate gradients, with ever fewer pairs
_OUTSIDE = 0.05  # share of the samples that d may take over their bounds
_LENGTHS = 0.35 ** np.arange(8)  # t


class Face:
    """The pairs of ``block`` that are off their bounds, among those ``listed``; all arrays are (q, m)."""

    def __init__(self, block: Block, listed: np.ndarray) -> None:
        self._block = block
        self._z = simplex_point(block.alpha, block.y, block.C)
        self._least = ON_BOUND * block.C[:, None]
        self._inside = listed & (self._z > self._least) & (block.diagonal > 0)[:, None]
        self._inside &= self._inside.sum(axis=1, keepdims=True) > 1

    def minimise(self, eps: float, steps: int) -> None:
        """Lower the objective, until its gradient is below ``eps`` or in at most so many steps."""
        for _ in range(_ROUNDS):
            d, made = self._conjugate_gradients(eps, steps)
            if not made or not self._move(d):
                return
            steps -= made
            self._inside &= self._z > self._least

    def _project(self, v: FloatArray) -> FloatArray:
        """Take the mean over a sample's pairs off, and leave zero outside of the face."""
        mean = np.where(self._inside, v, 0.0).sum(axis=1) / np.maximum(self._inside.sum(axis=1), 1)
        return np.where(self._inside, v - mean[:, None], 0.0)

    def _conjugate_gradients(self, eps: float, steps: int) -> tuple[FloatArray, int]:
        """Return d and the steps made.

        Ends early where d takes many samples over their bounds: to go on would lead far from where the face
        is known.
        """
        d, direction, before = np.zeros_like(self._z), np.zeros_like(self._z), np.inf
        residual = self._project(-self._block.G)
        diagonal = np.where(self._block.diagonal > 0, self._block.diagonal, 1.0)[:, None]
        samples = int(self._inside.any(axis=1).sum())
        for step in range(steps):
            if np.abs(residual).max() <= eps:
                return d, step
            rho = float(np.vdot(residual, residual / diagonal))
            direction = residual / diagonal + rho / before * direction
            before = rho
            product = self._block.K @ direction
            curvature = float(np.vdot(direction, product))
            if not curvature > 0:
                return d, step
            d += rho / curvature * direction
            residual -= rho / curvature * self._project(product)
            if np.count_nonzero(d > self._z) > _OUTSIDE * samples:
                return d, step + 1
        return d, steps

    def _move(self, d: FloatArray) -> bool:
        """Take the best step t d cut to the bounds; False where none lowers the objective."""
        block, best, change = self._block, None, 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            longest = np.where(d > 0, self._z / d, np.inf).min(axis=1)
        for t in _LENGTHS:
            e = np.minimum(t, longest)[:, None] * d
            product = block.K @ e
            now = float(np.vdot(block.G, e) + 0.5 * np.vdot(e, product))
            if now < change:
                best, change = (e, product), now
            elif best is not None:
                break
        if best is None:
            return False
        self._z = np.maximum(self._z - best[0], 0.0)
        block.alpha[:] = coefficients(self._z, block.y, block.C)
        np.add(block.G, best[1], out=block.G)
        return True
