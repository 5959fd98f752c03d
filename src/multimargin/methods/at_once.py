"""Small problems solved at once, without the outer loop.

Up to some thousand samples the first working set of a growing one is everyone, and most fits end with its
block. If nothing is asked for on the way, all that the outer loop would do is then one descent and one proof.
"""

from __future__ import annotations

from ..engines.base import Certificate
from ..engines.cpu.at_once import AtOnce
from ..run.monitor import Monitor
from ..solution import LARGE_GAP, Solution, Status
from .decomposition import LEAST_SHARE, POLISH_EPS, Decomposition
from .working_sets import Growing


def may_solve_at_once(method: Decomposition, monitor: Monitor, n: int) -> bool:
    """Whether the outer loop would begin with all samples, and nobody watches it."""
    rule = method.working_set
    everyone = isinstance(rule, Growing) and rule.most is None and n <= rule.whole
    return everyone and method.stop == "psi" and monitor.is_unlimited


def solve_at_once(method: Decomposition, problem: AtOnce, monitor: Monitor, tol: float) -> Solution | None:
    """The solution, or None if one descent did not reach it."""
    violation, gap = problem.start()
    eps = tol
    proof = _proved(problem, POLISH_EPS if problem.n <= method.polish else method.inner_floor * tol)
    while proof.violation <= tol and proof.relative_gap > LARGE_GAP and 0.1 * eps >= LEAST_SHARE * tol:
        eps *= 0.1
        proof = _proved(problem, method.inner_floor * eps)
    n, trace = problem.n, monitor.trace
    counts = {"working_set": n, "inner": problem.updates, "rows": n, "support": len(problem.ids)}
    monitor.note(violation=violation, gap=gap, dual=proof.dual, **counts)
    if not proof.violation <= tol:
        return None
    trace.info.update(problem.describe(), seconds=monitor.seconds, profile=dict(problem.profile.seconds))
    certified = Status.CONVERGED, proof.violation, proof.primal, proof.dual, proof.gap, trace
    return Solution(*certified, n, *problem.found())


def _proved(problem: AtOnce, eps: float) -> Certificate:
    problem.descend(eps)
    return problem.prove()
