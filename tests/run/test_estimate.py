"""The share of a fit that is done, and the time left, on traces of real fits."""

import math
import subprocess
import sys
import time
from itertools import pairwise

import pytest

from multimargin import KernelSVC
from multimargin.run.estimate import Estimate, in_words, time_left
from multimargin.solution import TraceRow

# Share of the time, largest violation, duality gap: Crammer-Singer and c-svc by "auto" on 6,000 rows of 20
# features, the cost of one sample 10; one-vs-rest on the same rows; "mcsvm" on digits, where no gap is known.
TRACES = {
    "crammer-singer": """.01 1 6e4  .02 2.84 4.6e4  .05 2.43 3.5e4  .15 2.29 2.43e4  .35 2.22 1.05e4
        .51 1.34 4450  .67 .582 935  .73 .298 265  .83 .0364 105  .88 .0166 13  .94 .00142 2.47""",
    "c-svc": """.06 1 6e4  .13 3.48 3.13e4  .22 3.41 4.25e4  .37 2.69 1.78e4  .5 2.49 9180  .57 1.62 6350
        .61 .533 655  .68 .128 334  .76 .0383 149  .81 .00947 31.4  .86 .00145 4.59""",
    "one-vs-rest": """.02 1 3e5  .05 3.36 1.2e5  .1 3.11 6.96e4  .17 2.47 4.32e4  .25 2.17 1.97e4
        .32 1.41 3990  .41 .475 1190  .59 .0749 323  .72 .0195 49.1  .88 .00194 13.4""",
    "mcsvm": """.001 1 nan  .12 .431 nan  .18 .14 nan  .24 .0796 nan  .32 .0409 nan  .45 .0156 nan
        .57 .00665 nan  .73 .00301 nan  .82 .00208 nan  .91 .00155 nan""",
}


def rows_of(trace, seconds):
    numbers = [float(word) for word in TRACES[trace].split()]
    for k, (share, violation, gap) in enumerate(zip(*[iter(numbers)] * 3, strict=True)):
        yield TraceRow(k + 1, share * seconds, violation, -1.0, gap, 10, 10, 0, 0, 0, 10 * k)


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("seconds", [1.0, 600.0])
def test_the_share_done_is_near_the_share_of_the_time(trace, seconds):
    estimate, before = Estimate(1e-3), -1.0
    for row in rows_of(trace, seconds):
        estimate.see(row)
        share = row.seconds / seconds
        assert before <= estimate.done < 1.0
        assert estimate.done == pytest.approx(share, abs=0.25)
        before = estimate.done


@pytest.mark.parametrize("trace", TRACES)
def test_the_time_left_is_believable(trace):
    """From a third of the time on: within a factor of 2.5, or an eighth of the whole."""
    estimate, seconds = Estimate(1e-3), 100.0
    for row in rows_of(trace, seconds):
        estimate.see(row)
        truth = seconds - row.seconds
        if row.seconds > seconds / 3:
            left = estimate.left(row.seconds)
            assert left == pytest.approx(truth, abs=12) or truth / 2.5 <= left <= 2.5 * truth


def test_a_plateau_of_the_violation_is_no_standstill():
    shares = []
    estimate = Estimate(1e-3)
    for row in list(rows_of("crammer-singer", 1.0))[:5]:  # the violation is above 2 all the time
        estimate.see(row)
        shares.append(estimate.done)
    assert all(later > earlier for earlier, later in pairwise(shares))


def test_the_share_goes_on_between_iterations_and_never_to_the_end():
    estimate = Estimate(1e-3)
    assert estimate.left(5.0) is None
    for row in list(rows_of("c-svc", 10.0))[:4]:
        estimate.see(row)
    shares = [estimate.share(seconds) for seconds in (3.7, 5.0, 7.0, 100.0)]
    assert shares == sorted(shares)
    assert shares[0] < shares[2] < 1.0
    assert estimate.left(100.0) == 0.0


def test_odd_rows():
    estimate = Estimate(1e-3)
    for violation, gap in ((0.0, 0.0), (math.inf, math.nan), (1e-9, -1e-12)):
        estimate.see(TraceRow(1, 0.1, violation, 0.0, gap, 1, 1, 0, 0, 0, 1))
        assert 0.0 <= estimate.done < 1.0


def test_times_in_words():
    assert [in_words(s) for s in (0.2, 59.4, 61, 7260)] == ["under 1 s", "59 s", "1 min 1 s", "2 h 1 min"]


def test_what_is_left_in_words():
    assert [time_left(s) for s in (0.2, 61)] == ["under 1 s left", "about 1 min 1 s left"]


def test_the_bar_moves_during_a_long_iteration(monkeypatch, capsys):
    """A callback that takes long stands for a long round: the clock of the bar goes on."""
    X = [[float(i % 7), float(i % 11)] for i in range(200)]
    y = [i % 3 for i in range(200)]
    monkeypatch.setattr("multimargin.run.progress.EVERY", 0.02)
    KernelSVC(verbose=1, callback=lambda row: time.sleep(0.15)).fit(X, y)
    err = capsys.readouterr().err
    assert err.count("KernelSVC:") > 5
    assert "100%" in err


def test_importing_the_package_imports_no_tqdm():
    code = "import multimargin, sys; assert not any('tqdm' in name for name in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
