"""What a leap works on: a problem, and a point of it."""

from __future__ import annotations

from typing import Protocol

from ...problems.base import DualRows, Problem
from ...system.shard import Shard
from ...system.team import Team
from ...system.typing import FloatArray, LabelArray
from ..base import Selection


class Point(Protocol):
    """A problem and a point of it, with the gradient and the dual there.

    It has all samples of a fit, those that take part (``part_point.py``), or those of a block
    (``block_leap.py``).
    """

    problem: Problem
    shard: Shard
    team: Team
    m: int
    G: FloatArray
    dual: float

    @property
    def y(self) -> LabelArray: ...

    @property
    def C(self) -> FloatArray: ...  # noqa: N802  (the name of the formulas)

    @property
    def alpha(self) -> FloatArray: ...

    @property
    def bias(self) -> FloatArray: ...

    def select(self, k: int, rank: str, stop: str, above: float, among: str, even: bool) -> Selection: ...

    def violation_at(self, rows: DualRows) -> float:
        """The largest violation at another point, here, as ``select`` measures it."""
        ...

    def place(self, alpha: FloatArray) -> None: ...
