"""The samples that take part, as the problem that a leap solves."""

from __future__ import annotations

from collections.abc import Callable

from ...problems.base import DualRows
from ...system.shard import Shard
from ...system.team import SOLO, Team
from ...system.typing import FloatArray, IntArray, LabelArray
from ..base import Selection
from .pivoted_cholesky import Columns
from .state import State


class PartPoint:
    """The rows of a state that take part; numbers are their places among these."""

    def __init__(self, state: State, part: IntArray) -> None:
        self._state, self._part = state, part
        self.problem, self.m = state.problem, state.m
        self.team: Team = SOLO
        self.shard = Shard(len(part), SOLO)
        self._before = state.G  # of all samples, before the last move, or after it

    @property
    def y(self) -> LabelArray:
        return self._state.y[self._part]

    @property
    def C(self) -> FloatArray:  # noqa: N802  (the name of the formulas)
        return self._state.C[self._part]

    @property
    def bias(self) -> FloatArray:
        return self._state.bias

    @property
    def alpha(self) -> FloatArray:
        return self._state.alpha[self._part]

    @property
    def G(self) -> FloatArray:  # noqa: N802
        return self._state.G[self._part]

    @G.setter
    def G(self, other: FloatArray) -> None:  # noqa: N802
        """Change between the points before and after the last move, for all samples."""
        self._state.G, self._before = self._before, self._state.G

    @property
    def dual(self) -> float:
        return self._state.dual

    @dual.setter
    def dual(self, value: float) -> None:
        self._state.dual = value

    def select(self, k: int, rank: str, stop: str, above: float, among: str, even: bool) -> Selection:
        """See ``Engine.select``; only those that take part are looked at anyway."""
        return self._state.select(k, rank, stop, above, among, even)

    def violation_at(self, rows: DualRows) -> float:
        """The largest ψ_i at another point of those that take part."""
        return self._state.violation_at(rows)

    def place(self, alpha: FloatArray) -> None:
        """Take over ``alpha``; G and the dual follow elsewhere."""
        self._state.place(self._state.whole(alpha))

    def mover(self, place: Callable[[FloatArray], None]) -> Callable[[FloatArray], None]:
        """Of ``place``, which moves all samples, the form for those that take part."""

        def move(alpha: FloatArray) -> None:
            self._before = self._state.G
            place(self._state.whole(alpha))

        return move

    def columns(self, columns: Columns) -> Columns:
        """Of kernel columns of all samples, the form for those that take part."""
        return lambda ids: columns(self._part[ids])[self._part]
