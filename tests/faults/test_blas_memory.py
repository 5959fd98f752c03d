"""OpenBLAS asks for memory without an end if it gets none: a fit must raise MemoryError before."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import resource
from pathlib import Path

import numpy as np

from multimargin import KernelSVC

rng = np.random.default_rng(0)
X, y = rng.normal(size=(5000, 200)).astype(np.float32), np.arange(5000) % 3
model = KernelSVC(n_threads=1).fit(X[:300], y[:300])
scores = model.decision_function(X)
pixels = (X > 0).astype(np.uint8)
KernelSVC(n_threads=2).fit(pixels[:300], y[:300]).decision_function(pixels)  # a second thread, without BLAS
model.set_params(n_threads=2)
held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
limits = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (held + (24 << 20), limits[1]))
try:
    for _ in range(1000):  # until two products meet
        model.decision_function(X)
except MemoryError:
    print("refused")
resource.setrlimit(resource.RLIMIT_AS, limits)
np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-6)
print("done")
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
@pytest.mark.skipif(os.cpu_count() == 1, reason="products do not meet on a single core")
def test_products_at_the_same_time_without_memory():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["refused", "done"], done.stdout + done.stderr
