"""KernelSVC on a team: whatever way the rows are divided, the model is that of one process with all rows."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import audit
from oracle import kernel_matrix
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from thread_team import run_ranks

from multimargin import KernelSVC, Status
from multimargin.engines import Mpi

TOL, GAMMA = 1e-5, 2.0**-4
DIGITS = load_digits()
X = DIGITS.data[:160] / 16
Y = DIGITS.target[:160] % 4
BOUNDS = {"two": [0, 80, 160], "ragged": [0, 3, 100, 160], "empty": [0, 90, 90, 160, 160]}
SPLITS = pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)


def svc(**parameters):
    return KernelSVC(**{"C": 2.0, "gamma": GAMMA, "tol": TOL, "n_threads": 1} | parameters)


def rows_of(value, part):
    if value is None:
        return None
    return value.tocsr()[part] if sp.issparse(value) else value[part]


def fit_shards(bounds, X, y, sample_weight=None, setting=None, **parameters):
    """The models of all ranks, each fitted to its rows."""
    parts = [slice(*ends) for ends in pairwise(bounds)]

    def work(team):
        mine = [rows_of(value, parts[team.rank]) for value in (X, y, sample_weight)]
        engine = Mpi(data="shards", comm=team, **(setting or {}))
        return svc(engine=engine, **parameters).fit(*mine)

    return run_ranks(len(parts), work)


def fit_same(P, *data, **parameters):
    return run_ranks(P, lambda team: svc(engine=Mpi(comm=team), **parameters).fit(*data))


def is_model_of(model, one, new):
    """Whether a model predicts as another, with the same support vectors, labels and certificate."""
    np.testing.assert_allclose(model.decision_function(new), one.decision_function(new), atol=1e-3)
    np.testing.assert_array_equal(model.classes_, one.classes_)
    np.testing.assert_allclose(model.class_weight_, one.class_weight_)
    np.testing.assert_allclose(model.dual_objective_, one.dual_objective_, rtol=1e-6)
    assert model.shape_fit_ == one.shape_fit_
    assert model.n_support_.sum() == len(model.support_)
    assert model.bias_ == one.bias_


# -- the same model -----------------------------------------------------------------------------------
@pytest.mark.parametrize("P", [1, 2, 3, 4])
def test_the_same_arrays_everywhere_give_the_model_of_one_process_on_every_rank(P):
    models = fit_same(P, X, Y)
    K = kernel_matrix("rbf", X, gamma=GAMMA)
    for model in models:
        audit(model, K, Y, 2.0, TOL)
        is_model_of(model, svc().fit(X, Y), X)
        assert model.dual_coef_.tobytes() == models[0].dual_coef_.tobytes()
        assert model.support_vectors_.tobytes() == X[model.support_].tobytes()


@SPLITS
def test_shards_give_the_model_of_one_process_with_their_rows(bounds):
    K = kernel_matrix("rbf", X, gamma=GAMMA)
    for model in fit_shards(bounds, X, Y):
        audit(model, K, Y, 2.0, TOL)
        is_model_of(model, svc().fit(X, Y), X)
        np.testing.assert_array_equal(model.n_support_, np.bincount(Y[model.support_], minlength=4))


@SPLITS
@pytest.mark.parametrize(
    "parameters",
    [
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 2, "coef0": 1.0, "bias": "free", "C": 0.1, "tol": 1e-4},
        {"gamma": "scale", "class_weight": "balanced"},
        {"class_weight": {0: 3.0, 2: 0.5}, "machine": "weston-watkins"},
        {"kernel": lambda A, B: rbf_kernel(A, B, gamma=GAMMA)},
        {"machine": "one-vs-rest"},
    ],
    ids=["linear", "free bias", "balanced", "weights by name", "function", "one-vs-rest"],
)
def test_parameters_are_agreed_on_by_all_ranks(bounds, parameters):
    one = svc(**parameters).fit(X, Y)
    for model in fit_shards(bounds, X, Y, **parameters):
        is_model_of(model, one, X)
        if hasattr(one, "coef_"):
            np.testing.assert_allclose(model.coef_, one.coef_, atol=1e-3)


@SPLITS
@pytest.mark.parametrize("form", [sp.csr_array, sp.coo_matrix])
def test_sparse_shards(bounds, form):
    for model in fit_shards(bounds, form(X), Y):
        is_model_of(model, svc().fit(sp.csr_array(X), Y), X)
        assert sp.issparse(model.support_vectors_)
        np.testing.assert_array_equal(model.support_vectors_.toarray(), X[model.support_])


def test_small_integers_on_one_rank_and_floats_on_another():
    whole = (16 * X).astype(np.uint8)
    shards = [whole[:80], whole[80:].astype(np.float32) / 2]
    together = np.concatenate([part.astype(np.float64) for part in shards])
    models = run_ranks(
        2,
        lambda team: svc(gamma=1e-3, engine=Mpi(comm=team)).fit(
            shards[team.rank], Y[80 * team.rank : 80 * (team.rank + 1)]
        ),
    )
    one = svc(gamma=1e-3).fit(together, Y)
    for model in models:
        is_model_of(model, one, together)


@SPLITS
def test_a_class_of_one_rank_and_text_of_different_widths(bounds):
    labels = np.where(Y == 0, "zero", np.where(Y == 1, "1", "many"))
    labels[: bounds[1]] = "only on the first rank"
    for model in fit_shards(bounds, X, labels):
        is_model_of(model, svc().fit(X, labels), X)
        assert model.predict(X[:1])[0] in labels


@SPLITS
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_rows_of_weight_zero_are_left_out_and_counted(bounds, kernel):
    rng = np.random.default_rng(1)
    weight = rng.choice([0.0, 0.5, 2.0], size=160)
    weight[: bounds[1]] = 0  # the first rank has nothing to do
    data = X if kernel == "rbf" else rbf_kernel(X, gamma=GAMMA)
    one = svc(kernel=kernel).fit(data, Y, weight)
    for model in fit_shards(bounds, data, Y, weight, kernel=kernel):
        is_model_of(model, one, data)
        assert weight[model.support_].all()
        np.testing.assert_array_equal(np.bincount(Y[model.support_], minlength=4), model.n_support_)


def test_strings_for_a_callable_kernel():
    words = np.array(["a", "ab", "abc", "b", "bb", "bbb", "ba", "aab"])
    labels = np.array([0, 0, 0, 1, 1, 1, 1, 0])

    def kernel(A, B):
        counts = [np.array([[word.count(c) for c in "abc"] for word in part], float) for part in (A, B)]
        return np.exp(-((counts[0][:, None] - counts[1][None]) ** 2).sum(axis=2))

    one = svc(kernel=kernel).fit(words, labels)
    for model in fit_shards([0, 5, 5, 8], words, labels, kernel=kernel):
        is_model_of(model, one, words)


def test_pdasmc():
    for model in fit_shards(BOUNDS["ragged"], X, Y, solver="pdasmc", working_set_size=40):
        is_model_of(model, svc().fit(X, Y), X)
        assert model.trace_.info["solver"] == "pdasmc"


# -- what a model knows -------------------------------------------------------------------------------
def test_a_model_does_not_know_the_labels_of_other_rows():
    one = svc().fit(X, Y)
    for model in fit_shards(BOUNDS["ragged"], X, Y, np.full(160, 1.0)):
        np.testing.assert_array_equal(model.suspects(3), one.suspects(3))
        support = model.support_[:5]
        np.testing.assert_allclose(
            model.label_distribution(support), one.label_distribution(support), atol=1e-3
        )
        other = np.setdiff1d(np.arange(160), model.support_)[0]
        with pytest.raises(ValueError, match="support vectors: a model trained by several processes"):
            model.label_distribution(other)
        assert len(model._labels) == len(model._costs) == len(model.support_)


def test_a_stored_model_predicts_without_the_team():
    fitted = fit_same(3, X, Y)[2]
    model = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(model.predict(X), fitted.predict(X))
    one = svc().fit(X, Y)  # its labels may differ where two scores are equal up to the tolerance
    np.testing.assert_allclose(model.decision_function(X), one.decision_function(X), atol=1e-4)
    assert model.engine == Mpi()


def test_prediction_sends_nothing():
    def work(team):
        model = svc(engine=Mpi(comm=team)).fit(X, Y)
        before = team.calls
        part = slice(40 * team.rank, 40 * team.rank + 40)
        labels = model.predict(X[part])
        np.testing.assert_array_equal(labels, model.predict(X)[part])
        assert team.calls == before

    run_ranks(4, work)


def test_the_model_on_the_first_rank_only():
    def work(team):
        model = svc(engine=Mpi(comm=team)).fit(X, Y)
        return model.set_params(engine=Mpi(comm=team, model="root")).fit(X, Y)

    first, *others = run_ranks(3, work)
    is_model_of(first, svc().fit(X, Y), X)
    for model in others:
        assert model.status_ is Status.CONVERGED
        assert model.shape_fit_ == (160, 64)
        assert model.n_iter_ == first.n_iter_
        assert model.duality_gap_ == first.duality_gap_
        np.testing.assert_array_equal(model.classes_, first.classes_)
        asked = [
            lambda model: model.predict(X),
            lambda model: model.decision_function(X),
            lambda model: model.label_distribution(0),
            lambda model: model.suspects(),
            lambda model: model.support_vectors_,
            lambda model: model.n_support_,
        ]
        for ask in asked:
            with pytest.raises(NotFittedError, match=r"only rank 0 has one.*Mpi\(model='all'\)"):
                ask(model)
        for name in ("support_", "dual_coef_", "coef_", "n_support_"):
            assert not hasattr(model, name)
        with pytest.raises(NotFittedError, match="only rank 0"):
            pickle.loads(pickle.dumps(model)).predict(X)


# -- fits in a row ------------------------------------------------------------------------------------
@pytest.mark.parametrize("model", ["all", "root"])
@pytest.mark.parametrize("bias", ["none", "free"])
def test_warm_start_takes_each_rank_s_part_of_the_previous_solution(model, bias):
    bounds = BOUNDS["ragged"]
    weight = np.where(np.arange(160) % 7 == 0, 0.0, 1.0)

    def work(team):
        mine = slice(bounds[team.rank], bounds[team.rank + 1])
        engine = Mpi(data="shards", model=model, comm=team)
        fitted = svc(engine=engine, warm_start=True, bias=bias).fit(X[mine], Y[mine], weight[mine])
        cold = fitted.n_iter_
        return cold, fitted.fit(X[mine], Y[mine], weight[mine])

    cold, fitted = run_ranks(3, work)[0]
    assert fitted.n_iter_ < cold
    is_model_of(fitted, svc(bias=bias).fit(X, Y, weight), X)


def test_two_fits_in_a_row_are_equal_to_the_last_bit():
    def work(team):
        model = svc(engine=Mpi(comm=team))
        first = model.fit(X, Y).dual_coef_
        return first, model.fit(X, Y).dual_coef_

    for first, second in run_ranks(3, work):
        assert first.tobytes() == second.tobytes()


# -- only the first rank speaks ---------------------------------------------------------------------
def test_callbacks_run_on_the_first_rank_and_stop_all():
    seen = {rank: [] for rank in range(3)}

    def work(team):
        def stop(row):
            seen[team.rank].append(row.iteration)
            return row.iteration == 2

        return svc(engine=Mpi(comm=team), callback=stop, solver="mcsvm").fit(X, Y)

    with pytest.warns(ConvergenceWarning, match="callback") as told:
        models = run_ranks(3, work)
    assert len(told) == 1
    assert seen == {0: [1, 2], 1: [], 2: []}
    assert [(model.status_, model.n_iter_) for model in models] == [(Status.CALLBACK, 2)] * 3


def test_scikit_learn_s_callbacks_get_models_on_the_first_rank():
    pytest.importorskip("sklearn.callback")
    scores = []

    class Scores:
        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            scores.append((fitted_estimator.score(X, Y), len(fitted_estimator.support_)))

    def work(team):
        model = svc(engine=Mpi(comm=team))
        if team.rank == 0:
            model.set_callbacks(Scores())
        return model.fit(X, Y)

    model = run_ranks(2, work)[0]
    assert len(scores) >= 2
    assert scores[-1] == (model.score(X, Y), len(model.support_))


def test_only_the_first_rank_shows_progress(capsys):
    fit_same(3, X, Y, verbose=2)
    shown = capsys.readouterr().err
    assert shown.count("converged:") == 1


# -- errors -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("data", "parameters", "match"),
    [
        (
            (X[:, :40], Y),
            {"kernel": "precomputed"},
            r"square matrix of kernel values to fit, got shape \(160, 40\)",
        ),
        ((X, Y), {"class_weight": {9: 2.0}}, "class_weight has a weight for 9"),
        ((X, np.zeros(160, int)), {}, "At least 2 classes"),
        ((X, Y, np.full(160, 1e-320)), {"C": 1e-10}, "must be at least 1e-302"),
        ((X, Y), {"C": -1.0}, "C must be"),
    ],
)
def test_all_ranks_raise_the_same_error(data, parameters, match):
    def work(team):
        with pytest.raises(ValueError, match=match) as caught:
            svc(engine=Mpi(comm=team), **parameters).fit(*data)
        return str(caught.value)

    assert len(set(run_ranks(3, work))) == 1
