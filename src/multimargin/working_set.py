"""The rules that choose working sets, under their public name."""

from __future__ import annotations

from .methods.working_sets import (
    Choice,
    Cyclic,
    Gain,
    Greedy,
    Growing,
    MaxViolator,
    Practical,
    Random,
    SvmLight,
    WorkingSet,
)

__all__ = [
    "Choice",
    "Cyclic",
    "Gain",
    "Greedy",
    "Growing",
    "MaxViolator",
    "Practical",
    "Random",
    "SvmLight",
    "WorkingSet",
]
