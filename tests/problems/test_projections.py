"""The projection onto a box cut by a hyperplane, its definition and both native searches against a QP."""

from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from multimargin import _core
from multimargin.inner.feasible_sets import PROJECTIONS
from multimargin.problems.projections import project_balanced


def native(method, w, low, high, total):
    out = np.empty_like(w)
    _core.project_balanced(w, low, high, total, method, out)
    return out


WAYS = {"definition": project_balanced} | {method: partial(native, method) for method in PROJECTIONS}
ways = pytest.mark.parametrize("project", WAYS.values(), ids=WAYS)
# Values with ties and exact bounds among them.
values = st.one_of(st.floats(-10, 10, width=32), st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0]))
widths = st.one_of(st.floats(0, 5, width=32), st.sampled_from([0.0, 1.0]))


@st.composite
def boxes(draw, points=1, largest=12):
    """(points to project, low, high, a total that there is)."""
    q = draw(st.integers(1, largest))
    ws = [np.array(draw(st.lists(values, min_size=q, max_size=q))) for _ in range(points)]
    low = np.array(draw(st.lists(values, min_size=q, max_size=q)))
    high = low + np.array(draw(st.lists(widths, min_size=q, max_size=q)))
    share = draw(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)))
    total = low.sum() + share * (high.sum() - low.sum())
    return ws, low, high, float(np.clip(total, low.sum(), high.sum()))


def size(*arrays):
    return 1.0 + sum(np.abs(a).sum() for a in arrays)


@ways
@given(case=boxes())
def test_is_feasible_and_its_own_projection(project, case):
    (w,), low, high, total = case
    z = project(w, low, high, total)
    assert (low <= z).all() and (z <= high).all()
    assert abs(z.sum() - total) <= 1e-14 * size(low, high, w)
    again = project(z, low, high, total)
    np.testing.assert_allclose(again, z, atol=1e-13 * size(low, high))


@ways
@given(case=boxes())
def test_is_one_shift_of_the_point(project, case):
    """z = clip(w + λ): free entries have one λ, those at bounds are beyond it."""
    (w,), low, high, total = case
    z = project(w, low, high, total)
    shift, near = z - w, 1e-12 * size(low, high, w)
    can_grow, can_shrink = z < high, z > low
    assume(can_grow.any() and can_shrink.any())
    # No i that can grow lies below a j that can shrink: otherwise moving weight from j to i would be nearer.
    assert shift[can_grow].min() >= shift[can_shrink].max() - near


@ways
@given(case=boxes(points=2))
def test_is_nonexpansive(project, case):
    (w, v), low, high, total = case
    z, x = (project(p, low, high, total) for p in (w, v))
    assert np.linalg.norm(z - x) <= np.linalg.norm(w - v) + 1e-12 * size(low, high, w, v)


@ways
@pytest.mark.parametrize("seed", range(8))
def test_equals_the_solution_of_the_quadratic_program(project, seed):
    rng = np.random.default_rng(seed)
    q = int(rng.integers(2, 12))
    w, low = 3 * rng.normal(size=q), rng.normal(size=q)
    high = low + rng.uniform(0.1, 3, size=q)
    total = float(rng.uniform(low.sum(), high.sum()))
    found = minimize(
        lambda z: 0.5 * (z - w) @ (z - w),
        low + (total - low.sum()) / (high - low).sum() * (high - low),
        jac=lambda z: z - w,
        bounds=list(zip(low, high, strict=True)),
        constraints={"type": "eq", "fun": lambda z: z.sum() - total, "jac": lambda z: np.ones(q)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(project(w, low, high, total), found.x, atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e-8, 1e8])
@pytest.mark.parametrize("seed", range(4))
def test_all_ways_agree(scale, seed):
    rng = np.random.default_rng(seed)
    q = 3000
    sign, C = rng.choice([-1.0, 1.0], size=q), scale * rng.uniform(0.5, 2, size=q)
    low, high = np.minimum(sign * C, 0), np.maximum(sign * C, 0)
    w = scale * rng.normal(size=q) * rng.choice([1.0, 100.0], size=q)
    points = [project(w, low, high, 0.0) for project in WAYS.values()]
    for z in points:
        np.testing.assert_allclose(z, points[0], atol=1e-11 * scale)
        assert abs(z.sum()) <= 1e-14 * np.abs(z).sum()
        assert ((z == low) | (z == high) | ((z > low) & (z < high))).all()


@ways
def test_samples_that_mislead_the_choice_of_a_median(project):
    """The native search looks at every 100th sample or so: those are far off here."""
    rng = np.random.default_rng(0)
    q = 3200
    w = np.exp(rng.uniform(-30, 0, size=q))
    step = q // 32 + 1
    w[step // 2 :: step] = 1e3
    low, high = np.zeros(q), rng.uniform(0, 1e-3, size=q)
    z = project(w, low, high, 0.4)
    np.testing.assert_allclose(z, project_balanced(w, low, high, 0.4), atol=1e-13)
    assert abs(z.sum() - 0.4) <= 1e-14


@ways
@pytest.mark.parametrize("far", [1e10, -1e17])
def test_a_point_far_away_still_has_the_sum(project, far):
    """w + λ is rounded to nothing that fits the box; the sum must come out all the same."""
    w = np.full(5, far)
    z = project(w, np.zeros(5), np.ones(5), 2.0)
    np.testing.assert_allclose(z, 0.4, atol=1e-15)


@ways
def test_no_room_and_single_entries(project):
    low, high = np.array([0.0, -2.0, 1.0]), np.array([3.0, 0.0, 1.0])
    w = np.array([0.3, 0.1, 7.0])
    assert (project(w, low, high, -1.0) == low).all()
    assert (project(w, low, high, 4.0) == high).all()
    assert project(np.array([5.0]), np.array([0.0]), np.array([1.0]), 0.25)[0] == 0.25


@ways
def test_says_what_is_wrong(project):
    unit = np.ones(2)
    with pytest.raises(ValueError, match="total must be between"):
        project(unit, -unit, unit, 2.5)
    with pytest.raises(ValueError, match="total must be between"):
        project(unit, -unit, unit, float("nan"))
    with pytest.raises(ValueError, match="low"):
        project(unit, unit, -unit, 0.0)
    for infinite in (np.inf, np.nan):
        with pytest.raises(ValueError, match="low and high must be finite"):
            project(unit, -unit, np.array([1.0, infinite]), 0.0)
        with pytest.raises(ValueError, match="w must be finite"):
            project(np.array([1.0, infinite]), -unit, unit, 0.0)


def test_an_unknown_search_is_named():
    unit = np.ones(2)
    with pytest.raises(ValueError, match="'pardalos-kovoor'"):
        native("bisection", unit, -unit, unit, 0.0)
