"""The rules that choose working sets, under their public name."""

from .methods.working_sets import (
    Choice,
    Cyclic,
    Gain,
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
    "Growing",
    "MaxViolator",
    "Practical",
    "Random",
    "SvmLight",
    "WorkingSet",
]
