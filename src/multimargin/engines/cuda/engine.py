"""The CUDA engine: every verb of the seam on one GPU."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from ...inner import Block as HostBlock
from ...inner.base import InnerSolver
from ...inner.block import Aim
from ...problems.zero_sums import balanced, with_zero_sums
from ...run.profile import Profile, timed
from ...system.device_data import on_host
from ...system.memory import WHOLE_SAMPLES
from ...system.shard import Shard
from ...system.team import SOLO, Team
from ...system.threads import blas_threads
from ...system.typing import Data, FloatArray, IntArray
from ..base import (
    Certificate,
    Counts,
    Engine,
    EngineOptions,
    Found,
    Improvement,
    Selection,
    Task,
    is_late,
)
from ..cpu.kernel_values import FIXED_POINT_TOL, LARGE_COST
from ..diagonal import TINY_DIAGONAL, exact_diagonal
from ..divergence import check_dual
from ..solved_costs import SolvedCosts
from ..turns import in_turns
from .blocks import Blocks
from .descent import Descent, Moved, has_device_form
from .device import SHARE, cupy, describe, free_bytes, memory_errors
from .leap import DeviceLeap
from .state import DeviceState
from .values import KernelValues, kernel_values

# No kernel rows are kept, so blocks get so many times their share of the memory, up to a limit.
_BLOCK_SHARE, MOST_SHARE = 2.5, 0.75
_ADD = 0.5  # of the support vectors: if fewer samples moved, their steps alone are added to the scores
_TAKEN = 8  # additions in a row before scores are summed anew


class CudaEngine(Engine):
    """Kernel values, coefficients, gradient and block solvers on one GPU.

    A block K_WW is computed for every new working set, because that takes less time than to keep values.
    Coordinate descent and pair descent become batched greedy descent (``descent.py``). Other solvers run on
    the host, on a copy of the block. After a step, the scores of all samples are computed in float64.

    A ``team`` may work on one fit, if each process has all samples; what the first one finds counts.
    """

    name: ClassVar[str] = "cuda"

    @memory_errors()
    def __init__(self, task: Task, options: EngineOptions, team: Team = SOLO) -> None:
        cupy()
        self.options, self.problem, self.team = options, task.problem, team
        self.n, self.m, self.offset = len(task.y), task.m, task.offset
        self.profile = Profile()
        self._values_computed = 0
        self._bounded = task.kernel.native in ("rbf", "laplacian")
        self._single = options.dtype == "float32" or (
            options.dtype == "auto" and self._bounded and self.n > WHOLE_SAMPLES
        )
        # Errors of values count as often as coefficients are large.
        self._coarse = float(task.C.max()) <= LARGE_COST and options.tol >= FIXED_POINT_TOL
        self._budget = options.budget(self.n, self._value_dtype().itemsize, temporary_bytes=0)
        with self.profile.phase("memory"):
            self._own_diagonal = task.kernel.diagonal(task.X)
            self.task = task
            self.values = self._make_values()
            self.blocks = self._make_blocks()
        self._begin(task)

    def _begin(self, task: Task, scores: Any = None) -> None:
        """Make all that belongs to one fit; ``scores`` as in ``DeviceState``."""
        self.task = task
        self._rng = np.random.default_rng(self.options.seed)
        self._since_sum, self._iterations, self._creeps = 0, 0, False
        self._on_host: set[str] = set()
        with self.profile.phase("memory"):
            self.diagonal = exact_diagonal(task, self._own_diagonal)
            self.costs = SolvedCosts(task, self.diagonal)
        with self.profile.phase("gradient"):
            self.state = DeviceState(task, self.values, self.diagonal, self.costs, self.team, scores)
        check_dual(task, self.state.dual, self.costs.asked_total)
        self._leap = DeviceLeap(self.state, self.diagonal, self.options.leap and self.team.size == 1)

    def _make_values(self) -> KernelValues:
        return kernel_values(self.task)

    def _make_blocks(self) -> Blocks:
        return Blocks(self.values)

    @staticmethod
    def memory() -> int:
        """Bytes for ``cache_size="auto"``."""
        return int(SHARE * free_bytes())

    def _value_dtype(self) -> np.dtype[Any]:
        """How values of a block are stored."""
        if not self._single:
            return np.dtype(np.float64)
        fixed_point = self._bounded and self._coarse and self.options.dtype == "auto"
        return np.dtype(np.uint16 if fixed_point else np.float32)

    @property
    def bias(self) -> FloatArray:
        return self.state.bias

    @property
    def dual(self) -> float:
        return self.state.dual

    @property
    def total_cost(self) -> float:
        return self.costs.total

    @contextmanager
    def running(self) -> Iterator[None]:
        with memory_errors(), blas_threads(self.options.n_threads):
            yield

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
        cp, facts, every = cupy(), self.state.facts, among in ("all", "near")
        left = self._excess(stop, facts.psi, facts.gain, self.state.C)
        score = facts.psi if rank == "psi" else facts.gain
        able = (left > above) & (score > 0)
        if not every:
            inside = self.state.alpha.any(axis=0) == (among == "support")
            left, able = cp.where(inside, left, -math.inf), able & inside
        violation, gap, count = cp.stack([left.max(), facts.gain.sum(), able.sum()]).get()
        ids = cp.flatnonzero(able)
        if even:
            order = ids[cp.argsort(-score[ids])].get()
            chosen = np.array(in_turns(order.tolist(), self.task.y, -(-k // self.problem.m)), dtype=np.int64)
        else:
            chosen = ids[cp.argsort(-score[ids])[:k]].get()
        largest = 0.0 if math.isinf(violation) else float(violation)
        return self.agree(Selection(chosen, largest, float(gap) if every else math.nan, int(count)))

    def _excess(self, stop: str, psi: Any, gain: Any, C: Any) -> Any:
        """What ``stop`` bounds by the tolerance, per sample: psi, or ``Problem.closeness``."""
        if stop == "psi" or self.problem.name == "msvm2":
            return psi / self.problem.kappa
        return gain / (self.problem.gap_scale * C)

    def support(self, reach: float = math.inf) -> IntArray:
        ids = self.state.support
        if math.isinf(reach):
            return ids
        return np.asarray(ids[~self.problem.settled(self.state.rows(ids), reach)])

    def everyone(self) -> IntArray:
        return np.arange(self.n) if self.state.part is None else self.state.part

    def groups(self, ids: IntArray) -> np.ndarray:
        rows = self.state.rows(ids)
        return self.problem.group(rows.alpha, rows.y, rows.C)

    @timed("selection")
    def pairs(self, most: int, second_order: bool = False) -> tuple[IntArray, IntArray]:
        rows, ids = self.state.taking_part(), self.everyone()
        shard = Shard(len(ids))
        up, down = self.problem.pairs(rows, 1 if second_order else most, shard)
        if second_order and len(up):
            pair = np.concatenate([up, down])
            curvature = self._curvature(ids[pair])[:, ids]
            up, down = self.problem.gaining_pairs(rows, pair, curvature, most, shard)
        return self.agree((ids[up], ids[down]))

    def _curvature(self, pair: IntArray) -> FloatArray:
        """The curvature along the pairs of each sample with either of the two."""
        columns = self.values.scores(pair, cupy().eye(len(pair))).get()
        curvature = self.diagonal[pair][:, None] + self.diagonal - 2.0 * columns
        return np.asarray(np.maximum(curvature, TINY_DIAGONAL * self.diagonal.max()))

    def largest_block(self) -> int:
        asked = self.options.block_share
        share = min(max(asked, MOST_SHARE), _BLOCK_SHARE * asked)
        values = int(share * self.options.cache_bytes) // self._value_dtype().itemsize
        return max(self._budget.largest_block, math.isqrt(values))

    def counts(self) -> Counts:
        computed = self._values_computed + self.blocks.computed
        return Counts(round(computed / self.n), 0, 0, len(self.state.support))

    def describe(self) -> dict[str, object]:
        facts: dict[str, object] = {
            "engine": self.name,
            "device": describe(),
            "n_threads": self.options.n_threads,
            "row_dtype": self._value_dtype().name,
            "kernel_form": self.values.form,
            "iterations": self._iterations,
        }
        if self._on_host:
            facts["solved_on_host"] = sorted(self._on_host)
        return facts

    # -- move ----------------------------------------------------------------------------------------
    def improve(self, W: IntArray, inner: InnerSolver, aim: Aim, keep: bool = False) -> Improvement:
        steps, ids, delta = self._solved(W, inner, aim)
        with self.profile.phase("gradient"):
            self._take(ids, delta)
        return Improvement(steps, len(ids) > 0)

    def _solved(self, W: IntArray, inner: InnerSolver, aim: Aim) -> Moved:
        """Solve the block of ``W``, and take the result over into alpha."""
        if has_device_form(inner):
            return self._descend(W, inner, aim)
        self._on_host.add(inner.name)
        return self._solve_on_host(W, inner, aim)

    def _late(self) -> bool:
        """Whether the block solver should end, by the clock of this process."""
        return is_late(self.deadline, SOLO)

    def _eps(self, W: IntArray, inner: InnerSolver, aim: Aim) -> float:
        """The tolerance in units of the scores, as ``Aim.eps`` defines it."""
        least = aim.least * self.problem.kappa
        everyone = self.n if self.state.part is None else len(self.state.part)
        if aim.share == 0 or (least > 0 and len(W) in (1, everyone)):
            return least
        psi = self.state.facts.psi
        start = psi.max() if len(W) == everyone else psi[cupy().asarray(W)].max()
        return max(aim.share * float(start), least)

    def _descend(self, W: IntArray, inner: InnerSolver, aim: Aim) -> Moved:
        eps = self._eps(W, inner, aim)
        with self.profile.phase("kernel rows"):
            K = self.blocks.of(W, self._value_dtype())
            cupy().cuda.get_current_stream().synchronize()
        descent = Descent(self.state, "float32" if self._single else "float64")
        with self.profile.phase("inner"):
            block = descent.gather(W)
            before, pause = block.v.copy(), self._leap.iterations_left(self._iterations)
            try:
                steps = descent.run(block, K, self.offset, eps, self._late, pause)
            except KeyboardInterrupt:
                descent.scatter(block, before)
                self.state.lose()
                raise
            self._iterations, self._creeps = self._iterations + descent.iterations, descent.crept
            return Moved(steps, *descent.scatter(block, before))

    @staticmethod
    def may_add(moved: int, support: int, additions: int) -> bool:
        """Whether scores get the change of the samples that moved, after so many ``additions`` in a row."""
        return moved < _ADD * support and additions < _TAKEN

    def _take(self, ids: IntArray, delta: Any) -> None:
        """G for the new alpha: from the steps alone if they are few."""
        self.state.lose()
        if not len(ids):
            self.state.is_exact = True
            return
        support = len(self.state.support)
        adds = self.may_add(len(ids), support, self._since_sum)
        self._since_sum = self._since_sum + 1 if adds else 0
        self._values_computed += self.n * (len(ids) if adds else support)
        if adds:
            self.state.add(ids, delta)
        else:
            self.state.refresh()
        check_dual(self.task, self.state.dual, self.costs.asked_total)

    def _solve_on_host(self, W: IntArray, inner: InnerSolver, aim: Aim) -> Moved:
        with self.profile.phase("kernel rows"):
            K = self.values.block(W, np.dtype(np.float64))[:, : len(W)].get() + self.offset
            np.fill_diagonal(K, self.diagonal[W])
            self._values_computed += len(W) ** 2
        rows = self.state.rows(W)
        block = HostBlock(W, K, self.diagonal[W], rows.alpha.copy(), rows.G, rows.y, rows.C)
        block.late = self._late
        with self.profile.phase("inner"):
            eps = aim.eps(self.problem, inner.measure, block, self.n)
            try:
                steps = inner.solve(self.problem, block, eps, self._rng)
            except KeyboardInterrupt:
                self.state.write(W, block.alpha)
                self.state.lose()
                raise
        delta = block.alpha - rows.alpha
        moved = np.flatnonzero(delta.any(axis=1))
        self.state.write(W, block.alpha)
        return Moved(steps, W[moved], cupy().asarray(np.ascontiguousarray(delta[moved])))

    @timed("leap")
    def leap(self, tol: float) -> bool:
        return self._leap.take(tol, self._iterations, self._creeps, self._late)

    def promote(self, drift: float = 0.0) -> bool:
        if drift > 0 or self.options.dtype != "auto" or not self._single:
            return False
        self._single = False
        try:
            self._budget = self.options.budget(self.n, 8, temporary_bytes=0)
        except ValueError:  # float64 values do not fit the memory budget
            self._single = True
            return False
        return True

    def raise_costs(self) -> bool:
        if not self.costs.are_capped:
            return False
        alpha = self.costs.rise(self.state.rows().alpha, self.task.y)
        if alpha is not None:
            self.state.take_costs()
            self.state.place(alpha)
        return alpha is not None

    # -- the bias ------------------------------------------------------------------------------------
    def sums(self) -> FloatArray:
        return self.state.sums()

    def shift(self, change: FloatArray) -> None:
        self.state.shift(change)

    @timed("selection")
    def centre(self) -> None:
        self.shift(self.agree(np.array([self.problem.centre(self.state.taking_part())])))

    def best_bias(self, most: float = math.inf) -> None:
        ids, S = self.everyone(), self.state.scores(self.state.part)
        best = self.problem.best_bias(S, self.task.y[ids], self.task.C[ids], self.bias)
        self.shift(self.agree(np.clip(best - self.bias, -most, most)))

    def balance(self) -> bool:
        alpha, _, y, C = self.state.taking_part()
        found = self.agree(balanced(self.problem, alpha, y, C, SOLO))
        if found is not None:
            self.state.place(self.state.whole(found))
        return found is not None

    def zero_sums(self) -> None:
        alpha, _, y, C = self.state.taking_part()
        self.state.place(self.state.whole(self.agree(with_zero_sums(self.problem, alpha, y, C, SOLO))))
        self.best_bias()

    # -- certify -------------------------------------------------------------------------------------
    @timed("proof")
    def prove(self) -> Certificate:
        if not self.state.is_exact:
            self.state.refresh()
            self._since_sum = 0
        return self.certificate()

    @timed("proof")
    def certificate(self) -> Certificate:
        cp, state = cupy(), self.state
        solved, asked = state.facts, state.asked_facts
        psi = cp.maximum(asked.psi, solved.psi)  # with the stricter share near zero
        gain = asked.gain
        closeness = self._excess("gain", psi, gain, state.asked)
        violation, close, loss, gap = cp.stack(
            [psi.max(), closeness.max(), asked.loss.sum(), gain.sum()]
        ).get()
        certificate = Certificate(
            violation=float(violation) / self.problem.kappa,
            gain=float(close),
            primal=state.energy + float(loss),
            dual=state.dual,
            gap=float(gap),
        )
        return self.agree(certificate)

    def found(self) -> Found:
        cp, ids = cupy(), self.state.support
        at = cp.asarray(ids)
        coef = np.ascontiguousarray(self.state.alpha[:, at].T.get())
        loss = (self.state.asked_facts.loss[at] / self.state.asked[at]).get()
        return Found(ids, coef, loss, self.bias + self.offset * self.sums())

    def samples(self, ids: IntArray) -> Data:
        return on_host(self.task.X[ids])
