"""Solvers of the block subproblem, one file each, and the block that they solve."""

from __future__ import annotations

from .base import Finisher, InnerSolver
from .block import Block
from .box_interior_point import BoxInteriorPoint
from .coordinate_descent import CoordinateDescent
from .frank_wolfe import FrankWolfe
from .interior_point import InteriorPoint
from .pair_descent import PairDescent
from .projected_gradient import ProjectedGradient
from .variable_projection import VariableProjection

# Every solver of a block by itself; finishers are parts of others.
SOLVERS: tuple[type[InnerSolver], ...] = (
    CoordinateDescent,
    ProjectedGradient,
    FrankWolfe,
    PairDescent,
    VariableProjection,
    BoxInteriorPoint,
)

__all__ = [
    "SOLVERS",
    "Block",
    "BoxInteriorPoint",
    "CoordinateDescent",
    "Finisher",
    "FrankWolfe",
    "InnerSolver",
    "InteriorPoint",
    "PairDescent",
    "ProjectedGradient",
    "VariableProjection",
]
