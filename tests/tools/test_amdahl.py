"""Predictions for many cores: phases by Amdahl's law, and what a benchmark makes of a fit's profile."""

import numpy as np
import pytest

from benchmarks.checks import many_cores
from benchmarks.lib.amdahl import Phase, predicted
from benchmarks.workers.storage import Split


@pytest.mark.parametrize("serial, divided", [(0.0, 2.0), (0.5, 1.5), (2.0, 0.0)])
def test_two_times_determine_a_phase(serial, divided):
    phase = Phase.of(serial + divided, serial + divided / 2)
    assert phase == pytest.approx((serial, divided, 0.0))
    assert phase.seconds(16) == pytest.approx(serial + divided / 16)
    assert phase.serial_share == pytest.approx(serial / 2)


def test_luck_counts_as_divided_and_a_loss_as_serial():
    assert Phase.of(1.0, 0.4) == (0.0, 1.0, 0.0)
    slower = Phase.of(1.0, 1.2)
    assert slower == pytest.approx((1.2, 0.0, 0.0))
    assert slower.seconds(64) == pytest.approx(1.2)
    assert Phase.of(0.0, 0.0).serial_share == 0.0


def test_memory_sets_a_floor_that_one_core_does_not_feel():
    phase = Phase.of(1.0, 0.5, floor=0.1)
    assert [phase.seconds(cores) for cores in (1, 4, 64)] == pytest.approx([1.0, 0.25, 0.1])
    assert Phase.of(0.05, 0.025, floor=0.1).seconds(64) == pytest.approx(0.05)


def test_phases_come_one_after_the_other():
    assert predicted({"a": Phase(1.0, 1.0), "b": Phase(0.0, 8.0)}, 4) == pytest.approx(3.25)


def test_the_phases_of_a_fit_add_up_to_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    split = Split(X, (X[:, 0] > 0).astype(int) + (X[:, 1] > 0), X, np.zeros(120))
    found = many_cores.measure(1.0, 0.5, split, repeats=1)
    for threads, seconds in found.fits.items():
        assert sum(found.phases[threads].values()) == pytest.approx(seconds)
    phases = many_cores.fitted(found, bandwidth=1e12)
    assert predicted(phases, 1) == pytest.approx(
        sum(max(found.phases[1][name], phase.serial) for name, phase in phases.items())
    )
