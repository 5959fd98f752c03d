"""Memory of a linear fit: the dual is sparse, and the weights are all that grows with the classes."""

import subprocess
import sys
import textwrap

import pytest

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
