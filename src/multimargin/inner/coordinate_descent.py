"""Block coordinate descent: one sample's problem at a time, in shuffled sweeps over the block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..problems.base import DualRows, Problem
from ..problems.updates import UPDATES
from .base import ANY_SET, Finisher, InnerSolver
from .block import Block

_VISITS = 400_000  # of samples, before coordinate descent asks whether another method would finish faster


def _within(finish: Finisher, limits: tuple[int, int] | None) -> Finisher:
    return finish if limits is None else finish.within(*limits)


@dataclass(frozen=True)
class CoordinateDescent(InnerSolver):
    """Block coordinate descent with an exact (or Frank-Wolfe) single-sample update.

    Shuffled sweeps over W; only rows with ψ_i above a threshold are updated.

    Parameters
    ----------
    update : {"sort", "pivot", "bisection", "fixed-point", "smo", "frank-wolfe"}
        How the problem of a single sample is solved; all but "frank-wolfe" are exact.
    max_sweeps : int
        Largest number of sweeps over the block.
    staged : bool
        Start with a threshold of half the largest violation, and let it fall by 0.3 a stage down to ``eps``.
    relax : float
        ω of over-relaxation, between 0 and 2: the single-sample problem is solved with K_ii / ω, as in SOR.
        1 is exact; a little more cuts the updates of ill-conditioned blocks.
    reach : float or None
        Only pairs (i, r) take part that have α_ir ≠ 0 or whose gradient is within ``reach`` times the block's
        largest violation of the row's maximum; the others can hardly become active. None is all pairs.
    faces : bool
        Whether native engines may accelerate the descent: between sweeps they minimise over the coefficients
        off their bounds by conjugate gradients. The optimum is the same; the plain solver does without.
    finish : Finisher or None
        Where a third of the sweeps (more for small blocks) does not suffice, this solves what is undecided,
        if that takes no longer than all updates since it was used last, and sweeps follow.

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
    update: str = "sort"
    max_sweeps: int = 300
    staged: bool = True
    relax: float = 1.0
    reach: float | None = None
    faces: bool = False
    finish: Finisher | None = None

    def __post_init__(self) -> None:
        if not 0 < self.relax < 2:
            raise ValueError(f"relax must be between 0 and 2, got {self.relax!r}.")
        if self.reach is not None and not self.reach >= 0:
            raise ValueError(f"reach must be None or at least 0, got {self.reach!r}.")
        if self.update not in UPDATES:
            raise ValueError(f"Unknown update {self.update!r}; use one of {', '.join(map(repr, UPDATES))}.")

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if self.update not in problem.updates:
            able = " or ".join(map(repr, problem.updates))
            raise ValueError(f"The update {self.update!r} is not for {problem.name}; use {able}.")
        if self.finish is not None:
            self.finish.check(problem)

    def solve(self, problem: Problem, block: Block, eps: float, rng: np.random.Generator) -> int:
        def descend(sweeps: int) -> tuple[int, bool]:
            return self._sweeps(problem, block, eps, sweeps, rng)

        return self.run(descend, lambda: None, problem, block, eps, rng)[0]

    def run(
        self,
        descend: Callable[[int], tuple[int, bool]],
        refresh: Callable[[], None],
        problem: Problem,
        block: Block,
        eps: float,
        rng: np.random.Generator,
        limits: tuple[int, int] | None = None,
    ) -> tuple[int, bool]:
        """The method, given ``descend``: up to so many sweeps → updates made, and whether it got to ``eps``.

        ``refresh`` brings the gradient of pairs that did not take part up to date; ``limits`` are the work
        and the bytes that ``finish`` may take. Returns the updates made, and whether ``finish`` was used.
        """
        if self.finish is None:
            return descend(self.max_sweeps)[0], False
        cheap = _VISITS // len(block.W)
        some, most = max(self.max_sweeps // 3, cheap), max(self.max_sweeps, cheap)
        if some < most and not _within(self.finish, limits).fits(block, eps):
            return descend(most)[0], False
        updates, done = descend(some)
        if done:
            return updates, False
        finish = _within(self.finish, limits)
        if some == most and not finish.fits(block, eps):
            return updates, False
        refresh()
        used = finish.solve(problem, block, eps, rng) > 0
        return updates + descend(some)[0], used

    def _sweeps(
        self, problem: Problem, block: Block, eps: float, sweeps: int, rng: np.random.Generator
    ) -> tuple[int, bool]:
        updates, worst = 0, self.worst(problem, block)
        listed = self.pairs(problem, block, worst)
        threshold = max(eps, 0.5 * worst) if self.staged else eps
        for _ in range(sweeps):
            changed = 0
            for i in rng.permutation(len(block.W)):
                changed += self._visit(problem, block, listed[i], i, threshold, rng)
            updates += changed
            if not changed:
                if threshold <= eps:
                    return updates, True
                threshold = max(eps, 0.3 * threshold)
        return updates, False

    def worst(self, problem: Problem, block: Block) -> float:
        """The largest ψ_i of the block."""
        return float(problem.measure(block.rows())[0].max())

    def pairs(self, problem: Problem, block: Block, worst: float) -> np.ndarray:
        """Which pairs (i, r) take part, as a mask."""
        if self.reach is None:
            return np.ones(block.G.shape, dtype=bool)
        return problem.listed(block.alpha, block.G, block.y, self.reach * worst)

    def _visit(
        self,
        problem: Problem,
        block: Block,
        listed: np.ndarray,
        i: int,
        threshold: float,
        rng: np.random.Generator,
    ) -> bool:
        classes = np.flatnonzero(listed)
        own = np.searchsorted(classes, block.y[i])
        alpha, G, C = block.alpha[i, classes], block.G[i, classes], block.C[i]
        if problem.measure(DualRows(alpha[None], G[None], np.array([own]), np.array([C])))[0][0] <= threshold:
            return False
        new = problem.update(self.update, alpha, G, int(own), C, block.diagonal[i] / self.relax, rng)
        delta = new - alpha
        if np.abs(delta).max() <= 1e-15 * C:
            return False
        block.alpha[i, classes] = new
        block.G[:, classes] += np.outer(block.K[i], delta)
        return True
