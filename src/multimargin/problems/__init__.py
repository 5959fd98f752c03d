"""The machines: one file each, opening with its primal, dual and optimality conditions."""

from __future__ import annotations

from .base import Problem
from .c_svc import CSvc
from .crammer_singer import CrammerSinger
from .lee_lin_wahba import LeeLinWahba
from .msvm2 import MSVM2
from .one_vs_rest import OneVsRest
from .squared_one_vs_rest import SquaredOneVsRest
from .weston_watkins import WestonWatkins

PROBLEMS: dict[str, type[Problem]] = {
    problem.name: problem for problem in (CrammerSinger, WestonWatkins, LeeLinWahba, MSVM2, OneVsRest, CSvc)
}

# Those with a linear form, by the names that the native code gives them.
LINEAR_PROBLEMS: dict[str, type[Problem]] = {
    problem.name: problem for problem in (CrammerSinger, WestonWatkins, OneVsRest, SquaredOneVsRest)
}

__all__ = [
    "LINEAR_PROBLEMS",
    "MSVM2",
    "PROBLEMS",
    "CSvc",
    "CrammerSinger",
    "LeeLinWahba",
    "OneVsRest",
    "Problem",
    "SquaredOneVsRest",
    "WestonWatkins",
]
