"""Newton's direction against the dense system, which is written out in full here."""

import numpy as np
import pytest
from thread_team import run_ranks

from multimargin.problems.newton_direction import NoDirectionError, SystemSize, newton_direction
from multimargin.system.team import SOLO

N, M, P = 40, 5, 7
FORMS = ("pairs", "columns")


def system(seed=0, share=0.5):
    rng = np.random.default_rng(seed)
    face = rng.random((N, M)) < share
    face[:3] = False
    face[3:6] = np.arange(M) == 2  # one free entry
    return rng.normal(size=(N, P)), face, rng.uniform(1.0, 1e3, N), rng.normal(size=(P, M))


def dense_direction(F, face, sigma, g, coupled):
    """Solves the system of the module's head with matrices of full size."""
    A = np.eye(M * P)
    for f, free, step in zip(F, face.astype(float), sigma, strict=True):
        D = np.diag(free)
        if coupled and free.any():
            D -= np.outer(free, free) / free.sum()
        A += step * np.kron(D, np.outer(f, f))
    return np.linalg.solve(A, -g.T.ravel()).reshape(M, P).T


@pytest.fixture(params=FORMS)
def form(request, monkeypatch):
    monkeypatch.setattr(SystemSize, "by_pairs", lambda *_: request.param == "pairs")
    return request.param


@pytest.mark.parametrize("coupled", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_direction_solves_the_dense_system(form, coupled, share):
    F, face, sigma, g = system(share=share)
    found = newton_direction(F, face, sigma, g, coupled, SOLO)
    np.testing.assert_allclose(found, dense_direction(F, face, sigma, g, coupled), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("coupled", [True, False])
@pytest.mark.parametrize("cuts", [[0, 15, 40], [0, 0, 40], [0, 1, 20, 20, 40]])
def test_team_finds_the_direction_of_one_process(form, coupled, cuts):
    F, face, sigma, g = system()

    def work(team):
        rows = slice(cuts[team.rank], cuts[team.rank + 1])
        return newton_direction(F[rows], face[rows], sigma[rows], g, coupled, team)

    parts = run_ranks(len(cuts) - 1, work)
    for found in parts:
        np.testing.assert_array_equal(found, parts[0])
    expected = dense_direction(F, face, sigma, g, coupled)
    np.testing.assert_allclose(parts[0], expected, rtol=1e-6, atol=1e-8)


def size_of(members, samples, rank, coupled=True):
    return SystemSize(np.full(M, float(members)), 4.0 * samples, samples, rank, coupled)


def test_form_with_less_work_is_chosen():
    assert size_of(10, 25, 200).by_pairs(np.inf)
    assert not size_of(1000, 2500, 3).by_pairs(np.inf)
    assert size_of(10, 25, 200, coupled=False).by_pairs(np.inf)
    assert not size_of(1000, 2500, 3, coupled=False).by_pairs(np.inf)


def test_form_that_fits_is_chosen():
    few = size_of(10, 25, 200)
    assert few.bytes[0] < few.bytes[1]
    assert few.by_pairs(few.bytes[0])
    many = size_of(1000, 2500, 150)
    assert many.bytes[1] < many.bytes[0]
    assert not many.by_pairs(many.bytes[1])
    with pytest.raises(NoDirectionError, match="memory"):
        few.by_pairs(few.bytes[0] - 1)


def test_indefinite_matrix_is_refused(monkeypatch):
    F, face, sigma, g = system()
    monkeypatch.setattr(SystemSize, "by_pairs", lambda *_: True)
    with pytest.raises(NoDirectionError, match="positive definite"):
        newton_direction(F, face, -sigma, g, True, SOLO)
