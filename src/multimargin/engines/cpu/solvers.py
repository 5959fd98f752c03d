"""Native block solvers: which inner solver runs as which native call.

An inner solver without a native form runs as its NumPy specification.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ... import _core
from ...inner import CoordinateDescent, InnerSolver, PairDescent, ProjectedGradient, VariableProjection, work
from ...inner.block import Block
from ...run.profile import Profile, timed
from ...system.memory import WHOLE_SAMPLES
from ...system.team import SOLO, Team
from ...system.typing import FloatArray
from ..base import EngineOptions, is_late
from .block_leap import BlockLeap
from .blocks import Blocks, LazyBlock, SampleBlock, StoreBlock
from .state import State
from .team_blocks import PartBlock, SharedBlock, TeamBlocks

_TOGETHER, _LEAST_BATCH = 64, 4  # samples that all processes of a shared descent solve at once; each of them
_SWEEPS_TOGETHER = 20  # of a shared descent: a block that takes more needs other means
_VISITS = 400_000  # of samples, before coordinate descent asks whether its finisher would be faster
_DEAR = 2.0  # times its own work: so long a finisher waits if samples are many; descent may end by then


def steps_at_once(ranks: int) -> int:
    """The most samples that each process of a shared descent solves before it tells the others."""
    return max(_LEAST_BATCH, _TOGETHER // ranks)


class Solvers:
    """The inner solvers of one fit, and the work that they have done."""

    def __init__(self, state: State, options: EngineOptions, profile: Profile) -> None:
        self.state, self.options, self.profile = state, options, profile
        self.problem = state.problem
        self.work = 0  # so far, in the units of ``inner/work.py``
        self.least_descent = work.LEAST_DESCENT
        self.creeps = False  # whether a limit ended the last descent, short of its aim
        self.pause_at = math.inf  # work after which another method may take over
        self._work_at_leap = 0  # work that had been done when another method moved all samples
        self._deadline = math.inf
        self.in_python: set[str] = set()  # names of solvers that have no native form
        self._work_at_finish = 0
        self._block_leap: BlockLeap | None = None
        self._rng = np.random.default_rng(options.seed)

    def use(self, blocks: Blocks) -> None:
        """Solve blocks made by ``blocks`` from now on."""
        self.blocks = blocks
        self._kept_classes: _core.KeptClasses | None = None

    def after_leap(self, due: float) -> None:
        """Another method has moved all samples, and may do so again after this much work."""
        self._work_at_leap = self.work
        self.least_descent = int(min(self.least_descent, due))

    @property
    def progress(self) -> tuple[int, int, Any]:
        """What the next solution depends on, beside its block; another process may take it over."""
        return self.work, self._work_at_finish, self._rng.bit_generator.state

    @progress.setter
    def progress(self, told: tuple[int, int, Any]) -> None:
        self.work, self._work_at_finish, self._rng.bit_generator.state = told

    @timed("inner")
    def solve(self, inner: InnerSolver, block: Block, eps: float, deadline: float = math.inf) -> int:
        """Solve the block in place, about until ``deadline``; return the inner iterations."""
        self._deadline = deadline
        block.late = partial(is_late, deadline, SOLO)  # with a deadline one process solves for all
        if inner.name in _NATIVE:
            return _NATIVE[inner.name](self, inner, block, eps)
        self.in_python.add(inner.name)
        steps = inner.solve(self.problem, block, eps, self._rng)
        self.work += steps * block.G.size
        return steps

    def solve_by_first(
        self,
        team: Team,
        inner: InnerSolver,
        block: Block,
        eps: float,
        deadline: float,
        meanwhile: Callable[[Block], None] | None = None,
    ) -> int:
        """Let the first process solve the block and send the result; what the others do ``meanwhile``."""
        steps = 0
        if team.rank == 0:
            steps = self.solve(inner, block, eps, deadline)
        elif meanwhile is not None:
            meanwhile(block)
        sent, counts = slice(None if team.rank == 0 else 0), [len(block.W)] + [0] * (team.size - 1)
        with self.profile.phase("messages"):
            for rows in (block.alpha, block.G):  # one after the other: no message of n x m numbers
                rows[:] = team.join(rows[sent], counts)
            steps, self.progress = team.agree((steps, self.progress))
        return steps

    @property
    def _seconds(self) -> float:
        """How long a native solver may take."""
        return self._deadline - time.perf_counter()

    def _projected_gradient(self, inner: ProjectedGradient, block: Block, eps: float) -> int:
        options = _core.GradientOptions(
            eps=eps,
            max_iter=inner.max_iter,
            rho_min=inner.rho_min,
            rho_max=inner.rho_max,
            memory=inner.memory,
            patience=inner.patience,
            initial_step=inner.initial_step,
            seconds=self._seconds,
        )
        K, G, alpha, y, C = block.K, block.G, block.alpha, block.y, block.C
        rest = self.options.n_threads, _exchange(block)
        if not self.problem.balanced:
            return int(_core.projected_gradient(self.problem.name, K, G, alpha, y, C, options, *rest)[0])
        low, high = self.problem.bounds(y, C)
        return int(_core.balanced_gradient(K, G, alpha, low, high, options, inner.projection, *rest)[0])

    def _variable_projection(self, inner: VariableProjection, block: Block, eps: float) -> int:
        low, high = self.problem.bounds(block.y, block.C)
        arrays = block.K, block.G, block.alpha, low, high
        rest = inner.projection, self.options.n_threads, _exchange(block)
        options = _core.ProjectionOptions(
            eps=eps,
            max_iter=inner.max_iter,
            rho=inner.rho,
            period=inner.period,
            flat=inner.flat,
            seconds=self._seconds,
        )
        return int(_core.variable_projection(*arrays, options, *rest)[0])

    def _move_pairs(self, inner: PairDescent, block: Block, eps: float) -> int:
        low, high = self.problem.bounds(block.y, block.C)
        steps, _, done = _core.pair_descent(
            block.K,
            diag=block.diagonal,
            G=block.G,
            alpha=block.alpha,
            low=low,
            high=high,
            eps=eps,
            max_iter=inner.max_iter,
            most_work=self._most_work(block, alone=True),
            seconds=self._seconds,
            **(block.source if isinstance(block, LazyBlock) else {}),
        )
        self.work += done
        return steps

    def _descend(self, inner: CoordinateDescent, block: Block, eps: float) -> int:
        """Sweeps; if these do not suffice, the finisher on what is undecided, and sweeps again."""
        # Thousands of small products: several BLAS threads save little, and on shared cores cost far more.
        with self.blocks.rows.values.one_blas_thread():
            if inner.finish is None:
                return self._sweeps(inner, block, eps, inner.max_sweeps)[0]
            alpha, G = block.alpha.copy(), block.G.copy()
            memory = self.blocks.budget.finisher_bytes
            cheap, since = _VISITS // len(block.W), self._paid_for_finish
            some, most = max(inner.max_sweeps // 3, cheap), max(inner.max_sweeps, cheap)
            leap = self._leap_in(block)
            if some < most and leap is None and not inner.finish.within(since, memory).fits(block, eps):
                return self._sweeps(inner, block, eps, most)[0]
            updates, done = self._sweeps(inner, block, eps, some)
            if done or block.late():
                return updates
            finish = inner.finish.within(since, memory)
            fits = finish.fits(block, eps)
            if not fits and leap is None:
                return updates
            # Sweeps leave the gradient of pairs that took no part as it was.
            moved = np.flatnonzero((block.alpha != alpha).any(axis=1))
            block.G[:] = G
            block.shift_gradient(moved, block.alpha[moved] - alpha[moved], memory)
            finished = fits and finish.solve(self.problem, block, eps, self._rng) > 0
            if not finished and leap is not None:
                leap.take(block, eps, self.work, block.late)
            updates += self._sweeps(inner, block, eps, some)[0]
        if finished:
            self._work_at_finish = self.work
        return updates

    @property
    def _paid_for_finish(self) -> int:
        """The work that a finisher may take: all since it was used last, or a part of that."""
        since = self.work - self._work_at_finish
        return since if self.state.count <= WHOLE_SAMPLES else int(since / _DEAR)

    def _leap_in(self, block: Block) -> BlockLeap | None:
        """The leap within blocks, if the method has leaps and one may pay in this block."""
        if not self.options.leap or not self.state.shard.alone:
            return None
        if self._block_leap is None:
            self._block_leap = BlockLeap(self.state, self.blocks.budget.finisher_bytes)
        return self._block_leap if self._block_leap.may_pay(block, self.work) else None

    def _sweeps(self, inner: CoordinateDescent, block: Block, eps: float, sweeps: int) -> tuple[int, bool]:
        """Up to so many sweeps: the updates made, and whether ``eps`` was reached."""
        most = self._most_work(block, alone=False)
        if isinstance(block, SampleBlock) and not self.problem.coupled:
            made, updates, violation, done = self._sweeps_by_computed_class(inner, block, eps, sweeps)
        elif isinstance(block, StoreBlock):
            made, updates, violation, done = self._sweeps_by_class(inner, block, eps, sweeps)
        else:
            self._kept_classes = None  # its memory is now the block's
            made, updates, violation, done = self._sweeps_by_sample(inner, block, eps, sweeps)
        self.work += int(done)
        self.creeps = violation > eps and (made >= sweeps or done >= most)
        return int(updates), violation <= eps

    @timed("inner")
    def descend_together(
        self, team: Team, inner: CoordinateDescent, part: PartBlock, eps: float, width: float, deadline: float
    ) -> tuple[int, bool]:
        """Descend with all processes of the team: the updates of all, and whether ``eps`` was reached."""
        assert isinstance(self.blocks, TeamBlocks)
        self._deadline = deadline
        others = _core.SharedArguments(
            batch=steps_at_once(team.size),
            rank=team.rank,
            ranks=team.size,
            exchange=lambda mine: team.gather(mine).ravel(),
        )
        options = self._options(
            inner,
            part,
            alone=False,
            eps=eps,
            width=width,
            max_sweeps=max(min(inner.max_sweeps, _SWEEPS_TOGETHER), _VISITS // part.movable),
            update=inner.update,
            seed=int(self._rng.integers(2**63)),
        )
        arrays = part.source, part.G, part.alpha, part.y, part.C
        room = self.blocks.copies_of_rows()
        _, updates, violation, done = _core.shared_descent(self.problem.name, *arrays, options, others, room)
        self.work += int(done)
        self.creeps = violation > eps
        return int(updates), violation <= eps

    def _options(self, inner: CoordinateDescent, block: Block, *, alone: bool, **rest: Any) -> Any:
        return _core.DescentOptions(
            most_work=self._most_work(block, alone),
            seconds=self._seconds,
            staged=inner.staged,
            relax=inner.relax,
            faces=inner.faces,
            spans=inner.spans,
            partners=inner.partners,
            whole=inner.looks_at_all(len(block.W), self.state.m),
            n_threads=self.options.n_threads,
            **rest,
        )

    def _sweeps_by_sample(self, inner: CoordinateDescent, block: Block, eps: float, sweeps: int) -> Any:
        seed = int(self._rng.integers(2**63)) if len(block.W) > 1 else self.options.seed
        width = self._width(inner, block)
        rest = {"eps": eps, "max_sweeps": sweeps, "update": inner.update, "seed": seed, "width": width}
        arrays = block.diagonal, block.G, block.alpha, block.y, block.C
        options = self._options(inner, block, alone=inner.finish is None, **rest)
        name = self.problem.name
        if isinstance(block, SampleBlock):
            kernel = block.values.row_by_row(block.W)
            return _core.descent_from_samples(name, kernel, *arrays, options, block.room)
        return _core.coordinate_descent(name, block.K, *arrays, options, self.blocks.work_space(block))

    def _sweeps_by_class(self, inner: CoordinateDescent, block: StoreBlock, eps: float, sweeps: int) -> Any:
        if self._kept_classes is None:
            self._kept_classes = _core.KeptClasses(self.state.m, self.blocks.largest**2)
        arrays = block.K, block.slots, block.W, block.diagonal, block.G, block.alpha, block.y, block.C
        width = self._width(inner, block)
        options = self._options(inner, block, alone=True, eps=eps, max_sweeps=sweeps, width=width)
        return _core.class_descent(self._kept_classes, *arrays, options)

    def _sweeps_by_computed_class(
        self, inner: CoordinateDescent, block: SampleBlock, eps: float, sweeps: int
    ) -> Any:
        width = self._width(inner, block)
        options = self._options(inner, block, alone=True, eps=eps, max_sweeps=sweeps, width=width)
        arrays = block.diagonal, block.G, block.alpha, block.y, block.C
        kernel = block.values.row_by_row(block.W)
        return _core.class_descent_from_samples(kernel, *arrays, options, block.room.dtype.name)

    def _width(self, inner: CoordinateDescent, block: Block) -> float:
        """How far the gradient may be expected to move: which pairs (sample, class) take part."""
        return math.inf if inner.reach is None else inner.reach * self.state.largest_violation(block)

    def _most_work(self, block: Block, alone: bool) -> int:
        """What one descent may take; ``alone`` says that no other method would finish the block."""
        whole = block.movable == self.state.count and alone
        most = max(self.work, self.least_descent) * (work.WHOLE_PROBLEM if whole else 1)
        since = self.work - self._work_at_leap
        return int(min(most, max(self.pause_at - self.work, 0.5 * since, self.least_descent)))


def _exchange(block: Block) -> Callable[[FloatArray], FloatArray] | None:
    """What puts products with a shared block together."""
    return block.exchange if isinstance(block, SharedBlock) else None


_NATIVE: dict[str, Callable[[Solvers, Any, Any, float], int]] = {
    CoordinateDescent.name: Solvers._descend,
    ProjectedGradient.name: Solvers._projected_gradient,
    VariableProjection.name: Solvers._variable_projection,
    PairDescent.name: Solvers._move_pairs,
}
