"""Ctrl-C during a linear fit: heard within a second, raised cleanly or kept as an honest model."""

import os
import signal
import textwrap
import threading

import numpy as np
import pytest
from helpers import audit_linear
from interrupts import interrupted
from sklearn.exceptions import ConvergenceWarning

from multimargin import LinearSVC
from multimargin.linear.descent import LinearFit
from multimargin.linear.schedule import Goal
from multimargin.solution import Status

INTERRUPT = textwrap.dedent(
    """
    import signal, sys, time, warnings
    import numpy as np
    from multimargin import LinearSVC
    from multimargin.linear.tuning import Tuning

    LinearSVC._tuning = Tuning(parallel_work=0, parallel_row=0, thread_classes=1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
    warnings.simplefilter("ignore")
    threads, keep, rows = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    width = rows // 200
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(rows, width)).astype(np.float32), rng.integers(width, size=rows)
    rest = {"subproblem": "sort", "n_threads": threads, "on_interrupt": keep}  # passes alone
    model = LinearSVC(C=1e6, tol=1e-9, max_iter=-1, **rest)
    print("ready", flush=True)
    try:
        model.fit(X, y)
        heard = time.monotonic()
        facts = model.status_.name, model.duality_gap_ > 0, len(model.predict(X[:5]))
        print("kept", heard, *facts, flush=True)
    except KeyboardInterrupt:
        print("raised", time.monotonic(), hasattr(model, "coef_"), flush=True)
    """
)


def interrupt(threads, keep, rows):
    return interrupted(INTERRUPT, str(threads), keep, str(rows))


posix = pytest.mark.skipif(os.name != "posix", reason="SIGINT needs a POSIX system")


@posix
@pytest.mark.parametrize(
    ("threads", "rows"), [(1, 600), (1, 20_000), (2, 20_000)], ids=["short passes", "long passes", "threads"]
)
def test_ctrl_c_raises_within_a_second(threads, rows):
    seconds, words = interrupt(threads, "raise", rows)
    assert words == ["raised", "False"]  # no half model left behind
    assert seconds < 1.0


@posix
def test_ctrl_c_keeps_a_usable_labelled_model():
    seconds, words = interrupt(2, "keep", 8000)
    assert words == ["kept", "INTERRUPTED", "True", "5"]
    assert seconds < 5.0  # with the proof


@pytest.mark.parametrize(
    ("owner", "where"), [(LinearFit, "run_pass"), (Goal, "measure"), (LinearFit, "prove")]
)
def test_interrupt_anywhere_is_kept(owner, where, digits, monkeypatch):
    """Between passes, while the gap is measured, and during the proof itself."""
    X, y = digits
    plain, calls = getattr(owner, where), []

    def interrupted(self, *arguments, **named):
        calls.append(where)
        if len(calls) == (2 if where == "run_pass" else 1):
            raise KeyboardInterrupt
        return plain(self, *arguments, **named)

    monkeypatch.setattr(owner, where, interrupted)
    if where == "prove":  # the point that was to be proved is optimal
        assert LinearSVC(on_interrupt="keep", tol=1e-5).fit(X, y).status_ is Status.CONVERGED
        calls.clear()
    else:
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model = LinearSVC(on_interrupt="keep", tol=1e-5, subproblem="sort").fit(X, y)
        assert model.status_ is Status.INTERRUPTED
        audit_linear(model, X, y, 1.0)
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        LinearSVC(tol=1e-5, subproblem="sort").fit(X, y)


@posix
def test_the_running_pass_is_kept(monkeypatch):
    """Ctrl-C comes in the middle of the first pass; what it has done until then is in the model."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 100)).astype(np.float32), rng.integers(100, size=20_000)
    plain = LinearFit.run_pass
    delays = iter([0.05, 0.02, 0.01, 0.005, 0.002])  # a busy machine may be late
    timers = []  # one per fit: a second one would interrupt whatever runs after the fit

    def run_pass(self, **options):
        if not timers:
            timers.append(threading.Timer(next(delays), signal.raise_signal, [signal.SIGINT]))
            timers[0].start()
        return plain(self, **options)

    monkeypatch.setattr(LinearFit, "run_pass", run_pass)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        model = LinearSVC(C=0.01, on_interrupt="keep", n_threads=1)
        while len(getattr(model, "support_", y)) == len(y):
            timers.clear()
            with pytest.warns(ConvergenceWarning, match="interrupted"):
                model.fit(X, y)
            timers[0].join()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert len(model.trace_) == 0  # no pass was finished
    assert len(model.support_) > 0
    assert model.dual_objective_ < 0.0
    alpha = np.zeros((len(y), 100))
    alpha[model.support_] = model.dual_coef_.toarray()
    np.testing.assert_allclose(model.coef_, alpha.T @ X, atol=1e-9)
