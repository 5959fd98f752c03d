"""The kernel row cache keeps to its budget."""

import gc
import subprocess
import sys
import textwrap
import weakref

import numpy as np
import pytest
from helpers import METHODS, SOLVERS, audit
from oracle import kernel_matrix

from multimargin import KernelSVC
from multimargin.engines import ENGINES
from multimargin.system.memory import CACHE_SHARE, available_bytes, cache_bytes

PROBE = textwrap.dedent(
    """
    import resource, sys
    import numpy as np
    from sklearn.datasets import make_blobs
    from multimargin import KernelSVC

    X, y = make_blobs(4000, 20, centers=6, cluster_std=6.0, random_state=0)
    X = X.astype(np.float32)
    KernelSVC(gamma=0.01, n_threads=1).fit(X[:500], y[:500])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = KernelSVC(
        C=1.0, gamma=0.01, cache_size=float(sys.argv[1]), solver=sys.argv[2], max_iter=int(sys.argv[3]),
        n_threads=1, tol=0.05,
    )
    import warnings
    warnings.simplefilter("ignore")
    model.fit(X, y)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(after - before, model.trace_[-1].rows, model.trace_[-1].evictions)
    """
)


def peak_growth(cache_size, solver="auto", max_iter=-1):
    """(MB of new peak memory, kernel rows computed, rows evicted) of a fit in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(cache_size), solver, str(max_iter)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kilobytes, rows, evictions = map(int, done.stdout.split())
    return kilobytes / 1024, rows, evictions


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss has other units elsewhere")
@pytest.mark.parametrize("solver", ["auto", "dasmc"])
def test_peak_memory_stays_within_the_budget(solver):
    """All 4,000 rows would take 61 MB (float32); 20 MB of cache may add 20 MB and a little."""
    small, _, _ = peak_growth(1, solver)
    large, rows, evictions = peak_growth(20, solver)
    assert rows > 20 * 2**20 / (4 * 4000)  # the budget was really in the way
    assert evictions > 0
    assert large - small <= 20 + 5
    assert large <= 20 + 60


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cache_size", [0, 0.001, 0.005, 1000, "auto"])
def test_any_cache_gives_the_same_optimum(cache_size, method, digits):
    """No row at all, two or three rows, some, all: 100 rows of 400 bytes are 0.04 MB."""
    X, y = digits[0][:100], digits[1][:100]
    model = KernelSVC(C=2.0, gamma=0.02, solver=SOLVERS[method], cache_size=cache_size, tol=1e-3).fit(X, y)
    audit(model, kernel_matrix("rbf", X, gamma=0.02), y, 2.0, 1e-3)
    last = model.trace_[-1]
    if cache_size in (1000, "auto"):
        assert last.evictions == 0
        assert last.rows <= len(y)  # every row at most once
    elif cache_size == 0:
        assert last.hits == 0


@pytest.mark.slow
def test_a_larger_cache_computes_fewer_rows(digits):
    X, y = digits
    rows = [
        KernelSVC(gamma=0.02, solver="mcsvm", cache_size=size).fit(X, y).trace_[-1].rows
        for size in (0, 0.02, 100)
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
