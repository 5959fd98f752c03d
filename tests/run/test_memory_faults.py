"""A fit with too little memory: MemoryError, or the model that it would have with enough.

On one thread: libgomp ends the process if there is no memory for the stack of a thread that it starts.
"""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits of memory need Linux"),
]

# Prints how many bytes of addresses the fit took, or what became of it; {limit} is beyond those before it.
PROGRAM = """
import hashlib, resource
import numpy as np
from multimargin import KernelSVC

def addresses(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(name + ":"))

rng = np.random.default_rng(0)
y = rng.integers(0, 6, 1500)
X = rng.normal(size=(1500, 40)) + rng.normal(size=(6, 40))[y]
models = {{
    "rbf": KernelSVC(C=10, gamma=0.05, cache_size=20, n_threads=1),
}}
model = models["{name}"]
few = np.concatenate([np.flatnonzero(y == k)[:20] for k in range(6)])
model.fit(X[few], y[few])  # threads, BLAS and modules are there now
before = addresses("VmSize")
if {limit}:
    resource.setrlimit(resource.RLIMIT_AS, (before + {limit},) * 2)
try:
    model.fit(X, y)
except MemoryError:
    print("MemoryError")
else:
    digest = hashlib.sha256(model.dual_coef_.tobytes()).hexdigest()
    print(model.status_.name, digest, addresses("VmPeak") - before)
"""


def run(name, limit):
    command = [sys.executable, "-c", PROGRAM.format(name=name, limit=limit)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize("name", ["rbf"])
def test_every_tenth_of_the_memory(name):
    free = run(name, 0)
    assert free.returncode == 0, free.stderr
    status, digest, need = free.stdout.split()
    assert status == "CONVERGED"
    outcomes = []
    for tenth in range(1, 10):
        done = run(name, int(need) * tenth // 10)
        assert done.returncode == 0, (tenth, done.returncode, done.stdout, done.stderr[-1000:])
        said = done.stdout.splitlines()[-1].split()  # SciPy prints a line of its own if it has too little
        assert said == ["MemoryError"] or said[:2] == [status, digest], (tenth, done.stdout)
        outcomes.append(said[0])
    assert "MemoryError" in outcomes  # some of the limits were too low
