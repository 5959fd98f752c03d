"""Solvers of the block subproblem, one file each, and the block that they solve.

``SOLVERS`` lists those that solve a block by themselves. ``InteriorPoint`` only finishes blocks that
``CoordinateDescent`` has nearly solved.
"""

from __future__ import annotations

from .base import Finisher, InnerSolver
from .block import Block
from .box_interior_point import BoxInteriorPoint
from .coordinate_descent import CoordinateDescent
from .frank_wolfe import FrankWolfe
from .pair_descent import PairDescent
from .projected_gradient import ProjectedGradient
from .undecided_interior_point import InteriorPoint
from .variable_projection import VariableProjection

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
