"""Some of the adversarial fits of `make torture`; with ``--torture all`` every one of them is a test."""

import numpy as np
import pytest
import refusals
import trial
from cases import MOST, Case, case
from judge import judge
from samples import Rows

SAMPLE = range(0, MOST, 50)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="the judge needs numbers of 80 bits"),
]


def pytest_generate_tests(metafunc):
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", chosen(metafunc.config.getoption("--torture")))


def chosen(option):
    """The numbers that the option names."""
    if option is None or option == "all":
        return SAMPLE if option is None else range(MOST)
    first, _, last = option.partition("-")
    return range(int(first), int(last or first) + 1)


@pytest.fixture(scope="module")
def processes():
    return trial.context()


def test_a_fit_is_right_or_says_what_is_wrong(number, processes):
    word, detail = trial.tried(number, processes)
    assert word in ("right", "honest", "refused"), f"{case(number)}\n{word}: {detail}"


def test_a_case_is_made_from_its_number():
    for number in SAMPLE:
        one, other = case(number), case(number)
        assert str(one) == str(other)
        assert np.array_equal(one.rows.y, other.rows.y)
    assert len({str(case(number)) for number in range(100)}) == 100


# -- the judge sees what is wrong -------------------------------------------------------------------------
@pytest.fixture
def judged():
    """A function that judges the model of an ordinary fit, and that model."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    rows = Rows(rng.normal(size=(60, 2)) + y[:, None], y, None, ("60 x 2",))
    params = {"machine": "crammer-singer", "kernel": "rbf", "gamma": 0.5, "coef0": 0.0, "degree": 3}
    given = Case(0, "KernelSVC", params | {"C": 2.0, "class_weight": None, "bias": "auto"}, rows)
    model = given.estimator().fit(rows.X, rows.y)
    return (lambda: judge(model, given).faults_of(model, given)), model


def test_the_judge_finds_nothing_wrong_with_an_ordinary_fit(judged):
    found, _ = judged
    assert found() == []


@pytest.mark.parametrize("change", [0.5, 1.1, -1.0, np.nan])
def test_the_judge_sees_wrong_coefficients(judged, change):
    found, model = judged
    model.dual_coef_[0] *= change
    assert found()


@pytest.mark.parametrize("name", ["violation_", "duality_gap_", "primal_objective_", "dual_objective_"])
def test_the_judge_sees_a_number_that_is_none(judged, name):
    found, model = judged
    setattr(model, name, np.nan)
    assert found()


def test_the_judge_sees_a_gap_that_is_too_small(judged):
    found, model = judged
    model.duality_gap_ -= 1e-3 * model.primal_objective_
    assert found()


def test_the_judge_sees_labels_of_another_model(judged):
    found, model = judged
    model.classes_ = model.classes_[::-1].copy()
    assert found()


def test_a_refusal_without_a_reason_is_seen():
    given = case(0)
    assert not refusals.is_true(given, RuntimeError("a kernel that is not positive semidefinite"))
    assert not refusals.is_true(given, ValueError("At least 2 classes are needed"))
    assert not refusals.is_true(given, ValueError("something went wrong"))
