"""Hard linear fits end by Newton steps: with a certificate, within the limits, and only if passes fail."""

import numpy as np
import pytest
from helpers import audit_linear, unfinished
from linear_cases import MACHINES, features, random_alpha, random_task, started
from oracle import certify
from scipy import sparse
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from multimargin import LinearSVC
from multimargin.linear.descent import LinearFit, LinearOptions
from multimargin.linear.finish import Finish
from multimargin.linear.proximal import ProximalNewton, _Newton, first_face
from multimargin.linear.schedule import BestProof, solve_linear
from multimargin.linear.tuning import Tuning
from multimargin.run.monitor import Monitor
from multimargin.solution import Status


def overlapping(n=400, d=6, m=5):
    """Classes that no weights separate, standardised."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % m
    X = rng.normal(size=(n, d)) + rng.normal(size=(m, d))[y]
    return StandardScaler().fit_transform(X), y


def standardised(name):
    if name == "overlapping":
        return overlapping()
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return StandardScaler().fit_transform(X), y


# -- the whole fit ---------------------------------------------------------------------------------
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("C", [100.0, 1e4])
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "overlapping"])
def test_large_costs_converge_at_the_defaults(name, C, form):
    X, y = standardised(name)
    model = LinearSVC(C=C).fit(form(X), y)
    assert model.status_.converged
    assert model.n_iter_ < 400
    audit_linear(model, X, y, C, 1e-3)


def test_no_intercept_and_weights():
    X, y = overlapping()
    weight = np.random.default_rng(1).uniform(0.1, 3.0, len(y))
    model = LinearSVC(C=100.0, fit_intercept=False).fit(X.astype(np.float32), y, sample_weight=weight)
    assert model.status_.converged
    audit_linear(model, X.astype(np.float32), y, 100.0 * weight, 1e-3)


def test_a_gap_is_enough():
    X, y = overlapping()
    model = LinearSVC(C=100.0, tol=1e-9, gap_tol=1e-3).fit(X, y)
    assert model.status_ is Status.WITHIN_GAP
    assert 0 < audit_linear(model, X, y, 100.0).gap <= 1e-3 * model.primal_objective_


def test_small_problems_are_solved_almost_exactly(iris):
    X, y = iris
    model = LinearSVC().fit(X, y)
    assert model.violation_ < 1e-8
    exact = LinearSVC(tol=1e-12, dtype="float64", max_iter=-1).fit(X, y)
    np.testing.assert_allclose(model.coef_, exact.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "options", [{"subproblem": "sort"}, {"shrinking": False}, {"dtype": "float32"}, {"max_iter": 10}]
)
def test_who_asks_for_passes_gets_passes(options):
    X, y = overlapping()
    with unfinished():
        model = LinearSVC(C=100.0, **({"max_iter": 150} | options)).fit(X, y)
    assert model.status_ is Status.MAX_ITER
    assert model.trace_["working_set"].max() <= len(y)


# -- limits ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("max_iter", [11, 13, 20])
def test_newton_steps_count_as_passes(max_iter):
    X, y = overlapping()
    with unfinished():
        model = LinearSVC(C=1e4, tol=1e-6, max_iter=max_iter).fit(X, y)
    assert model.status_ is Status.MAX_ITER
    assert model.trace_["working_set"].sum() <= max_iter * len(y)
    assert model.n_iter_ <= max_iter
    audit_linear(model, X, y, 1e4)


def test_a_callback_stops_between_proximal_steps():
    X, y = overlapping()
    with pytest.warns(ConvergenceWarning, match="callback"):
        model = LinearSVC(C=1e4, tol=1e-7, callback=lambda row: row.working_set > len(y)).fit(X, y)
    assert model.status_ is Status.CALLBACK and model.trace_["working_set"][-1] > len(y)
    audit_linear(model, X, y, 1e4)


def test_an_interrupt_keeps_the_last_proximal_step(monkeypatch):
    X, y = overlapping()
    plain, duals = ProximalNewton.step, []

    def step(self, tol, goes_on):
        if len(duals) == 3:
            raise KeyboardInterrupt
        found = plain(self, tol, goes_on)
        duals.append(self.dual)
        return found

    monkeypatch.setattr(ProximalNewton, "step", step)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = LinearSVC(C=1e4, tol=1e-7, on_interrupt="keep").fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert model.dual_objective_ == pytest.approx(duals[-1], rel=1e-9)
    audit_linear(model, X, y, 1e4)


@pytest.mark.parametrize("limit", [{"max_iter": 0}, {"time_limit": 1e-9}])
def test_a_start_that_meets_tol_has_converged_at_any_limit(limit, digits):
    X, y = digits
    model = LinearSVC(C=0.1, warm_start=True).fit(X, y).set_params(**limit).fit(X, y)
    assert model.status_.converged
    audit_linear(model, X, y, 0.1, 1e-3)


def test_a_point_that_meets_tol_has_converged_even_if_a_callback_stopped(digits):
    X, y = digits
    last = len(LinearSVC(C=0.1).fit(X, y).trace_)
    model = LinearSVC(C=0.1, callback=lambda row: row.iteration == last).fit(X, y)
    assert model.status_.converged
    audit_linear(model, X, y, 0.1, 1e-3)


def test_the_advice_of_a_fit_that_did_not_converge():
    X, y = overlapping()
    with pytest.warns(ConvergenceWarning, match=r"Scale the features, take a smaller C, or raise max_iter"):
        LinearSVC(C=1e4, max_iter=20).fit(X, y)


def test_the_best_primal_is_returned():
    task = random_task(3, constant=1.0)
    fit, best = LinearFit(task, LinearOptions(tol=1e-6)), BestProof()
    solve_linear(fit, Monitor())
    good, alpha = fit.prove(), fit.alpha().toarray()
    best.keep(fit, good.primal)
    fit.set_dual(sparse.csr_array(random_alpha(task)))
    worse = fit.prove()
    assert worse.primal > good.primal
    assert best.prove(fit, worse).primal == pytest.approx(good.primal, rel=1e-12)
    np.testing.assert_array_equal(fit.alpha().toarray(), alpha)
    assert best.prove(fit, good) is good


# -- the method alone ------------------------------------------------------------------------------
@pytest.mark.parametrize("constant", [0.0, 2.0])
@pytest.mark.parametrize("form", ["dense", "csr32"])
@pytest.mark.parametrize("m", [2, 5])
@pytest.mark.parametrize("machine", MACHINES)
def test_from_any_point_to_the_optimum(machine, m, form, constant):
    task = random_task(4, form=form, constant=constant, m=m, machine=machine)
    point = ProximalNewton(started(task, random_alpha(task)))
    duals = [point.dual]
    while not point.is_met(1e-9, 0.0) and point.step(1e-9, lambda: True):
        duals.append(point.dual)
    Z = features(task)
    found = certify(Z @ Z.T, task.y, point.alpha, task.C, machine)
    assert found.psi.max() < 1e-7
    assert (np.diff(duals) <= 1e-9).all()
    assert point.dual == pytest.approx(found.dual, rel=1e-12)
    assert point.gap == pytest.approx(found.gap, abs=1e-9)


@pytest.mark.parametrize("steps", [0, 10**9])
def test_passes_that_converge_get_the_time_of_newton_steps(steps, digits, monkeypatch):
    (X, y), plain, begun = digits, Finish.run, []

    def run(self, tol, gap_tol=0.0):
        begun.append(self._fit.passes)
        return plain(self, tol, gap_tol)

    monkeypatch.setattr(Finish, "run", run)
    monkeypatch.setattr(LinearSVC, "_tuning", Tuning(newton_after=20, newton_steps=steps, newton_cheap=0.0))
    model = LinearSVC(C=0.1, tol=1e-5).fit(X, y)
    audit_linear(model, X, y, 0.1, 1e-5)
    assert model.n_iter_ > 22
    assert (20 <= begun[0] <= 22) if steps == 0 else not begun


def test_passes_that_creep_give_way_to_newton_steps_at_once(monkeypatch):
    X, y = overlapping()
    monkeypatch.setattr(LinearSVC, "_tuning", Tuning(newton_steps=10**9))
    model = LinearSVC(C=1e4).fit(X, y)
    assert model.status_.converged and model.n_iter_ < 200
    audit_linear(model, X, y, 1e4, 1e-3)


@pytest.mark.parametrize("form", ["dense", "csr32"])
@pytest.mark.parametrize("machine", MACHINES)
def test_the_first_face_is_that_of_the_first_newton_step(machine, form):
    task = random_task(4, form=form, constant=2.0, m=5, machine=machine)
    fit = started(task, random_alpha(task))
    point, ids = ProximalNewton(fit), np.arange(1, len(task.y), 3)
    fit.take_over_proof()
    first = _Newton(point, point.sigma)
    face = point.problem.face(first._at(point.W)[0], task.y, task.C)
    np.testing.assert_array_equal(first_face(fit, ids), face[ids])


def test_newton_steps_that_do_not_fit_cost_nothing(monkeypatch):
    monkeypatch.setattr(Finish, "run", None)
    monkeypatch.setattr(LinearSVC, "_tuning", Tuning(newton_bytes=100))
    X, y = overlapping()
    with unfinished():
        model = LinearSVC(C=1e4, max_iter=250).fit(X, y)
    assert model.status_ is Status.MAX_ITER


def test_a_problem_that_is_too_large_is_left_to_passes():
    X, y = overlapping()
    task = random_task(1, n=120)
    for tuning in (Tuning(newton_values=100), Tuning(newton_features=10)):
        assert not Finish(LinearFit(task, LinearOptions(tuning=tuning)), Monitor()).polishes()
    assert Finish(LinearFit(task, LinearOptions(tuning=Tuning(polish=200))), Monitor()).polishes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LinearSVC, "_tuning", Tuning(newton_bytes=100))
        with unfinished():
            model = LinearSVC(C=100.0, max_iter=150).fit(X, y)
    assert model.status_ is Status.MAX_ITER
    audit_linear(model, X, y, 100.0)
