"""Blondel et al.'s Algorithm 1 for a few passes, one thread, by each of their five methods."""

from __future__ import annotations

from typing import Any

from multimargin import LinearSVC

EXACT = ("sort", "pivot")
METHODS = (*EXACT, "bisection", "smo", "frank-wolfe")
TAU = 1e-3  # of bisection, unless it is varied


def algorithm1(method: str, passes: int, *, C: float = 1.0, tau: float = TAU) -> LinearSVC:
    """Every pass over all samples in a new random order, no intercept; stops at nothing but ``passes``."""
    options: dict[str, Any] = {"tau": tau} if method in ("bisection", "smo") else {}
    return LinearSVC(
        C=C,
        subproblem=method,
        tol=1e-12,
        max_iter=passes,
        fit_intercept=False,
        shrinking=False,
        n_threads=1,
        random_state=0,
        **options,
    )


def pass_seconds(model: LinearSVC) -> float:
    """Of one pass of a fit of several: without preparation, the gap after the first pass, and the proof."""
    seconds = model.trace_["seconds"]
    return float(seconds[-1] - seconds[0]) / (len(seconds) - 1)
