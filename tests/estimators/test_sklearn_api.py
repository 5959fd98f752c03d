"""scikit-learn's own estimator checks, none expected to fail, and the company the estimator keeps."""

import io
import pickle

import numpy as np
import pytest
from helpers import SOLVERS, audit
from oracle import kernel_matrix
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from multimargin import KernelSVC, LinearSVC
from multimargin.system.versions import DOCUMENTATION

pandas = pytest.importorskip("pandas")


# Weights and repetitions must agree to 1e-7: a property of the optimum, so such models go close to it.
@parametrize_with_checks(
    [KernelSVC(), KernelSVC(solver=SOLVERS["growing"], tol=1e-10, bias="regularized")],
)
def test_estimator_checks(estimator, check):
    check(estimator)


@parametrize_with_checks([LinearSVC()])
def test_estimator_checks_of_the_linear_machine(estimator, check):
    check(estimator)


def plain_passes():
    """Every check of passes alone; those of weights with machines close to their optimum."""
    estimator = LinearSVC(C=0.01, max_iter=-1, subproblem="pivot", shrinking=False, keep_dual=True)
    for _, check in estimator_checks_generator(estimator):
        name = check.func.__name__
        exact = name.startswith("check_sample_weight_equivalence")
        yield pytest.param(clone(estimator).set_params(tol=1e-9) if exact else estimator, check, id=name)


@pytest.mark.parametrize(("estimator", "check"), list(plain_passes()))
def test_estimator_checks_of_plain_passes(estimator, check):
    check(clone(estimator))


def test_tags():
    assert is_classifier(KernelSVC())
    tags = KernelSVC().__sklearn_tags__()
    assert tags.input_tags.sparse
    assert not tags.input_tags.pairwise
    assert KernelSVC(kernel="precomputed").__sklearn_tags__().input_tags.pairwise


@pytest.mark.parametrize("dump", [pickle.dumps, lambda model: pickle.dumps(model, protocol=2)])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_pickle(dump, form, wine):
    X, y = wine
    X = sparse.csr_array(X) if form == "sparse" else X
    model = KernelSVC(gamma=0.05, bias="regularized").fit(X, y)
    back = pickle.loads(dump(model))
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    assert back.duality_gap_ == model.duality_gap_
    assert back.status_ == model.status_
    np.testing.assert_array_equal(
        back.label_distribution(int(model.support_[0])), model.label_distribution(int(model.support_[0]))
    )


def test_joblib_dump(wine):
    import joblib

    X, y = wine
    model = KernelSVC(gamma=0.05).fit(X, y)
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    np.testing.assert_array_equal(joblib.load(buffer).decision_function(X), model.decision_function(X))


def test_clone_is_unfitted_and_equal(wine):
    X, y = wine
    model = KernelSVC(C=3.0, gamma=0.05, solver="mcsvm", random_state=1).fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "dual_coef_")
    np.testing.assert_array_equal(copy.fit(X, y).decision_function(X), model.decision_function(X))


def test_fit_does_not_change_its_arguments(wine):
    X, y = wine[0].copy(), wine[1].copy()
    parameters = KernelSVC().get_params()
    model = KernelSVC().fit(X, y)
    np.testing.assert_array_equal(X, wine[0])
    np.testing.assert_array_equal(y, wine[1])
    assert model.get_params() == parameters


def test_pipeline_and_grid_search(wine):
    X, y = wine
    X = 100.0 * X + 7.0
    pipeline = make_pipeline(StandardScaler(), KernelSVC())
    search = GridSearchCV(pipeline, {"kernelsvc__C": [1e-3, 1.0], "kernelsvc__gamma": ["scale", 0.05]}, cv=3)
    search.fit(X, y)
    assert search.best_score_ > 0.9
    assert search.best_params_["kernelsvc__C"] == 1.0


def test_precomputed_kernel_is_sliced_by_cross_validation(wine):
    X, y = wine
    K = kernel_matrix("rbf", X, gamma=0.05)
    by_matrix = cross_val_score(KernelSVC(kernel="precomputed", bias="none", tol=1e-6), K, y, cv=4)
    by_features = cross_val_score(KernelSVC(gamma=0.05, tol=1e-6), X, y, cv=4)
    np.testing.assert_array_equal(by_matrix, by_features)


def test_inside_a_meta_estimator(wine):
    X, y = wine
    model = OneVsRestClassifier(KernelSVC(gamma=0.05)).fit(X, y)
    assert model.score(X, y) > 0.95


def frames():
    polars = pytest.importorskip("polars")
    return {"pandas": pandas.DataFrame, "polars": polars.DataFrame}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_and_feature_names(library, wine):
    X, y = wine
    names = [f"x{k}" for k in range(X.shape[1])]
    frame = frames()[library](dict(zip(names, X.T, strict=True)))
    model = KernelSVC(gamma=0.05, random_state=0).fit(frame, y)
    assert list(model.feature_names_in_) == names
    assert model.n_features_in_ == len(names)
    plain = KernelSVC(gamma=0.05, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(frame), plain.decision_function(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[names[::-1]])
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)


def test_pandas_target_and_weights_ignore_the_index(wine):
    X, y = wine
    weights = np.linspace(0.5, 1.5, len(y))
    index = np.arange(len(y))[::-1]
    model = KernelSVC(gamma=0.05, random_state=0).fit(
        pandas.DataFrame(X, index=index).rename(columns=str),
        pandas.Series(y, index=index),
        sample_weight=pandas.Series(weights, index=index[::-1]),
    )
    audit(model, kernel_matrix("rbf", X, gamma=0.05), y, weights, 1e-3)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output_in_a_pipeline(library, wine):
    frames()
    X, y = wine
    names = [f"x{k}" for k in range(X.shape[1])]
    pipeline = make_pipeline(StandardScaler(), KernelSVC()).set_output(transform=library)
    pipeline.fit(pandas.DataFrame(X, columns=names), y)
    assert list(pipeline[-1].feature_names_in_) == names
    assert pipeline.score(pandas.DataFrame(X, columns=names), y) > 0.95


@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_two_classes_have_one_score(bias, wine):
    X, y = wine
    X, y = X[y < 2], np.array(["no", "yes"])[y[y < 2]]
    model = KernelSVC(gamma=0.05, bias=bias).fit(X, y)
    decision = model.decision_function(X)
    assert decision.shape == (len(y),)
    K = kernel_matrix("rbf", X, X[model.support_], gamma=0.05, offset=float(bias == "regularized"))
    scores = K @ model.dual_coef_
    np.testing.assert_allclose(decision, scores[:, 1] - scores[:, 0], atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), np.where(decision > 0, "yes", "no"))


def test_score_shape_for_many_classes(digits):
    X, y = digits
    model = KernelSVC(gamma=0.02).fit(X, y)
    assert model.decision_function(X[:7]).shape == (7, 10)
    assert model.dual_coef_.shape == (len(model.support_), 10)
    assert model.intercept_.shape == (10,)
    assert model.dual_coef_.dtype == np.float64


def test_repr_shows_what_was_changed():
    assert repr(KernelSVC(C=2.0)) == "KernelSVC(C=2.0)"


@pytest.mark.parametrize("estimator", [KernelSVC, LinearSVC])
def test_the_html_representation_links_to_the_documentation(estimator):
    assert estimator()._get_doc_link() == DOCUMENTATION
    assert DOCUMENTATION in estimator()._repr_html_()
