"""Models along C, like fits alone; leave-one-out errors, against as many fits as there are samples."""

import numpy as np
import pytest
from helpers import audit
from oracle import kernel_matrix
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel

from multimargin import KernelSVC, regularization_path
from multimargin.problems import PROBLEMS

MACHINES = sorted(set(PROBLEMS) - {"c-svc"})
CS = [0.05, 1.0, 30.0]


@pytest.fixture(scope="module")
def few():
    """70 rows of three overlapping classes."""
    X, y = make_blobs(70, centers=3, n_features=3, cluster_std=2.5, random_state=3)
    return X - X.mean(axis=0), y


@pytest.mark.parametrize("machine", MACHINES)
def test_models_are_those_of_fits_alone(machine, few):
    X, y = few
    path = regularization_path(X, y, machine, Cs=[30.0, 0.05, 1.0], gamma=0.1)
    np.testing.assert_array_equal(path.Cs, CS)
    K = kernel_matrix("rbf", X, gamma=0.1)
    for C, model, gap in zip(CS, path.models, path.gaps, strict=True):
        alone = KernelSVC(machine, C, gamma=0.1).fit(X, y)
        audit(model, K, y, C, 1e-3)
        assert model.C == C
        assert gap == model.duality_gap_
        assert model.primal_objective_ == pytest.approx(alone.primal_objective_, rel=1e-3)
        np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=0.02)


def without(machine, X, y, C, **options):
    """Scores of each row by a machine that was trained on the others, and the labels that it predicts."""
    scores, labels = [], []
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        model = KernelSVC(machine, C, tol=1e-6, **options).fit(X[rest], y[rest])
        scores.append(model.decision_function(X[i : i + 1])[0])
        labels.append(model.predict(X[i : i + 1])[0])
    return np.array(scores), np.array(labels)


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("machine", MACHINES)
def test_leave_one_out_against_all_fits(machine, bias, few):
    X, y = few
    path = regularization_path(X, y, machine, Cs=CS, gamma=0.1, bias=bias, tol=1e-6)
    for C, model, found in zip(CS, path.models, path.leave_one_out, strict=True):
        scores, labels = without(machine, X, y, C, gamma=0.1, bias=bias)
        assert not (found.right & found.wrong).any()
        assert (labels[found.right] == y[found.right]).all()
        assert (labels[found.wrong] != y[found.wrong]).all()
        assert found.lower <= np.mean(labels != y) <= found.upper
        exact = np.ones(len(y), dtype=bool)
        exact[model.support_] = False
        np.testing.assert_array_equal(found.exact, exact)
        assert ((found.right | found.wrong) >= exact).all()
        np.testing.assert_allclose(scores[exact], model.decision_function(X)[exact], atol=1e-4)
    assert path.leave_one_out[1].right.sum() > found.exact.sum() / 2  # the bounds say something


def test_margins_without_a_sample_are_in_the_ball(few):
    """The bound itself, not only what it says of labels."""
    X, y = few
    C, model = 1.0, KernelSVC(C=1.0, gamma=0.1, tol=1e-6).fit(X, y)
    scores, _ = without("crammer-singer", X, y, C, gamma=0.1)
    alpha = np.zeros((len(y), 3))
    alpha[model.support_] = model.dual_coef_
    middle = model.decision_function(X) - 0.5 * alpha
    np.testing.assert_array_less(
        np.linalg.norm(scores - middle, axis=1), 0.5 * np.linalg.norm(alpha, axis=1) + 1e-4
    )


def test_more_than_support_vectors_is_decided():
    X, y = make_blobs(300, centers=3, n_features=5, cluster_std=1.5, random_state=0)
    path = regularization_path(X, y, Cs=[0.01, 0.1], gamma=0.05)
    for found in path.leave_one_out:
        undecided = ~(found.right | found.wrong)
        assert undecided.sum() < 0.5 * (~found.exact).sum()


@pytest.mark.parametrize("machine", ["c-svc", "crammer-singer"])
def test_with_a_free_bias_support_vectors_are_undecided(machine, few):
    X, y = few
    y = y % 2
    path = regularization_path(X, y, machine, Cs=[0.3, 3.0], gamma=0.1, bias="free", tol=1e-5)
    for C, model, found in zip(path.Cs, path.models, path.leave_one_out, strict=True):
        _, labels = without(machine, X, y, C, gamma=0.1, bias="free")
        assert found.lower <= np.mean(labels != y) <= found.upper
        assert not found.right[model.support_].any()
        assert found.upper >= len(model.support_) / len(y)


def test_weights_and_other_kernels(few):
    X, y = few
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    path = regularization_path(X, y, Cs=[1.0], gamma=0.1, sample_weight=weight)
    alone = KernelSVC(gamma=0.1).fit(X, y, weight)
    assert path.models[0].primal_objective_ == pytest.approx(alone.primal_objective_, rel=1e-3)
    assert len(path.leave_one_out[0].right) == np.count_nonzero(weight)
    K = rbf_kernel(X, gamma=0.1)
    other = regularization_path(K, y, Cs=[1.0], kernel="precomputed", bias="none")
    plain = regularization_path(X, y, Cs=[1.0], gamma=0.1)
    assert (other.lower, other.upper) == (plain.lower, plain.upper)
    np.testing.assert_array_equal(other.models[0].predict(K), plain.models[0].predict(X))


def test_nothing_is_left_to_do_if_nothing_is_bounded():
    X, y = make_blobs(200, centers=3, n_features=5, cluster_std=0.5, random_state=0)
    path = regularization_path(X, y, Cs=[1.0, 2.0, 4.0], gamma=0.1)
    assert [model.n_iter_ for model in path.models][1:] == [0, 0]
    assert all(model.status_.converged for model in path.models)


def test_refusals(few):
    with pytest.raises(TypeError, match="'depth'"):
        regularization_path(*few, depth=3)
    with pytest.raises(ValueError, match="machine must be one of"):
        regularization_path(*few, "svm")
    with pytest.raises(ValueError, match="at least one"):
        regularization_path(*few, Cs=[])


def test_table_and_picture(few, tmp_path):
    path = regularization_path(*few, Cs=CS, gamma=0.1)
    lines = str(path).splitlines()
    assert len(lines) == 4
    assert lines[0].split()[0] == "C"
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    ax = path.plot()
    assert ax.get_xscale() == "log"
    ax.figure.savefig(tmp_path / "path.png")
    assert (tmp_path / "path.png").stat().st_size > 5000
