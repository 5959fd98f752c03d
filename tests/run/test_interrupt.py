"""Ctrl-C, in a process of its own: heard within a second, raised cleanly or kept as an honest model."""

import os
import textwrap

import pytest
from interrupts import interrupted

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
