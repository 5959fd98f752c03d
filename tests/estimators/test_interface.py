"""What a user sees around a fit: status, trace, suspects, callbacks, limits, warm starts."""

import re
import sys
import time
import warnings

import numpy as np
import pytest
import sklearn
from helpers import METHODS, SOLVERS, audit, unfinished
from oracle import certify, full_alpha, kernel_matrix
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.fixes import parse_version

from multimargin import KernelSVC
from multimargin.solution import Status

GAMMA = 0.02
HAS_CALLBACKS = parse_version(sklearn.__version__) >= parse_version("1.9")


@pytest.fixture(scope="module")
def kernel(digits):
    return kernel_matrix("rbf", digits[0], gamma=GAMMA)


def svc(**settings):
    return KernelSVC(**{"C": 4.0, "gamma": GAMMA, "random_state": 0} | settings)


@pytest.mark.parametrize("method", METHODS)
def test_converged_status_and_trace(method, digits, kernel):
    X, y = digits
    model = svc(solver=SOLVERS[method]).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert "converged" in str(model.status_)
    trace = model.trace_
    assert model.n_iter_ == len(trace) == trace[-1].iteration
    np.testing.assert_array_equal(trace["iteration"], np.arange(1, len(trace) + 1))
    assert (np.diff(trace["seconds"]) >= 0).all()
    assert (np.diff(trace["dual"]) <= 1e-7 * np.abs(trace["dual"]).max()).all()  # every step descends
    for column in ("rows", "hits", "evictions"):
        assert (np.diff(trace[column]) >= 0).all()
    found = audit(model, kernel, y, 4.0, 1e-3)
    assert trace[-1].support == len(model.support_)
    assert trace[-1].dual == pytest.approx(found.dual, rel=1e-4)
    gaps = trace["gap"][np.isfinite(trace["gap"])]
    assert (gaps >= -1e-9).all()
    assert [row.iteration for row in trace] == list(range(1, len(trace) + 1))
    assert str(len(trace)) in repr(trace)


def test_trace_says_what_ran(digits):
    X, y = digits
    info = svc(engine="cpu", n_threads=1, dtype="float64").fit(X, y).trace_.info
    assert info["engine"] == "cpu"
    assert info["n_threads"] == 1
    assert info["row_dtype"] == "float64"
    assert svc(engine="numpy", solver="dasmc").fit(X[:40], y[:40]).trace_.info["engine"] == "numpy"


def test_label_distribution(digits):
    """Crammer & Singer's eta_i = z_i / C_i: a distribution over classes, all mass on y where alpha_i = 0."""
    X, y = digits
    C = np.linspace(0.5, 4.0, len(y))
    model = svc(C=1.0).fit(X, y, sample_weight=C)
    alpha = full_alpha(model, len(y))
    for i in (*model.support_[:10], *np.setdiff1d(np.arange(len(y)), model.support_)[:5]):
        eta = model.label_distribution(int(i))
        assert eta.shape == (10,)
        assert eta.sum() == pytest.approx(1.0)
        assert (eta >= -1e-12).all()
        np.testing.assert_allclose(eta, np.eye(10)[y[i]] - alpha[i] / C[i], atol=1e-9)


def test_suspects_find_flipped_labels():
    X, y = load_digits(return_X_y=True)
    X, y = X[:500] / 16.0, y[:500].copy()
    flipped = np.random.default_rng(0).choice(500, 15, replace=False)
    y[flipped] = (y[flipped] + 3) % 10
    model = svc(C=1.0).fit(X, y)
    suspects = model.suspects(15)
    assert len(suspects) == len(set(suspects)) == 15
    assert len(set(suspects) & set(flipped)) >= 13
    np.testing.assert_array_equal(model.suspects(5), suspects[:5])


def test_suspects_of_a_small_problem(iris):
    X, y = iris
    model = KernelSVC(gamma=0.2).fit(X, y)
    assert len(model.suspects(10**6)) <= len(y)
    with pytest.raises(ValueError, match="k"):
        model.suspects(-1)


def test_callback_sees_every_iteration(digits):
    X, y = digits
    rows = []
    model = svc(solver="mcsvm", callback=rows.append).fit(X, y)
    assert [row.iteration for row in rows] == list(range(1, model.n_iter_ + 1))
    assert rows[-1].dual == model.trace_[-1].dual


@pytest.mark.parametrize("method", METHODS)
def test_callback_may_stop(method, digits, kernel):
    X, y = digits
    model = svc(
        solver=SOLVERS[method], tol=1e-6, working_set_size=10, callback=lambda row: row.iteration >= 2
    )
    with pytest.warns(ConvergenceWarning, match="callback"):
        model.fit(X, y)
    assert model.status_ is Status.CALLBACK
    assert model.n_iter_ == 2
    audit(model, kernel, y, 4.0)


def test_callback_that_raises_is_heard(digits):
    def fail(row):
        raise RuntimeError("my own mistake")

    with pytest.raises(RuntimeError, match="my own mistake"):
        svc(callback=fail).fit(*digits)


@pytest.mark.parametrize("method", METHODS)
def test_max_iter(method, digits, kernel):
    X, y = digits
    model = svc(solver=SOLVERS[method], max_iter=1, tol=1e-9, working_set_size=10)
    with pytest.warns(ConvergenceWarning, match="max_iter") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__  # the warning points at the user's line
    assert model.status_ is Status.MAX_ITER
    assert not model.status_.converged
    assert model.n_iter_ == 1
    audit(model, kernel, y, 4.0)  # an honest certificate of an unfinished model


def test_no_iteration_at_all(digits, kernel):
    """max_iter=0: the zero model, whose primal is the sum of the costs; or a certificate of a warm start."""
    X, y = digits
    model = svc(max_iter=0, warm_start=True)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model.fit(X, y)
    assert len(model.support_) == 0
    assert model.primal_objective_ == model.duality_gap_ == pytest.approx(4.0 * len(y))
    assert (model.predict(X) == model.classes_[0]).all()


def test_time_limit(digits, kernel):
    X, y = digits
    model = svc(solver="mcsvm", time_limit=0.02, tol=1e-13, engine="numpy")
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model.fit(X, y)
    assert time.perf_counter() - begin < 2.0
    assert model.status_ is Status.TIME_LIMIT
    assert audit(model, kernel, y, 4.0).psi.max() > 1e-13


def test_a_model_without_support_vectors_predicts(digits):
    """Stopped before the first step, however: scores are the (zero) biases, on every engine and form."""
    X, y = digits
    for given in (X, sparse.csr_array(X)):
        for engine in ("numpy", "cpu"):
            model = svc(time_limit=1e-9, engine=engine)
            with unfinished():
                model.fit(given, y)
            assert model.status_ is Status.TIME_LIMIT
            np.testing.assert_array_equal(model.decision_function(given), np.zeros((len(y), 10)))


def test_a_limit_that_is_not_met_changes_nothing(digits):
    X, y = digits
    plain, limited = svc().fit(X, y), svc(max_iter=10**6, time_limit=1e6).fit(X, y)
    assert limited.status_ is Status.CONVERGED
    np.testing.assert_array_equal(plain.dual_coef_, limited.dual_coef_)


def test_impossible_tolerance_is_not_called_converged(digits, kernel):
    """Below rounding nothing can be proved: it must end, and say so."""
    X, y = digits
    model = svc(tol=1e-300, time_limit=20.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    found = audit(model, kernel, y, 4.0)
    assert model.status_ is not Status.CONVERGED or found.psi.max() < 1e-12
    assert model.status_.converged == (not any(w.category is ConvergenceWarning for w in caught))
    assert found.psi.max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_warm_start_is_cheaper(method, digits, kernel):
    X, y = digits
    model = svc(solver=SOLVERS[method], warm_start=True).fit(X, y)
    cold = model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ < max(1, cold)
    audit(model, kernel, y, 4.0, 1e-3)


@pytest.mark.slow
def test_warm_start_along_costs(digits, kernel):
    X, y = digits
    model = svc(solver="mcsvm", warm_start=True, C=1.0).fit(X, y)
    for C in (1.3, 0.5, 8.0):
        model.set_params(C=C).fit(X, y)
        audit(model, kernel, y, C, 1e-3)
    cold = svc(solver="mcsvm", C=1.1).fit(X, y).n_iter_
    model.set_params(C=1.0).fit(X, y)
    model.set_params(C=1.1).fit(X, y)
    assert model.n_iter_ < cold


def test_warm_start_goes_on_after_a_limit(digits, kernel):
    X, y = digits
    model = svc(solver="mcsvm", warm_start=True, max_iter=50)
    with unfinished():
        model.fit(X, y)
    first = model.dual_objective_
    model.set_params(max_iter=-1).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.dual_objective_ < first
    audit(model, kernel, y, 4.0, 1e-3)


def test_warm_start_with_changed_kernel_labels_and_rows(digits):
    """Other data of the same or another shape: a cold or an adapted start, always the right answer."""
    X, y = digits
    model = svc(warm_start=True).fit(X, y)
    model.set_params(gamma=0.05).fit(X, y)
    audit(model, kernel_matrix("rbf", X, gamma=0.05), y, 4.0, 1e-3)
    shuffled = y[::-1].copy()
    model.fit(X, shuffled)
    audit(model, kernel_matrix("rbf", X, gamma=0.05), shuffled, 4.0, 1e-3)
    model.fit(X[:70, :30], y[:70])
    audit(model, kernel_matrix("rbf", X[:70, :30], gamma=0.05), y[:70], 4.0, 1e-3)
    few = y[:70] % 3
    model.fit(X[:70, :30], few)
    audit(model, kernel_matrix("rbf", X[:70, :30], gamma=0.05), few, 4.0, 1e-3)


def test_without_warm_start_a_refit_is_a_fresh_fit(digits):
    X, y = digits
    model = svc()
    first = model.fit(X, y).dual_coef_.copy()
    model.set_params(C=0.1).fit(X, y)
    np.testing.assert_array_equal(model.set_params(C=4.0).fit(X, y).dual_coef_, first)


@pytest.mark.parametrize("verbose", [True, 1, 2])
def test_verbose_tells_on_stderr(verbose, digits, capsys):
    svc(verbose=verbose).fit(*digits)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.search(r"converged|KernelSVC|multimargin", captured.err)


def test_verbose_without_the_extra(digits, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    svc(verbose=1).fit(*digits)
    assert "converged" in capsys.readouterr().err


def test_silent_by_default(digits, capsys):
    svc().fit(*digits)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_no_warning_when_converged(digits):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svc().fit(*digits)


def test_failed_refit_does_not_mix_two_models(digits):
    """Interrupted while learning other labels: the old model still answers, or none does."""
    X, y = digits
    model = svc().fit(X, y)
    model.set_params(callback=lambda row: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, y % 2)
    try:
        answers = model.predict(X)
    except NotFittedError:
        return
    assert np.mean(answers == y) > 0.9


def test_failed_fit_leaves_no_half_model(digits):
    X, y = digits
    model = svc()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan), y)
    assert not hasattr(model, "dual_coef_")


@pytest.mark.skipif(not HAS_CALLBACKS, reason="scikit-learn before 1.9 has no callbacks")
class TestSklearnCallbacks:
    @staticmethod
    def recorder(stop_after=None):
        class Recorder:
            def __init__(self):
                self.events, self.ends = [], 0

            def setup(self, estimator, context):
                self.events.append("setup")

            def teardown(self, estimator, context):
                self.events.append("teardown")

            def on_fit_task_begin(
                self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
            ):
                self.events.append("begin")

            def on_fit_task_end(
                self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
            ):
                self.events.append("end")
                self.ends += 1
                return stop_after is not None and self.ends >= stop_after

        return Recorder()

    def test_hooks_are_called_in_order(self, digits):
        recorder = self.recorder()
        svc(solver="mcsvm").set_callbacks(recorder).fit(*digits)
        assert recorder.events[0] == "setup"
        assert recorder.events[-1] == "teardown"
        assert recorder.events.count("setup") == recorder.events.count("teardown") == 1
        assert recorder.events.count("begin") == recorder.events.count("end") >= 2

    def test_a_hook_may_stop(self, digits, kernel):
        recorder = self.recorder(stop_after=1)
        model = svc(solver="mcsvm", tol=1e-9).set_callbacks(recorder)
        with pytest.warns(ConvergenceWarning, match="callback"):
            model.fit(*digits)
        assert model.status_ is Status.CALLBACK
        audit(model, kernel, digits[1], 4.0)

    def test_teardown_after_a_failure(self, digits):
        recorder = self.recorder()
        model = svc(callback=lambda row: 1 / 0).set_callbacks(recorder)
        with pytest.raises(ZeroDivisionError):
            model.fit(*digits)
        assert recorder.events[-1] == "teardown"

    def test_progress_bar(self, digits):
        pytest.importorskip("rich")
        from sklearn.callback import ProgressBar

        model = svc().set_callbacks(ProgressBar()).fit(*digits)
        assert model.status_ is Status.CONVERGED

    def test_scoring_monitor_reads_the_model_in_the_making(self, digits):
        from sklearn.callback import ScoringMonitor

        monitor = ScoringMonitor(scoring="accuracy")
        model = svc(solver="mcsvm").set_callbacks(monitor).fit(*digits)
        assert model.score(*digits) > 0.95


def test_certificate_is_of_the_stored_model(digits):
    """Nothing is lost between the solver and the attributes: primal from decision_function alone."""
    X, y = digits
    model = svc(bias="regularized").fit(X, y)
    K = kernel_matrix("rbf", X, gamma=GAMMA, offset=1.0)
    found = certify(K, y, full_alpha(model, len(y)), 4.0)
    scores = model.decision_function(X)
    E = np.eye(10)[y]
    loss = (scores + 1 - E).max(axis=1) - (scores * E).sum(axis=1)
    norm = np.vdot(full_alpha(model, len(y)), K @ full_alpha(model, len(y)))
    assert 0.5 * norm + 4.0 * loss.sum() == pytest.approx(found.primal, rel=1e-5)
    assert model.primal_objective_ + model.dual_objective_ == pytest.approx(model.duality_gap_, abs=1e-9)
    assert model.dual_objective_ <= 0 <= model.duality_gap_
