"""Several GPUs: ranks with a card each, all of which have all samples.

    block    the first rank computes K_WW, descends, and sends what moved: Δα
    scores   S_i = Σ_j K(x_i, x_j) α_j in float64, each rank for its share of the samples i; then all get all
    look     every rank does the same with the same numbers; what the first one finds counts

Scores are also the proof. They take n · n_SV kernel values. A descent cannot be shared at the cost of
messages: it has thousands of iterations of 30 µs. ``docs/decisions/cuda.md`` says what was tried.
"""

from __future__ import annotations

import math
import platform
from typing import Any, ClassVar

import numpy as np

from ...inner.base import InnerSolver
from ...inner.block import Aim
from ...system.team import Team
from ...system.typing import IntArray
from ..base import Counts, EngineOptions, Task, needs_all
from ..cuda.descent import Moved
from ..cuda.device import cupy, memory_errors
from ..cuda.engine import CudaEngine
from ..cuda.values import EVERYONE, KernelValues
from .whole import whole_task

_ALIGNED = 16  # the kernels read samples from a multiple of it on


class CardsEngine(CudaEngine):
    """Every rank has the whole state of a fit on its card; the ranks share out the scores."""

    name: ClassVar[str] = "cards"

    def __init__(self, task: Task, options: EngineOptions) -> None:
        needs_all(task, self.name)
        super().__init__(whole_task(task), options, task.team)

    def _make_values(self) -> KernelValues:
        return SharedScores(super()._make_values(), self.n, self.team)

    def _solved(self, W: IntArray, inner: InnerSolver, aim: Aim) -> Moved:
        made = super()._solved(W, inner, aim) if self.team.rank == 0 else None
        sent: Any = None
        if made is not None:
            sent = made.steps, made.ids, made.delta.get(), self.state.coefficients(made.ids).get()
        with self.profile.phase("messages"):
            steps, ids, delta, alpha = self.agree(sent)
        if made is not None:
            return made
        self.state.write(ids, alpha)
        self.state.lose()
        return Moved(steps, ids, cupy().asarray(delta))

    def counts(self) -> Counts:
        return self.agree(super().counts())

    def describe(self) -> dict[str, object]:
        return super().describe() | {"engine": "cuda"} | self.team.facts()


class SharedScores(KernelValues):
    """Kernel values of a card; scores are computed by all ranks, each those of its share of the samples."""

    def __init__(self, values: KernelValues, n: int, team: Team) -> None:
        self._values, self._team, self.form = values, team, values.form
        step = math.ceil(n / team.size / _ALIGNED) * _ALIGNED
        bounds = [min(n, rank * step) for rank in range(team.size + 1)]
        self._counts = np.diff(bounds).tolist()
        self._mine = slice(bounds[team.rank], bounds[team.rank + 1])

    def block(self, W: IntArray, dtype: np.dtype[Any]) -> Any:
        return self._values.block(W, dtype)

    def scores(self, ids: IntArray, coef: Any, part: slice = EVERYONE) -> Any:
        mine = np.ascontiguousarray(self._values.scores(ids, coef, self._mine).T.get())
        return cupy().ascontiguousarray(cupy().asarray(self._team.join(mine, self._counts)[part]).T)


@memory_errors()
def use_card(team: Team) -> None:
    """Let this process use a card of its own, if its host has one for each rank; else ranks share cards."""
    rank_here, _ = _ranks_here(team)
    cards = int(cupy().cuda.runtime.getDeviceCount())
    cupy().cuda.Device(rank_here % cards).use()


def ranks_on_card(team: Team) -> int:
    """How many ranks share a card of this host, at most."""
    _, ranks = _ranks_here(team)
    return -(-ranks // int(cupy().cuda.runtime.getDeviceCount()))


def _ranks_here(team: Team) -> tuple[int, int]:
    """The number of this process among those of its host, and how many these are."""
    hosts = team.collect(platform.node())
    return hosts[: team.rank].count(hosts[team.rank]), hosts.count(hosts[team.rank])
