"""Block coordinate descent: the problem of one sample at a time, in shuffled sweeps over the block.

A sweep visits every sample of the block and solves

    ½ K_ii ‖a - α_i‖² + ⟨G_i, a - α_i⟩   over feasible a

for those whose violation ψ_i is above a threshold; then G += K[:, i] (a - α_i). The threshold falls in stages
from half of the largest violation down to ``eps``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..problems import Problem
from ..problems.base import UPDATES, DualRows
from ..system.memory import WHOLE_SAMPLES
from .base import ANY_SET, Finisher, InnerSolver
from .block import Block

_WHOLE_CLASSES = 12  # up to here a small block is descended as a whole: see ``looks_at_all``
_FIRST_THRESHOLD, _THRESHOLD_FALL = 0.5, 0.3  # of the largest violation; from stage to stage


@dataclass(frozen=True)
class CoordinateDescent(InnerSolver):
    """Block coordinate descent with an exact (or Frank-Wolfe) single-sample update.

    Shuffled sweeps over W; only rows with ψ_i above a threshold are updated.

    Parameters
    ----------
    update : {"sort", "pivot", "bisection", "fixed-point", "smo", "frank-wolfe"}
        How the problem of a single sample is solved; all but "frank-wolfe" are exact. The numpy engine solves
        all exact ones by sorting.
    max_sweeps : int
        Largest number of sweeps over the block.
    staged : bool
        Start with a threshold of half the largest violation; every stage takes 0.3 of it, down to ``eps``.
    relax : float
        ω of over-relaxation, between 0 and 2: the single-sample problem is solved with K_ii / ω, as in SOR.
        1 is exact; a little more cuts the updates of ill-conditioned blocks.
    reach : float or None
        Only pairs (i, r) take part that have α_ir ≠ 0 or whose gradient is within ``reach`` times the block's
        largest violation of the row's maximum; the others can hardly become active. None is all pairs.
    faces : bool
        Between sweeps, conjugate gradients over the pairs off their bounds, if those are few. This only
        accelerates: the numpy engine does without it.
    spans : bool
        Between sweeps, a step to the minimum over what they did and the last such step; of crammer-singer and
        weston-watkins only. This only accelerates: the numpy engine does without it.
    partners : bool
        An update may move two samples between two classes, as in SMO, if that lowers the objective enough for
        the search; of crammer-singer and weston-watkins only. This only accelerates: the numpy engine does
        without it.
    finish : Finisher or None
        If a third of the sweeps (more for small blocks) does not suffice, this solves what is undecided,
        provided that it takes no longer than all updates since it was used last, and sweeps follow. This only
        accelerates: the numpy engine does without it.

    Examples
    --------
    >>> from multimargin import Decomposition, KernelSVC
    >>> from multimargin.inner import CoordinateDescent
    >>> from multimargin.working_set import MaxViolator
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> solver = Decomposition(MaxViolator(q=40), CoordinateDescent("pivot", relax=1.2, reach=0.1))
    >>> KernelSVC(solver=solver).fit(X, y).status_.converged
    True
    """

    name: ClassVar[str] = "coordinate-descent"
    handles: ClassVar[frozenset[str]] = ANY_SET
    measure: ClassVar[str] = "psi"
    lazy: ClassVar[bool] = True
    together: ClassVar[frozenset[str]] = frozenset({"crammer-singer", "weston-watkins"})
    fixed_point: ClassVar[frozenset[str]] = together | {"one-vs-rest"}
    update: str = "sort"
    max_sweeps: int = 300
    staged: bool = True
    relax: float = 1.0
    reach: float | None = None
    faces: bool = False
    spans: bool = False
    partners: bool = False
    finish: Finisher | None = None

    def __post_init__(self) -> None:
        if not 0 < self.relax < 2:
            raise ValueError(f"relax must be between 0 and 2, got {self.relax!r}.")
        if self.reach is not None and not self.reach >= 0:
            raise ValueError(f"reach must be None or at least 0, got {self.reach!r}.")
        if self.update not in UPDATES:
            raise ValueError(f"Unknown update {self.update!r}; use one of {', '.join(map(repr, UPDATES))}.")

    def looks_at_all(self, samples: int, m: int) -> bool:
        """Whether descents over so many samples measure all of them before every round, natively.

        Their steps move weight between two classes, and the best partner is looked for among all samples.
        With many classes weight spreads over many of them at once, for which sweeps need fewer updates.
        """
        return bool(self.partners and samples <= WHOLE_SAMPLES and m <= _WHOLE_CLASSES)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if self.update not in problem.updates:
            able = " or ".join(map(repr, problem.updates))
            raise ValueError(f"The update {self.update!r} is not for {problem.name}; use {able}.")
        if self.finish is not None:
            self.finish.check(problem)

    def solve(self, problem: Problem, block: Block, eps: float, rng: np.random.Generator) -> int:
        updates, worst = 0, float(problem.measure(block.rows())[0].max())
        listed = self.pairs(problem, block, worst)
        threshold = max(eps, _FIRST_THRESHOLD * worst) if self.staged else eps
        for _ in range(self.max_sweeps):
            order, changed = rng.permutation(len(block.W)), 0
            for i in order:
                changed += self._visit(problem, block, listed[i], i, threshold)
                if block.late():
                    return updates + changed
            updates += changed
            if not changed:
                if threshold <= eps:
                    break
                threshold = max(eps, _THRESHOLD_FALL * threshold)
        return updates

    def pairs(self, problem: Problem, block: Block, worst: float) -> np.ndarray:
        """Which pairs (i, r) take part, as a mask."""
        if self.reach is None:
            return np.ones(block.G.shape, dtype=bool)
        return problem.listed(block.alpha, block.G, block.y, self.reach * worst)

    def _visit(self, problem: Problem, block: Block, listed: np.ndarray, i: int, threshold: float) -> bool:
        """Solve for sample ``i`` if its violation is above the threshold; whether its row changed."""
        classes = np.flatnonzero(listed)
        own = np.searchsorted(classes, block.y[i])
        alpha, G, C = block.alpha[i, classes], block.G[i, classes], block.C[i]
        if problem.measure(DualRows(alpha[None], G[None], np.array([own]), np.array([C])))[0][0] <= threshold:
            return False
        new = problem.update(self.update, alpha, G, int(own), C, block.diagonal[i] / self.relax)
        delta = new - alpha
        if np.abs(delta).max() <= 1e-15 * C:
            return False
        block.alpha[i, classes] = new
        block.G[:, classes] += np.outer(block.K[i], delta)
        return True
