"""The executable specification: every verb as it is defined, in plain NumPy and float64.

Nothing is left out and no step is approximate. A small kernel matrix is computed once. Values of a larger one
are computed when they are needed and then forgotten. Every other engine must give the same answers.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..inner.base import InnerSolver
from ..inner.block import Aim, Block
from ..problems.base import DualRows
from ..problems.zero_sums import balanced, with_zero_sums
from ..run.profile import Profile, timed
from ..system.shard import Shard
from ..system.threads import blas_threads
from ..system.typing import Data, FloatArray, IntArray
from .base import (
    Certificate,
    Counts,
    Engine,
    EngineOptions,
    Found,
    Improvement,
    Selection,
    Task,
    is_late,
    needs_all,
)
from .diagonal import TINY_DIAGONAL, exact_diagonal
from .divergence import check_dual
from .solved_costs import SolvedCosts
from .turns import in_turns

_VALUES_AT_ONCE = 1 << 22  # kernel values held at a time


class ReferenceEngine(Engine):
    """Alpha and G as NumPy arrays of one process."""

    name: ClassVar[str] = "numpy"
    bias: FloatArray = np.zeros(0)
    dual: float = 0.0

    def __init__(self, task: Task, options: EngineOptions) -> None:
        needs_all(task, self.name)
        self.task, self.options, self.problem, self.team = task, options, task.problem, task.team
        self.n, self.m, self.offset = len(task.y), task.m, task.offset
        self.profile = Profile()
        self._budget = options.budget(self.n, 8, temporary_bytes=8)
        self._at_once = min(max(1, _VALUES_AT_ONCE // self.n), self._budget.rows_in_python)  # rows
        self._rng = np.random.default_rng(options.seed)
        self._rows_computed = 0
        whole = self.n**2 <= _VALUES_AT_ONCE and self._budget.kept_rows == self.n
        with np.errstate(over="ignore", invalid="ignore"):  # said by the diagonal
            self._K = task.kernel.whole(task.X) if whole else None
        values = task.kernel.diagonal(task.X) if self._K is None else self._K.diagonal()
        self.diagonal = exact_diagonal(task, values)
        self.costs = SolvedCosts(task, self.diagonal)
        self.bias = np.zeros(self.m) if task.bias is None else task.bias
        self._place(task.alpha())

    @property
    def total_cost(self) -> float:
        return self.costs.total

    def running(self) -> AbstractContextManager[Any]:
        return blas_threads(self.options.n_threads)

    # -- the definitions -----------------------------------------------------------------------------
    def _kernel(self, rows: IntArray, columns: IntArray | None = None) -> FloatArray:
        if self._K is None:
            return self.task.kernel.block(self.task.X, rows, columns) + self.offset
        return self._K[rows if columns is None else np.ix_(rows, columns)] + self.offset

    def _product(self, ids: IntArray, coef: FloatArray) -> FloatArray:
        """Σ_j K(x_i, x_j) coef_j over ``ids``, for every sample i."""
        S = np.zeros((self.n, coef.shape[1]))
        for first in range(0, len(ids), self._at_once):
            part = slice(first, first + self._at_once)
            S += self._kernel(ids[part]).T @ coef[part]
        return S

    def _place(self, alpha: FloatArray) -> None:
        """Take ``alpha`` over: G = (K + R) α - T + b, and the dual."""
        self.alpha, ids = alpha.copy(), np.flatnonzero(alpha.any(axis=1))
        S = self._product(ids, alpha[ids])
        if not np.isfinite(S).all():
            check_dual(self.task, math.nan, 0.0)
        y, C = self.task.y, self.task.C
        self.G = self.problem.gradient(S, alpha, y, C) + self.bias
        self.dual = self.problem.dual(alpha, S, y, C) + float(self.bias @ self.sums())

    def _rows(self) -> DualRows:
        return DualRows(self.alpha, self.G, self.task.y, self.costs.solved)

    def _scores(self) -> FloatArray:
        return self.problem.scores(self.G - self.bias, self.alpha, self.task.y, self.task.C)

    # -- look ----------------------------------------------------------------------------------------
    @timed("selection")
    def select(
        self,
        k: int,
        *,
        rank: str = "psi",
        stop: str = "psi",
        above: float = 0.0,
        among: str = "all",
        even: bool = False,
        seen: bool = False,
    ) -> Selection:
        every = among in ("all", "near")
        ids = np.flatnonzero(every | (self.alpha.any(axis=1) == (among == "support")))
        if not len(ids):
            return Selection(ids, 0.0, math.nan, 0)
        rows = self._rows().take(ids)
        psi, gain = self.problem.measure(rows)
        left = psi / self.problem.kappa if stop == "psi" else self.problem.closeness(psi, gain, rows.C)
        score = psi if rank == "psi" else gain
        order = [int(i) for i in np.argsort(-score, kind="stable") if left[i] > above and score[i] > 0]
        chosen = in_turns(order, rows.y, -(-k // self.problem.m)) if even else order[:k]
        gap = float(gain.sum()) if every else math.nan
        return Selection(ids[chosen], float(left.max()), gap, len(order))

    def support(self, reach: float = math.inf) -> IntArray:
        ids = np.flatnonzero(self.alpha.any(axis=1))
        if math.isinf(reach):
            return ids
        return np.asarray(ids[~self.problem.settled(self._rows().take(ids), reach)])

    def groups(self, ids: IntArray) -> np.ndarray:
        return self.problem.group(self.alpha[ids], self.task.y[ids], self.costs.solved[ids])

    @timed("selection")
    def pairs(self, most: int, second_order: bool = False) -> tuple[IntArray, IntArray]:
        rows = self._rows()
        shard = Shard(self.n, self.team)
        up, down = self.problem.pairs(rows, 1 if second_order else most, shard)
        if not second_order or not len(up):
            return up, down
        pair = np.concatenate([up, down])
        curvature = self.diagonal[pair][:, None] + self.diagonal - 2.0 * self._kernel(pair)
        curvature = np.maximum(curvature, TINY_DIAGONAL * self.diagonal.max())
        return self.problem.gaining_pairs(rows, pair, curvature, most, shard)

    def largest_block(self) -> int:
        return self._budget.largest_block

    def counts(self) -> Counts:
        return Counts(self._rows_computed, 0, 0, len(self.support()))

    def describe(self) -> dict[str, object]:
        return {"engine": self.name, "n_threads": self.options.n_threads, "row_dtype": "float64"}

    # -- move ----------------------------------------------------------------------------------------
    def improve(self, W: IntArray, inner: InnerSolver, aim: Aim, keep: bool = False) -> Improvement:
        with self.profile.phase("kernel rows"):
            K = self._kernel(W, W)
            np.fill_diagonal(K, self.diagonal[W])
        y, C = self.task.y[W], self.costs.solved[W]
        block = Block(W, K, self.diagonal[W], self.alpha[W], self.G[W], y, C)
        block.late = partial(is_late, self.deadline, self.team)
        try:
            with self.profile.phase("inner"):
                eps = aim.eps(self.problem, inner.measure, block, self.n)
                steps = inner.solve(self.problem, block, eps, self._rng)
            with self.profile.phase("gradient"):
                return Improvement(steps, self._move(W, block.alpha))
        except KeyboardInterrupt:
            self.alpha[W] = block.alpha
            raise

    def _move(self, W: IntArray, alpha: FloatArray) -> bool:
        """Give the samples ``W`` these rows: G += (K + R) Δ, D += ⟨G, Δ⟩ + ½ ⟨Δ, (K + R) Δ⟩."""
        delta = alpha - self.alpha[W]
        moved = np.flatnonzero(delta.any(axis=1))
        W, delta = W[moved], delta[moved]
        change = self._product(W, delta)
        ridge = self.problem.ridge(self.task.C)
        if ridge is not None:
            change[W] += ridge[W, None] * delta
        self.dual += float(np.vdot(self.G[W] + 0.5 * change[W], delta))
        check_dual(self.task, self.dual, self.costs.asked_total)
        self.G += change
        self.alpha[W] = alpha[moved]
        self._rows_computed += len(W)
        return len(W) > 0

    def leap(self, tol: float) -> bool:
        return False

    def raise_costs(self) -> bool:
        alpha = self.costs.rise(self.alpha, self.task.y)
        if alpha is not None:
            self._place(alpha)
        return alpha is not None

    # -- the bias ------------------------------------------------------------------------------------
    def sums(self) -> FloatArray:
        return np.asarray(self.alpha.sum(axis=0))

    def shift(self, change: FloatArray) -> None:
        self.bias = self.bias + change
        self.G += change
        self.dual += float(change @ self.sums())

    def centre(self) -> None:
        self.shift(np.array([self.problem.centre(self._rows())]))

    def best_bias(self, most: float = math.inf) -> None:
        best = self.problem.best_bias(self._scores(), self.task.y, self.task.C, self.bias)
        self.shift(np.clip(best - self.bias, -most, most))

    def balance(self) -> bool:
        alpha = balanced(self.problem, self.alpha, self.task.y, self.costs.solved, self.team)
        if alpha is not None:
            self._place(alpha)
        return alpha is not None

    def zero_sums(self) -> None:
        self._place(with_zero_sums(self.problem, self.alpha, self.task.y, self.costs.solved, self.team))
        self.best_bias()

    # -- certify -------------------------------------------------------------------------------------
    @timed("proof")
    def prove(self) -> Certificate:
        self._place(self.alpha)
        return self.certificate()

    @timed("proof")
    def certificate(self) -> Certificate:
        y, C = self.task.y, self.task.C
        psi, gain = self.problem.measure(self._rows()._replace(C=C))
        psi = np.maximum(psi, self.problem.measure(self._rows())[0])  # with the stricter share near zero
        return Certificate(
            violation=float(psi.max()) / self.problem.kappa,
            gain=float(self.problem.closeness(psi, gain, C).max()),
            primal=self.problem.primal(self.alpha, self._scores(), self.bias, y, C),
            dual=self.dual,
            gap=float(gain.sum()),
        )

    def found(self) -> Found:
        ids = self.support()
        scores, y = self._scores()[ids] + self.bias, self.task.y[ids]
        loss = self.problem.loss(scores, y, np.ones(len(ids)))
        return Found(ids, self.alpha[ids], loss, self.bias + self.offset * self.sums())

    def samples(self, ids: IntArray) -> Data:
        return self.task.X[ids]
