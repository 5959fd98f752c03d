"""The list of solvers: complete, and names that differ."""

from multimargin.inner import SOLVERS, InteriorPoint
from multimargin.inner.base import Finisher, InnerSolver
from multimargin.problems import PROBLEMS


def test_every_solver_is_listed():
    assert set(SOLVERS) == set(InnerSolver.__subclasses__()) - {Finisher}


def test_names_differ():
    names = [solver.name for solver in (*SOLVERS, InteriorPoint)]
    assert len(set(names)) == len(names)


def test_every_machine_has_a_solver():
    for problem in PROBLEMS.values():
        assert any(problem.feasible_set in solver.handles for solver in SOLVERS)
