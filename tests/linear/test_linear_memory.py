"""Memory of a linear fit: the dual is sparse, and the weights are all that grows with the classes."""

import subprocess
import sys
import textwrap
import tracemalloc

import numpy as np
import pytest
from helpers import audit_linear, unfinished
from linear_cases import ANY_SIZE_IN_PARALLEL
from scipy import sparse

from multimargin import LinearSVC

MEMORY = textwrap.dedent(
    """
    import resource, warnings
    import numpy as np
    from scipy import sparse
    from multimargin import LinearSVC

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    n, m, d = 20_000, 1_000, 2_000
    y = rng.integers(m, size=n)
    y[:m] = np.arange(m)
    columns = np.column_stack([2 * y, 2 * y + 1, rng.integers(d, size=n), rng.integers(d, size=n)]) % d
    X = sparse.csr_array((np.ones(4 * n), columns.ravel(), 4 * np.arange(n + 1)), shape=(n, d))
    X.sum_duplicates()
    LinearSVC(max_iter=1).fit(X[:100], y[:100])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = LinearSVC(max_iter=2, n_threads=1).fit(X, y)
    model.partial_fit(X, y, classes=np.arange(m))
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, model.score(X[:200], y[:200]))
    """
)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss has other units elsewhere")
def test_the_dual_stays_sparse():
    """n m values would be 160 MB; the weights are 8 in float32, 16 in float64 and 16 in the stream."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    megabytes, score = map(float, done.stdout.split())
    assert megabytes < 90
    assert score > 0.9


@pytest.mark.parametrize(
    "settings",
    [{}, {"max_iter": 3}, {"tol": 1e-7, "max_iter": 20}, {"dtype": "float64"}, {"n_threads": 2, "C": 0.1}],
    ids=["defaults", "few passes", "promoted", "float64", "threads"],
)
def test_a_fit_holds_the_weights_once_in_float64(settings, monkeypatch):
    """8 bytes per padded weight are what coef_ itself takes; float32 copies and proofs take no more."""
    monkeypatch.setattr(LinearSVC, "_tuning", ANY_SIZE_IN_PARALLEL)
    rng = np.random.default_rng(0)
    n, d, classes = 500, 4_000, 203
    y = np.arange(n) % classes
    columns = np.column_stack([20 * y[:, None] + np.arange(10), rng.integers(d, size=(n, 10))]) % d
    X = sparse.csr_array((rng.random(20 * n), columns.ravel(), 20 * np.arange(n + 1)), shape=(n, d))
    X.sum_duplicates()
    weights = 8 * (d + 1) * (-(-classes // 8) * 8)
    tracemalloc.start()
    try:
        with unfinished():
            model = LinearSVC(**({"n_threads": 1} | settings)).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.trace_.info["dtype"] == ("float64" if {"tol", "dtype"} & set(settings) else "float32")
    assert peak < 1.1 * weights + 5e5
    audit_linear(model, X, y, settings.get("C", 1.0))
