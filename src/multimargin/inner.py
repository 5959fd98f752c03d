"""Solvers of the block subproblem.

Given a working set W, minimise over its rows alone, the others fixed (Niu & Yuan (2.6)):

    ½ ⟨Δ, K_WW Δ⟩ + ⟨G_W, Δ⟩,   Δ = α_W - α_W^old,   each α_i feasible.

Each class declares its parameters and the feasible sets it can handle, and ``solve`` is its executable
specification in plain NumPy; engines may run a native version of the same method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from .balanced_box import BalancedBox, check_projection
from .face import Face
from .problems import Problem
from .problems.base import Rows
from .problems.updates import UPDATES
from .typing import FloatArray, IntArray, LabelArray

_FACE_STEPS, _FACE_SHARE = 50, 0.3  # of conjugate gradients after a sweep; of the threshold, how exactly
ANY_SET = frozenset({"simplex", "box", "shifted box", "cone"})  # the feasible sets of single rows
_VISITS = 400_000  # of samples, before coordinate descent asks whether another method would finish faster


class Block(NamedTuple):
    """A working set with all that its subproblem needs. Solvers change ``alpha`` and ``G`` in place."""

    W: IntArray  # (q,) sample ids
    K: np.ndarray  # (q, q) kernel block
    diagonal: FloatArray  # (q,) exact K_ii, at least 1e-12 of the largest
    alpha: FloatArray  # (q, m)
    G: FloatArray  # (q, m)
    y: LabelArray
    C: FloatArray
    lazy: bool = False  # whether K is only room for rows that the engine's solver will compute
    slots: IntArray | None = None  # K is the engine's row store, and these its rows; -1 cannot move

    @property
    def movable(self) -> int:
        """How many of its samples can move."""
        return len(self.W) if self.slots is None else int(np.count_nonzero(self.slots >= 0))

    def rows(self) -> Rows:
        """The block's samples as the machine sees them."""
        return Rows(self.alpha, self.G, self.y, self.C)

    def shift_gradient(self, rows: IntArray, delta: FloatArray, step: int = 512) -> None:
        """G += K[:, rows] delta, in float64."""
        for first in range(0, len(self.W), step):
            part = slice(first, first + step)
            self.G[part] += self.K[part][:, rows].astype(np.float64) @ delta


@dataclass(frozen=True)
class InnerSolver(ABC):
    """Base of the inner solvers."""

    name: ClassVar[str]
    handles: ClassVar[frozenset[str]]  # feasible sets
    measure: ClassVar[
        str
    ]  # what ``eps`` bounds: "psi" (max ψ_i, in units of the scores) or "gain" (max g_i/c_i)
    lazy: ClassVar[bool] = False  # whether engines may leave K out where a machine lets it do with few rows

    @property
    def keeps_sums(self) -> bool:
        """Whether its steps leave Σ_i α_i as it was, so that a free bias needs nothing else."""
        return False

    @abstractmethod
    def solve(self, problem: Problem, block: Block, eps: float, rng: np.random.Generator) -> int:
        """Solve the block to ``eps`` in place; return the iterations (single-sample updates for CD)."""

    def check(self, problem: Problem) -> None:
        """Raise ``ValueError`` if the machine is not for this solver."""
        if problem.feasible_set not in self.handles:
            able = [c.name for c in InnerSolver.__subclasses__() if problem.feasible_set in c.handles]
            raise ValueError(
                f"{self.name} cannot handle the {problem.feasible_set} of {problem.name}; "
                f"use {' or '.join(able)}."
            )


class Finisher(InnerSolver):
    """An inner solver for blocks that are nearly solved: a part of another one, no solver by itself."""

    handles: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def within(self, work: int, memory: int) -> Self:
        """The same, refusing what would take longer than so much work of descent, or more bytes."""

    @abstractmethod
    def fits(self, block: Block, eps: float) -> bool:
        """Whether it is worth while: the block is nearly solved, and what is undecided is small."""


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
        Between sweeps, conjugate gradients over the pairs off their bounds, where those are few.
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
            if changed and self.faces and problem.faces:
                Face(block, listed).minimise(_FACE_SHARE * threshold, _FACE_STEPS)
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
        if problem.measure(Rows(alpha[None], G[None], np.array([own]), np.array([C])))[0][0] <= threshold:
            return False
        new = problem.update(self.update, alpha, G, int(own), C, block.diagonal[i] / self.relax, rng)
        delta = new - alpha
        if np.abs(delta).max() <= 1e-15 * C:
            return False
        block.alpha[i, classes] = new
        block.G[:, classes] += np.outer(block.K[i], delta)
        return True


class RowSets:
    """The feasible set of a block whose rows are each in a set of their own."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def project(self, block: Block, w: FloatArray) -> FloatArray:
        """The nearest point of the set to ``w``."""
        return self.problem.project(w, block.y, block.C)

    def towards(self, block: Block, target: FloatArray, step: float) -> FloatArray:
        """The point at this part, up to 1, of the way to ``target``."""
        return target if step == 1 else block.alpha + step * (target - block.alpha)

    def closeness(self, block: Block) -> float:
        """How far the block is from solved."""
        return float(self.problem.closeness(*self.problem.measure(block.rows()), block.C).max())


@dataclass(frozen=True)
class ProjectedGradient(InnerSolver):
    """Projected gradient, Niu & Yuan's Algorithm 3.

    Exact projection, multi-step Barzilai-Borwein lengths over the last ``memory`` + 1 pairs, Dai &
    Fletcher's nonmonotone line search with ``patience`` failures, stop on max_i g_i/c_i ≤ eps; where samples
    are coupled by their sum (c-svc), on the violation at the best bias, which is larger.

    Parameters
    ----------
    max_iter : int
        Largest number of steps.
    rho_min, rho_max : float
        Bounds of the step length.
    memory : int
        A step length is made of up to ``memory`` + 1 pairs.
    patience : int
        Failures to improve on the best value before the reference value is lowered.
    initial_step : {"projected", "ell"}
        The first length: Dai & Fletcher's 1/‖P(w - F) - w‖_∞, or the paper's 1/‖ℓ‖_∞.
    projection : {"pardalos-kovoor", "dai-fletcher"}
        How to project where samples are coupled (``balanced_box.py``).

    Examples
    --------
    >>> from multimargin import Decomposition, KernelSVC
    >>> from multimargin.inner import ProjectedGradient
    >>> from multimargin.working_set import SvmLight
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> solver = Decomposition(SvmLight(n_sp=150, n_c=150), ProjectedGradient())
    >>> KernelSVC(machine="c-svc", solver=solver).fit(X, y == 1).status_.converged
    True
    """

    name: ClassVar[str] = "projected-gradient"
    handles: ClassVar[frozenset[str]] = ANY_SET | {"balanced box"}
    measure: ClassVar[str] = "gain"
    max_iter: int = 2_000
    rho_min: float = 1e-10
    rho_max: float = 1e10
    memory: int = 2
    patience: int = 2
    initial_step: str = "projected"
    projection: str = "pardalos-kovoor"
    refresh_every: ClassVar[int] = 100

    def __post_init__(self) -> None:
        if self.initial_step not in ("projected", "ell"):
            raise ValueError(f"initial_step must be 'projected' or 'ell', got {self.initial_step!r}.")
        check_projection(self.projection)

    def solve(self, problem: Problem, block: Block, eps: float, rng: np.random.Generator) -> int:
        w, F, K = block.alpha, block.G, block.K
        feasible = BalancedBox(problem, block, self.projection) if problem.balanced else RowSets(problem)
        w_old, G_old = w.copy(), F.copy()
        f = f_best = f_c = 0.0
        f_ref, failures = np.inf, 0
        pairs: list[tuple[float, float]] = []  # (⟨s, s⟩, ⟨s, y⟩), oldest first
        w_best = w.copy()
        left = feasible.closeness(block)
        rho = self._clip(self._first_step(problem, feasible, block))
        for iteration in range(self.max_iter):
            if left <= eps:
                break
            target = feasible.project(block, w - rho * F)
            d = target - w
            Hd = K @ d
            slope, curvature = float(np.vdot(F, d)), float(np.vdot(d, Hd))
            theta = 1.0
            search = not pairs or f + slope + 0.5 * curvature > f_ref  # the first length is a guess
            if search and curvature > 0:
                theta = min(1.0, -slope / curvature)
            w[:] = feasible.towards(block, target, theta)
            F += theta * Hd
            f += theta * slope + 0.5 * theta**2 * curvature
            pairs = [*pairs, (theta**2 * float(np.vdot(d, d)), theta**2 * curvature)][-self.memory - 1 :]
            rho = self._next_step(pairs)
            if f < f_best:
                f_best = f_c = f
                failures = 0
                w_best[:] = w
            else:
                f_c, failures = max(f_c, f), failures + 1
                if failures == self.patience:
                    f_ref, f_c, failures = f_c, f, 0
            if (iteration + 1) % self.refresh_every == 0:
                F[:] = G_old + K @ (w - w_old)
            left = feasible.closeness(block)
        else:  # cut short, and nonmonotone: hand back the best point seen
            w[:] = w if f <= f_best else w_best
        F[:] = G_old + K @ (w - w_old)
        return iteration

    def _first_step(self, problem: Problem, feasible: RowSets | BalancedBox, block: Block) -> float:
        if self.initial_step == "ell":
            gain = problem.measure(block.rows())[1]
            return 1.0 / max(float((gain / block.C**2).max()), 1e-300)
        move = feasible.project(block, block.alpha - block.G) - block.alpha
        return 1.0 / max(float(np.abs(move).max()), 1e-300)

    def _next_step(self, pairs: list[tuple[float, float]]) -> float:
        newest: list[tuple[float, float]] = []
        for ss, sy in reversed(pairs):
            if sy <= 0:
                break
            newest.append((ss, sy))
        if not newest:
            return self.rho_max
        return self._clip(sum(ss for ss, _ in newest) / sum(sy for _, sy in newest))

    def _clip(self, rho: float) -> float:
        return min(max(rho, self.rho_min), self.rho_max)
