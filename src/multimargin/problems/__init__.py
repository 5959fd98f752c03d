"""The machines: one file each, opening with its primal, dual and optimality conditions."""

from __future__ import annotations

from .base import Problem
from .crammer_singer import CrammerSinger

PROBLEMS: dict[str, type[Problem]] = {CrammerSinger.name: CrammerSinger}

__all__ = ["PROBLEMS", "CrammerSinger", "Problem"]
