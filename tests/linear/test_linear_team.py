"""The linear machine on a team of processes: certified by all rows, and the optimum of one process."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import machine_of
from linear_cases import ANY_SIZE_IN_PARALLEL, features, random_task
from oracle import certify, dense
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from thread_team import run_ranks

from multimargin import LinearSVC
from multimargin.engines import Mpi
from multimargin.linear.descent import LinearFit, LinearOptions
from multimargin.linear.tuning import Tuning
from multimargin.solution import Status


def blobs(n=90, d=12, m=4, seed=0, sparse_rows=False, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = rng.integers(m, size=n)
    X = (rng.normal(size=(m, d))[y] + 1.2 * rng.normal(size=(n, d))) * (rng.random((n, d)) < 0.6)
    X = X.astype(dtype)
    return (sparse.csr_matrix(X) if sparse_rows else X), y


def bounds(n, P, shares=None):
    shares = np.ones(P) if shares is None else np.asarray(shares, dtype=float)
    return np.round(n * np.concatenate([[0], np.cumsum(shares)]) / shares.sum()).astype(int)


def fit_on(P, X, y, shares=None, weight=None, **parameters):
    """The models of all ranks, each of which is given its own rows."""
    cuts = bounds(len(y), P, shares)

    def fit(team):
        part = slice(cuts[team.rank], cuts[team.rank + 1])
        model = LinearSVC(engine=Mpi(data="shards", comm=team), **parameters)
        return model.fit(X[part], y[part], None if weight is None else weight[part])

    return run_ranks(P, fit)


def whole_alpha(models, n):
    alpha = np.zeros((n, len(models[0].classes_)))
    for model in models:
        alpha[model.support_] = dense(model.dual_coef_)
    return alpha


def judge(models, X, y, C=1.0, constant=1.0):
    """The independent certificate of all ranks' coefficients, after a look at the models."""
    first = models[0]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, first.coef_)
        np.testing.assert_array_equal(model.intercept_, first.intercept_)
        for name in ("status_", "violation_", "primal_objective_", "duality_gap_", "n_iter_"):
            assert getattr(model, name) == getattr(first, name), name
    Z = np.hstack([dense(X), np.full((len(y), 1), constant)]) if constant else dense(X)
    codes, alpha = np.searchsorted(first.classes_, y), whole_alpha(models, len(y))
    C = np.full(len(y), C) if np.isscalar(C) else C
    found = certify(Z @ Z.T, codes, alpha, C, machine_of(first))
    assert first.primal_objective_ == pytest.approx(found.primal, rel=1e-8)
    assert first.dual_objective_ == pytest.approx(found.dual, rel=1e-8)
    assert first.violation_ == pytest.approx(found.psi.max(), abs=1e-6)
    weights = Z.T @ alpha
    if len(first.classes_) > 2:
        np.testing.assert_allclose(first.coef_, weights[: X.shape[1]].T, atol=1e-8)
    return found


@pytest.mark.parametrize(
    ("P", "form"), [(1, "dense"), (2, "sparse"), (3, "dense float32"), (3, "sparse"), (4, "dense")]
)
def test_all_ranks_have_the_optimum_of_one_process(P, form):
    X, y = blobs(sparse_rows=form == "sparse", dtype=np.float32 if "32" in form else np.float64)
    one = LinearSVC(tol=1e-3).fit(X, y)
    models = fit_on(P, X, y, tol=1e-3)
    found = judge(models, X, y)
    assert models[0].status_ is Status.CONVERGED and found.psi.max() <= 1.01e-3
    assert found.primal == pytest.approx(one.primal_objective_, rel=1e-2)
    assert np.mean(models[0].predict(X) == one.predict(X)) > 0.97


@pytest.mark.parametrize("sparse_rows", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("machine", "loss"),
    [("weston-watkins", "hinge"), ("one-vs-rest", "hinge"), ("one-vs-rest", "squared_hinge")],
)
def test_every_machine_has_the_optimum_of_one_process(machine, loss, sparse_rows):
    X, y = blobs(sparse_rows=sparse_rows)
    one = LinearSVC(machine, loss=loss).fit(X, y)
    models = fit_on(3, X, y, machine=machine, loss=loss)
    found = judge(models, X, y)
    assert models[0].status_ is Status.CONVERGED and found.psi.max() <= 1.01e-3
    assert found.primal == pytest.approx(one.primal_objective_, rel=1e-2)


@pytest.mark.parametrize("shares", [[1, 0, 3], [0, 1, 0], [5, 1, 0.1]], ids=["empty", "one rank", "ragged"])
@pytest.mark.parametrize("sparse_rows", [False, True], ids=["dense", "sparse"])
def test_ragged_and_empty_shards(shares, sparse_rows):
    X, y = blobs(sparse_rows=sparse_rows)
    found = judge(fit_on(3, X, y, shares, gap_tol=1e-2, tol=1e-6), X, y)
    assert found.gap <= 1e-2 * found.primal


def test_a_class_that_one_rank_has():
    X, y = blobs()
    order = np.argsort(y, kind="stable")
    names = np.array(["a", "b", "c", "last"])[y[order]]
    models = fit_on(3, X[order], names, tol=1e-3)
    assert models[0].classes_.tolist() == ["a", "b", "c", "last"]
    assert judge(models, X[order], names).psi.max() <= 1.01e-3


def test_two_classes_without_an_intercept():
    X, y = blobs(m=2)
    models = fit_on(2, X, y, fit_intercept=False, tol=1e-3)
    assert judge(models, X, y, constant=0.0).psi.max() <= 1.01e-3
    one = LinearSVC(fit_intercept=False, tol=1e-3).fit(X, y)
    assert models[0].coef_.shape == one.coef_.shape
    assert models[0].primal_objective_ == pytest.approx(one.primal_objective_, rel=1e-2)


def test_class_weights_and_sample_weights_are_those_of_all_rows():
    X, y = blobs()
    weight = np.random.default_rng(1).choice([0.0, 0.5, 2.0], len(y))
    one = LinearSVC(class_weight="balanced", tol=1e-3).fit(X, y, weight)
    models = fit_on(3, X, y, weight=weight, class_weight="balanced", tol=1e-3)
    totals = np.bincount(y, weights=weight)
    C, kept = (weight.sum() / (len(totals) * totals))[y] * weight, weight > 0
    alpha = whole_alpha(models, len(y))
    assert not alpha[~kept].any()
    Z = np.hstack([X, np.ones((len(y), 1))])[kept]
    found = certify(Z @ Z.T, y[kept], alpha[kept], C[kept])
    assert models[0].primal_objective_ == pytest.approx(found.primal, rel=1e-8)
    assert found.psi.max() <= 1.01e-3
    assert found.primal == pytest.approx(one.primal_objective_, rel=1e-2)


@pytest.mark.parametrize("update", ["sort", "pivot", "bisection", "fixed-point", "smo", "frank-wolfe"])
def test_every_subproblem_works_on_a_team(update):
    X, y = blobs(n=60)
    found = judge(fit_on(2, X, y, subproblem=update, gap_tol=1e-2, tol=1e-9, max_iter=-1), X, y)
    assert found.gap <= 1e-2 * found.primal


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precisions_of_weights(dtype):
    X, y = blobs()
    models = fit_on(2, X, y, dtype=dtype, tol=1e-3)
    assert models[0].trace_.info["dtype"] == dtype
    assert judge(models, X, y).psi.max() <= 1.01e-3


def test_promoted_weights_are_those_of_all_ranks():
    task, cuts = random_task(constant=1.0), bounds(40, 3)

    def promote(team):
        part = slice(cuts[team.rank], cuts[team.rank + 1])
        fit = LinearFit(
            replace(task, X=task.X[part], y=task.y[part], C=task.C[part], team=team), LinearOptions()
        )
        fit.run_pass(over_all=True)
        assert fit.weights.dtype == np.float32
        single = fit.weights.copy()
        assert fit.promote() and not fit.promote()
        assert fit.weights.dtype == np.float64
        fit.run_pass(over_all=True)
        return single, fit.weights, fit.alpha().toarray()

    single, weights, alpha = zip(*run_ranks(3, promote), strict=True)
    exact = features(task).T @ np.vstack(alpha)
    for rank in range(3):
        np.testing.assert_allclose(single[rank], single[0], atol=1e-6)
        np.testing.assert_allclose(weights[rank][:, : task.m], exact, atol=1e-12)


def test_threads_of_a_rank_share_its_passes(monkeypatch):
    monkeypatch.setattr(LinearSVC, "_tuning", ANY_SIZE_IN_PARALLEL)
    X, y = blobs(m=20, n=200)
    models = fit_on(2, X, y, n_threads=2, gap_tol=1e-2, tol=1e-6)
    assert models[0].trace_.info["n_threads"] == 2
    found = judge(models, X, y)
    assert found.gap <= 1e-2 * found.primal


def test_a_fixed_number_of_ranks_gives_the_same_bits():
    X, y = blobs()
    first, second = (fit_on(3, X, y, tol=1e-3)[0] for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert len(first.trace_) == len(second.trace_)


def test_steps_that_go_too_far_together_are_shortened(monkeypatch):
    """All rows are alike: without shorter steps four ranks would diverge."""
    monkeypatch.setattr(LinearSVC, "_tuning", Tuning(stretch=0.0, round_visits=10_000))
    X, y = blobs(n=80, d=3)
    models = fit_on(4, 1.0 + 0.1 * X, y, gap_tol=1e-2, tol=1e-9, max_iter=-1, C=1.0)
    assert 1.0 < models[0].trace_.info["stretch"] <= 4.0
    found = judge(models, 1.0 + 0.1 * X, y)
    assert found.gap <= 1e-2 * found.primal


def test_costs_far_above_what_the_margins_need():
    X, y = blobs(n=40, d=30)
    models = fit_on(3, 1e5 * X, y, [1, 0, 2], C=1e3, tol=1e-3, max_iter=-1)
    one = LinearSVC(C=1e3, tol=1e-3, max_iter=-1).fit(1e5 * X, y)
    assert models[0].dual_objective_ == pytest.approx(one.dual_objective_, rel=1e-2)
    assert all(model.status_.converged and model.violation_ <= 1e-3 for model in models)


def test_the_same_arrays_on_all_ranks_are_sliced():
    X, y = blobs()

    def fit(team):
        return LinearSVC(engine=Mpi(comm=team), tol=1e-3).fit(X, y)

    models = run_ranks(3, fit)
    ids = np.concatenate([model.support_ for model in models])
    assert len(np.unique(ids)) == len(ids)  # nobody has a row of another
    assert judge(models, X, y).psi.max() <= 1.01e-3


def test_a_warm_start_goes_on_from_every_ranks_rows():
    X, y = blobs()
    cuts = bounds(len(y), 2)

    def fit(team):
        part = slice(cuts[team.rank], cuts[team.rank + 1])
        model = LinearSVC(engine=Mpi(data="shards", comm=team), tol=1e-3, warm_start=True)
        cold = model.fit(X[part], y[part]).n_iter_
        return cold, model.fit(X[part], y[part]).n_iter_

    for cold, warm in run_ranks(2, fit):
        assert warm <= 1 < cold


def test_limits_and_callbacks_are_those_of_the_first_rank():
    X, y = blobs()
    calls = [0, 0]

    def fit(team):
        def callback(row):
            calls[team.rank] += 1
            return row.iteration == 3

        model = LinearSVC(engine=Mpi(comm=team, data="same"), tol=1e-9, callback=callback)
        if team.rank == 0:
            with pytest.warns(ConvergenceWarning):  # only the first rank warns
                return model.fit(X, y)
        return model.fit(X, y)

    models = run_ranks(2, fit)
    assert calls == [3, 0]
    assert [model.status_ for model in models] == [Status.CALLBACK] * 2
    judge(models, X, y)


def test_the_trace_counts_rounds_and_changed_weights():
    X, y = blobs()
    model = fit_on(2, X, y, tol=1e-3)[0]
    info = model.trace_.info
    assert info["ranks"] == 2 and info["bytes_received"] > 0
    assert info["rounds"] >= len(model.trace_) and info["bytes_of_steps"] > 0
    assert 1.3 <= info["stretch"] <= 2.0


def test_what_a_team_cannot_do_is_refused():
    X, y = blobs(n=20)
    with pytest.raises(ValueError, match="partial_fit learns in one process"):
        LinearSVC(engine="mpi").partial_fit(X, y, classes=range(4))
    with pytest.raises(ValueError, match="all ranks have the whole model"):
        LinearSVC(engine=Mpi(model="root")).fit(X, y)
    for engine in ("numpy", "gpu", 3):
        with pytest.raises(ValueError, match="engine"):
            LinearSVC(engine=engine).fit(X, y)


def test_a_row_that_is_not_finite_is_an_error_on_all_ranks():
    X, y = blobs()
    X[-1, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        fit_on(3, X, y)
