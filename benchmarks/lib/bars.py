"""Bars: ours is certified, and takes at most so many times a peer's, or the floor's, seconds."""

from __future__ import annotations

from benchmarks.lib.arena import TOL, Result
from benchmarks.lib.report import Report


def check_ratio(report: Report, text: str, ours: Result, peer: Result, bar: float) -> None:
    """Claim that ours takes at most ``bar`` times the peer's best seconds.

    A peer that was stopped at its limit is slower than that: enough to hold a bar, never enough to miss it.
    """
    text = f"{text}: at most {bar:g} x {peer.name}"
    if ours.best is None:
        report.claim(text, False, f"no time of ours: {ours.absent}")
    elif peer.best is not None:
        ratio = ours.best / peer.best
        report.claim(text, ratio <= bar, f"{ratio:.3g} ({ours.best:.3g} s, {peer.best:.3g} s)")
    elif peer.slower_than is not None:
        most = ours.best / peer.slower_than
        held = True if most <= bar else None
        report.claim(text, held, f"below {most:.3g} ({ours.best:.3g} s, more than {peer.slower_than:g} s)")
    else:
        report.claim(text, None, str(peer.absent))


def is_certified(ours: Result, tol: float = TOL) -> bool:
    """Whether our model is optimal to ``tol`` by its coefficients; what the solver says must agree."""
    found = ours.judgement
    return found is not None and found.certified(tol) and bool(ours.facts["converged"])


def check_certified(report: Report, text: str, ours: Result, tol: float = TOL) -> None:
    found = ours.judgement
    numbers = f"violation {found.psi:.2e}" if found else str(ours.infeasible or ours.absent)
    report.claim(f"{text}: optimal to {tol:g}, recomputed in float64", is_certified(ours, tol), numbers)


def seconds(value: float | None) -> str:
    """For a table."""
    return "" if value is None else f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def said(result: Result) -> str:
    """A contender's best seconds, or why it has none."""
    return seconds(result.best) if result.seconds else str(result.absent)
