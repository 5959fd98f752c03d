"""The machines: one file each, opening with its primal, dual and optimality conditions."""

from __future__ import annotations

from .base import Problem
from .c_svc import CSvc
from .crammer_singer import CrammerSinger
from .lee_lin_wahba import LeeLinWahba
from .msvm2 import MSVM2
from .one_vs_rest import OneVsRest
from .weston_watkins import WestonWatkins

PROBLEMS: dict[str, type[Problem]] = {
    problem.name: problem for problem in (CrammerSinger, WestonWatkins, LeeLinWahba, MSVM2, OneVsRest, CSvc)
}

__all__ = [
    "MSVM2",
    "PROBLEMS",
    "CSvc",
    "CrammerSinger",
    "LeeLinWahba",
    "OneVsRest",
    "Problem",
    "WestonWatkins",
]
