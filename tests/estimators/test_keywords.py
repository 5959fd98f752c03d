"""Keywords of SVC and LinearSVC that are not taken: the error says what to write instead."""

import copy
import inspect
import pickle

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as PeerLinearSVC

from multimargin import KernelSVC, LinearSVC

FOREIGN = {
    "probability": "CalibratedClassifierCV",
    "break_ties": "predict is always the class with the largest",
    "decision_function_shape": "one score per class",
    "penalty": "l2",
    "loss": "machine='crammer-singer'",
    "dual": "leave it out",
    "multi_class": "machine='one-vs-rest'",
}


@pytest.mark.parametrize(
    ("estimator", "keyword"),
    [(KernelSVC, name) for name in FOREIGN] + [(LinearSVC, name) for name in FOREIGN if name != "loss"],
)
def test_the_error_names_the_replacement(estimator, keyword):
    words = rf"{estimator.__name__} does not take '{keyword}'.*{FOREIGN[keyword]}"
    with pytest.raises(TypeError, match=words):
        estimator(**{keyword: True})
    with pytest.raises(ValueError, match=words):
        estimator().set_params(**{keyword: True})


@pytest.mark.parametrize(("ours", "theirs"), [(KernelSVC, SVC), (LinearSVC, PeerLinearSVC)])
def test_every_keyword_of_scikit_learn_is_taken_or_explained(ours, theirs):
    for name in theirs().get_params():
        assert name in ours().get_params() or name in FOREIGN


def test_searches_and_pipelines_say_it_too(iris):
    search = GridSearchCV(KernelSVC(), {"probability": [True]}, error_score="raise")
    with pytest.raises(ValueError, match="CalibratedClassifierCV"):
        search.fit(*iris)
    with pytest.raises(ValueError, match="'dual'"):
        make_pipeline(StandardScaler(), LinearSVC()).set_params(linearsvc__dual=False)


@pytest.mark.parametrize("estimator", [KernelSVC, LinearSVC])
def test_other_unknown_keywords_get_the_usual_errors(estimator):
    with pytest.raises(TypeError, match="unexpected keyword argument 'gama'"):
        estimator(gama=1.0)
    with pytest.raises(ValueError, match="Invalid parameter 'gama' for estimator"):
        estimator().set_params(gama=1.0)


def test_a_subclass_may_take_them():
    class Own(KernelSVC):
        def __init__(self, probability=False):
            super().__init__()
            self.probability = probability

    model = Own(probability=True)
    for each in (model, clone(model), copy.copy(model), Own().set_params(probability=True)):
        assert each.get_params()["probability"] is True


@pytest.mark.parametrize("estimator", [KernelSVC, LinearSVC])
def test_the_signature_is_that_of_the_parameters(estimator):
    assert list(inspect.signature(estimator).parameters)[:2] == ["machine", "C"]
    assert pickle.loads(pickle.dumps(estimator(C=2.0))).C == 2.0
