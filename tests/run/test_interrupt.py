"""Ctrl-C, in a process of its own: heard within a second, raised cleanly or kept as an honest model."""

import os
import signal
import textwrap
import time
from contextlib import contextmanager

import numpy as np
import pytest
from helpers import unfinished
from interrupts import interrupted
from oracle import assert_feasible, codes, full_alpha, has_free_bias

from multimargin import KernelSVC

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="SIGINT needs a POSIX system"),
]

SCRIPT = textwrap.dedent(
    """
    import sys, time, warnings
    import numpy as np
    from multimargin import KernelSVC

    warnings.simplefilter("ignore")
    solver, engine, keep, kernel, machine = sys.argv[1:]
    n = 1000 if engine == "numpy" else 4000
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 40)), rng.integers(2 if machine == "c-svc" else 12, size=n)

    def product(A, B):
        return A @ B.T + 1.0

    model = KernelSVC(
        machine, C=1e5, gamma=0.001, kernel=product if kernel == "callable" else kernel, solver=solver,
        engine=engine, tol=1e-9, on_interrupt="keep" if keep == "keep" else "raise",
    )
    print("ready", flush=True)
    try:
        model.fit(X, y)
        heard = time.monotonic()
        facts = model.status_.name, model.duality_gap_ > 0, len(model.predict(X[:5]))
        print("kept", heard, *facts, flush=True)
    except KeyboardInterrupt:
        print("raised", time.monotonic(), hasattr(model, "dual_coef_"), flush=True)
    """
)


def interrupt(solver, engine, keep, kernel, machine="crammer-singer"):
    """Start a fit that would take long, send SIGINT, return (seconds until heard, words printed)."""
    return interrupted(SCRIPT, solver, engine, keep, kernel, machine)


@pytest.mark.parametrize(
    ("solver", "engine", "kernel"),
    [
        ("auto", "cpu", "rbf"),
        ("dasmc", "cpu", "rbf"),
        ("mcsvm", "cpu", "rbf"),
        ("auto", "cpu", "callable"),
        ("auto", "numpy", "rbf"),
        ("dasmc", "numpy", "linear"),
    ],
)
def test_raises_within_a_second(solver, engine, kernel):
    seconds, words = interrupt(solver, engine, "raise", kernel)
    assert words == ["raised", "False"]  # no half model left behind
    assert seconds < 1.0


@pytest.mark.parametrize("solver", ["auto", "dasmc", "mcsvm"])
def test_keep_leaves_a_usable_labelled_model(solver):
    seconds, words = interrupt(solver, "cpu", "keep", "rbf")
    assert words == ["kept", "INTERRUPTED", "True", "5"]
    assert seconds < 5.0  # the certificate of the kept model is computed in this time


@pytest.mark.parametrize(
    ("solver", "engine"), [("auto", "cpu"), ("vpdt", "cpu"), ("svm-light", "cpu"), ("auto", "numpy")]
)
def test_the_binary_machine_raises_within_a_second(solver, engine):
    seconds, words = interrupt(solver, engine, "raise", "rbf", "c-svc")
    assert words == ["raised", "False"]
    assert seconds < 1.0


@pytest.mark.parametrize("solver", ["auto", "vpdt", "svm-light"])
def test_the_binary_machine_keeps_a_labelled_model(solver):
    seconds, words = interrupt(solver, "cpu", "keep", "rbf", "c-svc")
    assert words == ["kept", "INTERRUPTED", "True", "5"]
    assert seconds < 5.0


# -- in this process -----------------------------------------------------------------------------------
@contextmanager
def interrupt_after(cpu_seconds):
    """Ctrl-C when the process has used so much CPU time: on a busy machine as on an idle one."""
    before = signal.signal(signal.SIGPROF, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def hard_problem(machine, n):
    """One block that takes far longer than the tests wait, whatever the solver."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 40)), rng.integers(2 if machine == "c-svc" else 12, size=n)


CASES = [
    ("auto", "crammer-singer", "auto", "cpu"),
    ("auto", "weston-watkins", "auto", "cpu"),
    ("auto", "lee-lin-wahba", "auto", "cpu"),
    ("auto", "msvm2", "auto", "cpu"),
    ("auto", "one-vs-rest", "auto", "cpu"),
    ("auto", "c-svc", "auto", "cpu"),
    ("dasmc", "crammer-singer", "auto", "cpu"),
    ("vpdt", "c-svc", "auto", "cpu"),
    ("svm-light", "c-svc", "auto", "cpu"),
    ("auto", "crammer-singer", "free", "cpu"),
    ("auto", "lee-lin-wahba", "free", "cpu"),
    ("auto", "one-vs-rest", "free", "cpu"),
    ("msvmpack", "crammer-singer", "free", "cpu"),
    ("auto", "crammer-singer", "auto", "numpy"),
    ("auto", "c-svc", "auto", "numpy"),
]


@pytest.mark.parametrize(("solver", "machine", "bias", "engine"), CASES)
def test_ctrl_c_keeps_as_much_as_a_time_limit(solver, machine, bias, engine):
    """The kept model has at least half of the dual that a fit with half of the time reaches."""
    X, y = hard_problem(machine, 600 if engine == "numpy" else 1500)
    params = {"C": 1e5, "gamma": 0.001, "bias": bias, "solver": solver, "engine": engine, "n_threads": 1}
    model = KernelSVC(machine, tol=1e-9, on_interrupt="keep", **params)
    with interrupt_after(0.4), unfinished():
        model.fit(X, y)
    limited = KernelSVC(machine, tol=1e-9, time_limit=0.2, **params)
    with unfinished():
        limited.fit(X, y)
    assert model.status_.name == "INTERRUPTED"
    assert limited.status_.name == "TIME_LIMIT"
    assert model.dual_objective_ < 0
    assert model.dual_objective_ <= 0.5 * limited.dual_objective_
    free, labels = has_free_bias(model), codes(model, y)
    assert_feasible(full_alpha(model, len(y)), labels, 1e5, atol=1e-6, machine=machine, free=free)


@pytest.mark.parametrize(("solver", "machine", "bias", "engine"), CASES)
def test_time_limits_are_kept(solver, machine, bias, engine):
    X, y = hard_problem(machine, 600 if engine == "numpy" else 1500)
    params = {"C": 1e5, "gamma": 0.001, "bias": bias, "solver": solver, "engine": engine, "n_threads": 1}
    model, begin = KernelSVC(machine, tol=1e-9, time_limit=0.2, **params), time.process_time()
    with unfinished():
        model.fit(X, y)
    assert model.status_.name == "TIME_LIMIT"
    assert time.process_time() - begin < 1.2  # with the layout of the data and the proof


def test_time_limits_are_kept_with_many_classes():
    rng, y = np.random.default_rng(0), np.arange(2000) % 400
    X = rng.normal(size=(2000, 10)) + 1.5 * rng.normal(size=(400, 10))[y]
    model = KernelSVC("lee-lin-wahba", time_limit=0.3, n_threads=1)
    with unfinished():
        model.fit(X, y)
    work = model.trace_.info["profile"]
    assert model.trace_.info["seconds"] - work["proof"] < 2.0
    assert work["inner"] < 1.0
