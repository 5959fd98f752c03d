"""What a notebook shows of estimators: scikit-learn's diagram and the certificate."""

import re
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from multimargin import KernelSVC, KernelSVCCV, LinearSVC, LinearSVCCV
from multimargin.system.versions import DOCUMENTATION

CARD = "multimargin-card"


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def shown(model):
    """The HTML of both hooks, which must be alike but for the numbers of scikit-learn's elements."""
    html, bundle = model._repr_html_(), model._repr_mimebundle_()
    assert bundle["text/plain"] == repr(model)
    unnumbered = [re.sub(r"sk-\w+-id-\d+", "", text) for text in (html, bundle["text/html"])]
    assert unnumbered[0] == unnumbered[1]
    return html


def values(html):
    """The exact numbers of a card, in their order."""
    card = html[html.index(f'class="{CARD}"') :]
    return [float(value) for value in re.findall(r'<data value="([^"]+)"', card)]


@pytest.mark.parametrize(
    "model",
    [KernelSVC(C=10), KernelSVC("c-svc"), LinearSVC(), LinearSVC("one-vs-rest", loss="squared_hinge")],
    ids=repr,
)
def test_a_fitted_model_shows_its_certificate(model, iris):
    X, y = iris
    assert CARD not in shown(model)
    model.fit(X, y > 0 if model.machine == "c-svc" else y)
    html = shown(model)
    assert html.count(f'class="{CARD}"') == 1
    gap, primal, bound, violation, tol = values(html)[:5]
    assert gap == pytest.approx(model.duality_gap_ / model.primal_objective_)
    assert (primal, bound, violation, tol) == (
        model.primal_objective_,
        -model.dual_objective_,
        model.violation_,
        model.tol,
    )
    assert ">Converged<" in html and "Proved in float64: no model of this kind" in html


def test_a_fit_that_did_not_converge_says_so(iris):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        html = shown(KernelSVC(solver="mcsvm", max_iter=1).fit(*iris))
    assert ">Not converged<" in html and "Stopped at max_iter." in html
    assert 'class="badge wrong"' in html and 'class="badge good"' not in html


def test_the_claim_has_a_condition_if_the_kernel_may_be_indefinite(iris):
    html = shown(KernelSVC(kernel="sigmoid", gamma=0.001).fit(*iris))
    assert "If the kernel is positive semidefinite" in html and "Proved in float64" not in html


@pytest.mark.parametrize("search", [KernelSVCCV(gammas=[0.1]), LinearSVCCV()], ids=lambda s: type(s).__name__)
def test_a_search_shows_the_certificate_of_its_model(search, iris):
    search.set_params(Cs=[1.0, 10.0], cv=3)
    assert CARD not in shown(search)
    html = shown(search.fit(*iris))
    assert values(html)[1] == search.best_estimator_.primal_objective_
    assert DOCUMENTATION in html
    assert CARD not in shown(clone(search).set_params(refit=False).fit(*iris))


def test_a_stream_has_no_certificate_to_show(iris):
    X, y = iris
    assert CARD not in shown(LinearSVC().partial_fit(X, y, classes=np.unique(y)))


def test_scikit_learns_switch_turns_it_off(iris):
    model = KernelSVC().fit(*iris)
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]
