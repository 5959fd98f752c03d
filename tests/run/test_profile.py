"""Where the time of a fit went: phases, how they nest, and what a user sees of them."""

import time

import pytest

from multimargin import KernelSVC
from multimargin.run.profile import PHASES, Profile, profile_line, timed


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""

    class Clock:
        now = 100.0

    monkeypatch.setattr(time, "perf_counter", lambda: Clock.now)
    return Clock


def test_a_phase_inside_another_pauses_it(clock):
    profile = Profile()
    clock.now += 5  # nobody's
    with profile.phase("inner"):
        clock.now += 1
        with profile.phase("kernel rows"):
            clock.now += 2
            with profile.phase("memory"):
                clock.now += 4
        clock.now += 8
    clock.now += 16
    with profile.phase("inner"):
        clock.now += 32
    expected = dict.fromkeys(PHASES, 0.0) | {"inner": 41.0, "kernel rows": 2.0, "memory": 4.0}
    assert profile.seconds == expected


def test_a_phase_inside_itself_counts_once(clock):
    profile = Profile()
    with profile.phase("proof"), profile.phase("proof"):
        clock.now += 3
    assert profile.seconds["proof"] == 3.0


def test_an_error_ends_its_phase(clock):
    class Verbs:
        profile = Profile()

        @timed("gradient")
        def fail(self):
            clock.now += 2
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Verbs().fail()
    clock.now += 7
    with Verbs.profile.phase("inner"):
        clock.now += 1
    assert (Verbs.profile.seconds["gradient"], Verbs.profile.seconds["inner"]) == (2.0, 1.0)


def test_the_line_is_sorted_and_says_what_is_left():
    line = profile_line({"inner": 1.0, "gradient": 2.0}, 10.0)
    assert line == "other 7 s (70%), gradient 2 s (20%), inner 1 s (10%)"


@pytest.mark.parametrize("solver", ["auto", "dasmc", "mcsvm"])
@pytest.mark.parametrize("engine", ["cpu", "numpy"])
def test_a_fit_has_all_phases_within_its_time(iris, solver, engine):
    start = time.perf_counter()
    model = KernelSVC(solver=solver, engine=engine).fit(*iris)
    total = time.perf_counter() - start
    profile = model.trace_.info["profile"]
    assert tuple(profile) == PHASES
    assert all(seconds >= 0 for seconds in profile.values())
    assert 0 < sum(profile.values()) <= total
    assert sum(profile.values()) <= model.trace_.info["seconds"] <= total
    for phase in ("kernel rows", "inner", "gradient", "selection", "proof"):
        assert profile[phase] > 0


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_only_verbose_2_prints_it(iris, capsys, verbose):
    KernelSVC(verbose=verbose).fit(*iris)
    lines = [line for line in capsys.readouterr().err.splitlines() if "inner" in line]
    assert len(lines) == (1 if verbose == 2 else 0)
    assert all(phase in line for line in lines for phase in (*PHASES, "other", "%"))
