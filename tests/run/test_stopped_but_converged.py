"""A limit that is met at a point whose violation is proved to be at most tol: the fit has converged."""

import numpy as np
import pytest
from helpers import unfinished

from multimargin import KernelSVC
from multimargin.problems import PROBLEMS
from multimargin.solution import Status


def fit(machine, blobs, bias="auto", **limits):
    X, y = blobs
    return KernelSVC(machine, bias=bias, **limits).fit(X, y > 1 if machine == "c-svc" else y)


@pytest.mark.parametrize("machine", PROBLEMS)
def test_a_callback_that_stops_at_the_end(machine, blobs):
    rounds = fit(machine, blobs).n_iter_
    model = fit(machine, blobs, callback=lambda row: row.iteration >= rounds)
    assert model.status_ is Status.CONVERGED
    assert model.fit_status_ == 0
    assert model.violation_ <= model.tol


def test_a_callback_that_stops_a_free_bias_at_the_end(blobs):
    rounds = fit("crammer-singer", blobs, "free").n_iter_
    assert fit(
        "crammer-singer", blobs, "free", callback=lambda row: row.iteration >= rounds
    ).status_.converged


def test_max_iter_that_suffices(blobs):
    rounds = fit("crammer-singer", blobs).n_iter_
    assert fit("crammer-singer", blobs, max_iter=rounds).status_ is Status.CONVERGED


def test_a_callback_that_stops_before_is_said_to_have_done_so(digits):
    X, y = digits
    with unfinished():
        model = KernelSVC(gamma=0.05, solver="mcsvm", callback=lambda row: row.iteration >= 5).fit(X, y)
    assert model.status_ is Status.CALLBACK
    assert model.violation_ > model.tol
    assert np.isfinite(model.duality_gap_)
