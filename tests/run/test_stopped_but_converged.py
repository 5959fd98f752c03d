"""A limit that is met at a point whose violation is proved to be at most tol: the fit has converged."""

import numpy as np
import pytest
from helpers import unfinished

from multimargin import KernelSVC
from multimargin.problems import PROBLEMS
from multimargin.solution import Status


def fit(machine, wine, bias="auto", **limits):
    X, y = wine
    return KernelSVC(machine, bias=bias, **limits).fit(X, y > 0 if machine == "c-svc" else y)


@pytest.mark.parametrize("machine", PROBLEMS)
def test_a_callback_that_stops_at_the_end(machine, wine):
    rounds = fit(machine, wine).n_iter_
    model = fit(machine, wine, callback=lambda row: row.iteration >= rounds)
    assert model.status_ is Status.CONVERGED
    assert model.fit_status_ == 0
    assert model.violation_ <= model.tol


def test_a_callback_that_stops_a_free_bias_at_the_end(wine):
    rounds = fit("crammer-singer", wine, "free").n_iter_
    assert fit("crammer-singer", wine, "free", callback=lambda row: row.iteration >= rounds).status_.converged


def test_max_iter_that_suffices(wine):
    rounds = fit("crammer-singer", wine).n_iter_
    assert fit("crammer-singer", wine, max_iter=rounds).status_ is Status.CONVERGED


def test_a_callback_that_stops_before_is_said_to_have_done_so(digits):
    X, y = digits
    with unfinished():
        model = KernelSVC(gamma=0.05, solver="mcsvm", callback=lambda row: row.iteration >= 5).fit(X, y)
    assert model.status_ is Status.CALLBACK
    assert model.violation_ > model.tol
    assert np.isfinite(model.duality_gap_)
