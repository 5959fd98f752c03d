"""The tuned numbers of the linear machine, all in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Which code runs, how far steps go, what a pass visits, and when a proof is tried.

    ``python benchmarks/checks/linear_tuning.py NAME`` shows why a number is as it is: it fits with smaller
    and larger values of NAME too, and prints visits, proofs and seconds. Its head lists the few numbers that
    no stored problem shows. ``python benchmarks/peers/linear.py`` shows what all of them achieve together.
    """

    # Which code runs.
    few_passes: int = 10  # With max_iter up to this, passes visit all samples, as in Algorithm 1.
    many_classes: int = 128  # Above this, "auto" pivots instead of sorting.
    single_tol: float = 1e-5  # Below this tol, weights start in float64: float32 cannot resolve it.
    # Threads that share a pass.
    parallel_work: float = 1e7  # Threads share a pass above this many non-zeros * classes per pass,
    parallel_row: float = 1e3  # and this many per row: with less, they mostly wait for each other.
    thread_classes: int = 24  # Least classes per thread. With fewer, reading the row dominates.
    most_threads: int = 8  # With more, samples lack too many of each other's steps.
    threads_share: float = 0.85  # Threads end if the dual falls by less than this share of what they saw.
    # Processes that share the samples (rounds.py).
    round_visits: int = 100  # Samples that all processes together visit between two exchanges of weights.
    stretch: float = 0.3  # Steps are shorter by a factor of 1 plus this, per process beyond the first.
    stretch_growth: float = 1.3  # Growth of that factor if the dual rose,
    rise: float = 1e-3  # by more than this share of the fall that was hoped for.
    # Length of steps.
    relax: float = 1.3  # Steps are this many times the exact step after the first pass.
    near: float = 1.6  # Once the gap seen in a pass is below this many times its target,
    settle: float = 0.6  # steps are shortened to this, because each step adds to the gap of other samples.
    # What a pass visits and updates.
    early_passes: int = 7  # The number of passes that count as early.
    early: float = 0.3  # Early passes update samples whose violation is above this share of the mean.
    late: float = 1.0  # The same for later passes.
    few_updates: float = 0.05  # The threshold is halved if fewer active samples than this share change.
    least_share: float = 0.1  # The threshold is at least this share of the violation aimed at.
    idle_share: float = 0.5  # After a pass over all samples without updates it is at most this share of tol.
    fall: float = 0.1  # All samples are visited again once the violations fell to this share,
    most_active: int = 50  # or after this many passes over active samples.
    # When a proof is tried.
    aim: float = 0.95  # Share of tol aimed at, so that rounding does not make the exact proof fail.
    stricter: float = 0.8  # Factor of that aim after a failed proof: a pass sees violations before its end.
    gap_aim: float = 0.95  # Share of gap_tol aimed at.
    gap_stricter: float = 0.95  # Factor of that aim after a failed proof, which also corrects the estimate.
    measure_every: int = 5  # Passes over all samples between two measurements of the gap.
    left_share: float = 0.7  # Least share of the gap seen in a pass that is expected after it.
    left_growth: float = 1.1  # Largest growth of that share per measurement, since single passes are noisy.
    sample: int = 4096  # Least number of samples from which the gap is estimated.
    progress: float = 0.9  # A failed proof made progress if its violation is below this share of the best.
    most_proofs: int = 10  # The fit stalls after this many failed proofs in a row without progress.
    # When proximal Newton steps take over (proximal.py, finish.py).
    newton_after: int = 100  # Passes that come first,
    newton_early: int = 5  # or so many if a step costs at most
    newton_cheap: float = 5.0  # so many passes over all samples, and no gap as large as
    newton_early_gap: float = 1e-4  # this is enough: passes are as fast on the way to a larger one.
    newton_gap: float = (
        0.2  # If the relative gap is larger then, Newton steps begin at once. Otherwise passes
    )
    newton_part: float = 0.2  # go on for this part of the multiplications (which are slower in passes)
    newton_steps: int = 30  # of so many Newton steps.
    newton_share: float = 0.25  # With a squared loss, so many passes per feature are enough,
    newton_least: int = 4  # but at least so many come first.
    newton_values: int = 50_000_000  # Most values of an array with one per sample and class, or feature.
    newton_features: int = 100_000  # Most weights, or samples times classes, whichever is fewer.
    newton_bytes: int = 1 << 28  # Most bytes of Newton's matrices.
    first_sigma: float = 1000.0  # The first σ times the mean |x|², at most the largest cost.
    first_cost: float = 1e9  # A fit begins with costs of at most this over the median |x|² (stages.py),
    last_cost: float = 1e12  # and goes no further than about this: then float64 has too few digits.
    polish: int = 100  # Problems of at most this many samples are solved to polish_tol.
    polish_tol: float = 1e-9  # The violation aimed at then; rounding may leave more.
