"""Newton's direction for a proximal step of all samples, if the kernel is F Fᵀ or the machine is linear.

    (I + Σ_i σ_i P_i ⊗ f_i f_iᵀ) dU = -g,      U, g (p, m),   f_i the rows of F (n, p)

P_i (m, m) is the derivative of the projection on the feasible rows: it is zero outside of the face of sample
i (the entries that the projection leaves free), and on it the identity or, if the entries of a row sum to
zero, I - 1 1ᵀ / k for k entries. The system is solved in one of two forms, whichever is less work:

by columns   as it stands, with m p unknowns. As I - 1 1ᵀ / k is the sum of (e_r - e_q) (e_r - e_q)ᵀ / k over
             the pairs of free entries, one product per pair of classes makes all blocks (native code,
             ``solvers/newton_columns.hpp``);

by pairs     with one unknown x_ir for each free entry: dU_r = -g_r + F_rᵀ x_r, where F_r has the rows of the
             samples whose entry r is free, and

                 (F_r F_rᵀ + diag(1/σ)) x_r + λ = F_r g_r   for every class r,     Σ_r x_ir = 0.

             The matrix of each class is inverted by itself. The multipliers λ, one for each sample with at
             least two free entries, solve one more system: its matrix is the sum of the classes' inverses
             (native code, ``solvers/newton_pairs.hpp``).

Without the sums the classes are independent in both forms. The processes of a team have their own rows of F:
by columns, the parts of the matrix are added up; by pairs, every process gets the rows of all samples with
free entries. In both cases every process then solves the same system.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg.cython_blas
import scipy.linalg.cython_lapack
from scipy.linalg import lapack

from .. import _core
from ..system.team import Team
from ..system.typing import FloatArray

_ROWS = 8192  # multiplied at a time
_INDEFINITE = "the matrix is not positive definite"

_core.set_lapack(
    scipy.linalg.cython_blas.__pyx_capi__["dsyrk"],
    *(scipy.linalg.cython_lapack.__pyx_capi__[name] for name in ("dpotrf", "dpotri", "dpotrs")),
)


class NoDirectionError(Exception):
    """A matrix is too large, or rounding has made it indefinite."""


class SystemSize(NamedTuple):
    """What decides between the two forms."""

    members: FloatArray  # free entries of each class
    squares: float  # Σ k² over the samples with free entries, k of them each
    samples: float
    rank: float  # p
    coupled: bool

    @property
    def work(self) -> tuple[float, float]:
        """Multiply-adds by pairs and by columns."""
        u, p, m = self.members, self.rank, len(self.members)
        if not self.coupled:
            return float((u**2 * (p / 2 + u / 6)).sum()), float((u * p**2 / 2 + p**3 / 6).sum())
        pairs = float((u**2 * (p + u) / 2).sum()) + self.samples**3 / 6
        # By columns, half of k (k - 1) products per sample would do; who decides by k² was measured with it.
        return pairs, self.squares * p**2 / 2 + (m * p) ** 3 / 6

    @property
    def bytes(self) -> tuple[float, float]:
        """Bytes by pairs and by columns, beside the rows of F."""
        u, p, m = self.members, self.rank, len(self.members)
        few = min(self.samples, _ROWS) * p
        if not self.coupled:
            most = float(u.max(initial=0.0))
            return 8 * (most * p + 2 * most**2), 8 * (few + 3 * p**2)
        pairs = float((u**2 + u * p).sum()) + self.samples**2
        return 8 * pairs, 8 * (few + 2 * (m * p) ** 2)

    def by_pairs(self, memory: float) -> bool:
        """Whether pairs are less work; a form that does not fit is not chosen."""
        fits = [size <= memory for size in self.bytes]
        if not any(fits):
            raise NoDirectionError("too little memory")
        return fits[0] and (self.work[0] <= self.work[1] or not fits[1])


def newton_direction(
    F: FloatArray,
    face: np.ndarray,
    sigma: FloatArray,
    g: FloatArray,
    coupled: bool,
    team: Team,
    memory: float = np.inf,
    pairs: _core.NewtonPairs | None = None,
) -> FloatArray:
    """Return dU (p, m) for the faces (n, m) of the samples held here.

    ``coupled`` says that the entries of a row sum to zero. Raises ``NoDirectionError`` if rounding makes a
    matrix indefinite, or if no form fits in ``memory`` bytes beside the rows of F. ``pairs`` keeps the memory
    of one direction for the next.
    """
    sizes = np.empty(face.shape[1] + 2)
    _core.face_sizes(face, coupled, sizes)
    sizes = np.asarray(team.sum(sizes))
    if SystemSize(sizes[:-2], sizes[-2], sizes[-1], len(g), coupled).by_pairs(memory):
        if team.size > 1:
            free = np.count_nonzero(face, axis=1) > coupled
            F, face, sigma = (team.join(rows[free]) for rows in (F, face, sigma))
        direction = np.empty(g.shape)
        if not (pairs or _core.NewtonPairs()).solve(F, face, sigma, g, coupled, direction):
            raise NoDirectionError(_INDEFINITE)
        return direction
    if coupled:
        return _by_columns(F, face, sigma, g, team)
    return _classes_by_columns(F, face, sigma, g, team)


def _by_columns(F: FloatArray, face: np.ndarray, sigma: FloatArray, g: FloatArray, team: Team) -> FloatArray:
    p, m = g.shape
    A = np.zeros((m * p, m * p))
    _core.newton_columns(F, face, sigma, A)
    A = np.asarray(team.sum(A)).T  # in LAPACK's order
    A.flat[:: m * p + 1] += 1.0
    return np.ascontiguousarray(_solve(_factor(A), -g.T.ravel()).reshape(m, p).T)


def _classes_by_columns(
    F: FloatArray, face: np.ndarray, sigma: FloatArray, g: FloatArray, team: Team
) -> FloatArray:
    p, m = g.shape
    direction = np.empty_like(g)
    for r in range(m):
        of = np.flatnonzero(face[:, r])
        A = np.asfortranarray(team.sum(_gram(F, of, sigma[of])))
        A.flat[:: p + 1] += 1.0
        direction[:, r] = _solve(_factor(A), -g[:, r])
    return direction


def _gram(F: FloatArray, of: np.ndarray, factor: FloatArray) -> FloatArray:
    """Σ_i factor_i f_i f_iᵀ over the samples ``of``; a few of their rows are copied at a time."""
    total = np.zeros((F.shape[1], F.shape[1]))
    root = np.sqrt(factor)
    for first in range(0, len(of), _ROWS):
        part = slice(first, first + _ROWS)
        rows = F[of[part]] * root[part, None]
        total += rows.T @ rows
    return total


def _factor(A: FloatArray) -> FloatArray:
    """The Cholesky factor of a matrix whose lower half is given."""
    factor, failed = lapack.dpotrf(A, lower=1, overwrite_a=1)
    if failed:
        raise NoDirectionError(_INDEFINITE)
    return np.asarray(factor)


def _solve(factor: FloatArray, rhs: FloatArray) -> FloatArray:
    return np.asarray(lapack.dpotrs(factor, rhs, lower=1)[0])
