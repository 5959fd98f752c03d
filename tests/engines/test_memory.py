"""The kernel row cache keeps to its budget."""

import gc
import re
import subprocess
import sys
import textwrap
import weakref

import numpy as np
import pytest
from helpers import METHODS, SOLVERS, audit, unfinished
from oracle import kernel_matrix

from multimargin import KernelSVC
from multimargin.engines import ENGINES
from multimargin.engines.budget import Budget
from multimargin.system.memory import CACHE_SHARE, available_bytes, cache_bytes

PROBE = textwrap.dedent(
    """
    import sys, warnings
    import numpy as np
    from pathlib import Path
    from multimargin import KernelSVC

    def resident(which):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith(which))) * 1024 / 1e6

    def gaussian(A, B):
        return np.exp(-0.05 * ((A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T))

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    classes = rng.integers(4, size=4000)
    X = rng.normal(size=(4, 6))[classes] + 1.5 * rng.normal(size=(4000, 6))
    for machine, solver, kernel in [case.split() for case in sys.argv[2:]]:
        model = KernelSVC(
            machine, solver=solver, kernel=gaussian if kernel == "callable" else kernel, gamma=0.05,
            cache_size=float(sys.argv[1]), max_iter=10, n_threads=1,
        )
        y = classes % 2 if machine == "c-svc" else classes
        model.fit(X[:50], y[:50])
        Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again from VmRSS
        before = resident("VmRSS")
        model.fit(X, y)
        print(resident("VmHWM") - before, model.trace_[-1].rows)
    """
)
CASES = ["c-svc svm-light rbf", "crammer-singer mcsvm rbf", "crammer-singer msvmpack rbf"]
CASES += [f"{machine} auto rbf" for machine in ("crammer-singer", "one-vs-rest", "msvm2", "c-svc")]
CASES += ["crammer-singer dasmc rbf", "crammer-singer auto linear", "crammer-singer auto callable"]
LARGE = ["c-svc vpdt rbf"]
FIXED = 4  # MB that do not depend on the cache: alpha, the gradient, measures, tiles of products


def peak_growth(cache_size, *cases):
    """MB of new peak memory and kernel rows computed, for each case, in a process of their own."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(cache_size), *cases],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [tuple(map(float, line.split())) for line in done.stdout.splitlines()]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
@pytest.mark.parametrize(
    ("cache_size", "cases"),
    [
        pytest.param(3, CASES, id="3 MB"),
        pytest.param(20, CASES + LARGE, id="20 MB", marks=pytest.mark.slow),
    ],
)
def test_cache_size_is_a_hard_limit(cache_size, cases):
    """Every method; all 4,000 rows would take 64 MB, and twice that if they are float64."""
    for case, (growth, rows) in zip(cases, peak_growth(cache_size, *cases), strict=True):
        assert growth <= cache_size + FIXED, case
        if "auto rbf" in case:
            assert rows * 4000 * 4 > cache_size * 1e6, case  # the limit was really in the way


def test_a_working_set_that_does_not_fit_is_an_error_before_the_fit_starts():
    """It names what would fit, and what it names does fit."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 2)), np.arange(3000) % 2
    settings = {"machine": "c-svc", "solver": "vpdt", "max_iter": 1, "gamma": 1.0}
    with pytest.raises(ValueError, match=r"of 2500 samples needs 25 MB .*cache_size is 10 MB") as caught:
        KernelSVC(cache_size=10, working_set_size=2500, **settings).fit(X, y)
    enough, most = re.findall(r">=([\d.]+), or working sets of at most (\d+)", str(caught.value))[0]
    with unfinished():
        KernelSVC(cache_size=float(enough), working_set_size=2500, **settings).fit(X, y)
        KernelSVC(cache_size=10, working_set_size=int(most), **settings).fit(X, y)


@pytest.mark.parametrize("engine", ["cpu", "numpy"])
@pytest.mark.parametrize("method", METHODS)
def test_a_cache_that_is_too_small_is_an_error(method, engine, digits):
    X, y = digits[0][:100], digits[1][:100]
    settings = {"gamma": 0.02, "solver": SOLVERS[method], "engine": engine}
    with pytest.raises(ValueError, match=r"cache_size is 0 MB.* use cache_size>=") as caught:
        KernelSVC(cache_size=0, **settings).fit(X, y)
    enough = float(re.findall(r">=([\d.]+[\d])", str(caught.value))[0])
    with unfinished():
        KernelSVC(cache_size=enough, max_iter=1, **settings).fit(X, y)


@pytest.mark.parametrize("item", [4, 8])
@pytest.mark.parametrize("temporary", [0, 16])
@pytest.mark.parametrize("solver", [0, 8])
@pytest.mark.parametrize("fixed", [None, 1, 300])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_parts_of_a_budget_are_no_more_than_the_whole(item, temporary, solver, fixed, share):
    for n in (10, 1000, 100_000):
        for size in (10**5, 10**6, 10**7, 10**9):
            try:
                budget = Budget(size, n, item, share, fixed, solver, temporary)
            except ValueError:
                assert (min(n, fixed or 2) ** 2) * (item + solver) + n * (item + temporary) > size
                continue
            q = min(n, budget.largest_block)
            block = q * q * (item + solver) if fixed else q * q * max(2 * item, item + solver)
            rows = n * item * (budget.kept_rows + budget.passing_rows) + n * temporary * budget.rows_in_python
            small = 100  # bytes, for the least block
            assert block + rows + (0 if fixed else budget.finisher_bytes) <= size + small
            lazy = budget.largest_lazy_block
            assert item * budget.lazy_room(lazy)[1] + rows <= size
            assert budget.lazy_room(lazy)[0] >= min(lazy, 64)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cache_size", [0.0015, 0.2, 1000, "auto"])
def test_any_cache_gives_the_same_optimum(cache_size, method, digits):
    """One row or two, some, all: 100 rows of 800 bytes are 0.08 MB, and dasmc's block as much again."""
    X, y = digits[0][:100], digits[1][:100]
    if method == "dasmc" and cache_size == 0.0015:
        cache_size = 0.085
    model = KernelSVC(C=2.0, gamma=0.02, solver=SOLVERS[method], cache_size=cache_size, tol=1e-3).fit(X, y)
    audit(model, kernel_matrix("rbf", X, gamma=0.02), y, 2.0, 1e-3)
    last = model.trace_[-1]
    if cache_size in (1000, "auto"):
        assert last.evictions == 0
        assert last.rows <= len(y)  # every row at most once
    elif cache_size < 0.1:
        assert model.trace_.info["cache_rows"] < 10


@pytest.mark.slow
def test_a_larger_cache_computes_fewer_rows(digits):
    X, y = digits
    rows = [
        KernelSVC(gamma=0.02, solver="mcsvm", cache_size=size).fit(X, y).trace_[-1].rows
        for size in (0.01, 0.02, 100)
    ]
    assert rows[0] > rows[1] > rows[2]


def test_rows_are_computed_only_where_the_step_is_not_zero(digits):
    """With every row kept, the rows computed are the samples that ever moved: no more than n."""
    X, y = digits
    model = KernelSVC(gamma=0.02, solver="dasmc", cache_size=100).fit(X, y)
    assert len(model.support_) <= model.trace_[-1].rows <= len(y)
    wide = KernelSVC(C=1e-3, gamma=0.02, solver="mcsvm", cache_size=100).fit(X, y)
    assert len(wide.support_) <= wide.trace_[-1].rows <= len(y)


def test_units():
    assert cache_bytes(100, 1000) == cache_bytes(100, 10) == 100 * 10**6
    assert 0 < cache_bytes("auto", 1000) <= CACHE_SHARE * available_bytes() * 1.5
    assert cache_bytes("auto", 10) < 10**9
    assert np.isfinite(available_bytes())


@pytest.mark.slow
def test_prediction_is_blocked():
    """No n_support x n matrix: 3,000 support vectors and 30,000 rows would need 360 MB in float32."""
    script = textwrap.dedent(
        """
        import resource
        import numpy as np
        from multimargin import KernelSVC

        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(3000, 10)), rng.integers(3, size=3000)
        model = KernelSVC(C=0.1, gamma=1.0, n_threads=2, tol=0.1).fit(X, y)
        assert len(model.support_) > 2900
        queries = rng.normal(size=(30000, 10))
        model.predict(queries[:100])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        model.decision_function(queries)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) / 1024 < 60


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
@pytest.mark.parametrize("machine", ["crammer-singer", "one-vs-rest", "c-svc"])
def test_a_fit_gives_its_memory_back_at_once(monkeypatch, machine, engine):
    """An engine in a reference cycle would keep its kernel rows until the garbage collector runs."""
    made, kind = [], ENGINES[engine]

    class Watched(kind):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            parts = [
                getattr(self, name) for name in ("state", "rows", "blocks", "solvers") if hasattr(self, name)
            ]
            made.extend(weakref.ref(part) for part in (self, *parts))

    monkeypatch.setitem(ENGINES, "watched", Watched)
    rng = np.random.default_rng(0)
    gc.disable()
    try:
        KernelSVC(machine, engine="watched").fit(rng.normal(size=(60, 3)), rng.integers(2, size=60))
        assert made and not any(part() is not None for part in made)
    finally:
        gc.enable()
