"""The formulas of engines/cuda/kernels/machines.cuh, compiled for the host, against those of the problems."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from oracle import random_point

import multimargin
from multimargin.engines.cuda.device import _text
from multimargin.engines.cuda.state import MACHINES
from multimargin.problems import PROBLEMS
from multimargin.problems.base import DualRows

KERNELS = Path(multimargin.__file__).parent / "engines" / "cuda" / "kernels"
COMPILER = shutil.which("g++") or shutil.which("clang++")
SAMPLES = 6


@pytest.fixture(scope="module")
def formulas(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("no C++ compiler on PATH")
    library = tmp_path_factory.mktemp("formulas") / "formulas.so"
    source = Path(__file__).parent / "formulas.cpp"
    options = ["-O1", "-std=c++17", "-shared", "-fPIC", f"-I{KERNELS}"]
    subprocess.run([COMPILER, *options, str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library)).formulas


def of_sample(formulas, number, m, alpha, G, y, C, K, ridge):
    """What the device finds of one sample: measures, the change by the exact step, and what a scan sees."""
    measures, change, looked = np.zeros(6), np.zeros(len(alpha)), np.zeros(2)
    pointers = [ctypes.c_void_p(np.ascontiguousarray(x).ctypes.data) for x in (alpha, G)]
    numbers = [ctypes.c_double(x) for x in (C, K, ridge)]
    results = [ctypes.c_void_p(x.ctypes.data) for x in (measures, change, looked)]
    formulas(number, *pointers, m, len(alpha), int(y), *numbers, *results)
    return measures, change, looked


CASES = [
    (number, machine, m)
    for number, machine in enumerate(MACHINES)
    for m in ((2,) if machine == "c-svc" else (2, 3, 10, 40))
]


@pytest.mark.parametrize(("number", "machine", "m"), CASES)
def test_a_sample(formulas, number, machine, m):
    rng = np.random.default_rng(10 * number + m)
    problem = PROBLEMS[machine](m)
    for _ in range(30):
        y = rng.integers(0, m, SAMPLES).astype(np.int32)
        C = 10.0 ** rng.uniform(-1, 1, SAMPLES)
        alpha = random_point(machine, y, problem.columns, C, rng)
        alpha[rng.random(SAMPLES) < 0.3] = 0.0
        G = 2.0 * rng.normal(size=alpha.shape)
        if machine in ("lee-lin-wahba", "msvm2"):  # their gradients sum to zero
            G -= G.mean(axis=1, keepdims=True)
        ridge = problem.ridge(C)
        ridge = np.zeros(SAMPLES) if ridge is None else ridge
        psi, gain = problem.measure(DualRows(alpha.copy(), G.copy(), y, C))
        S = problem.scores(G, alpha, y, C)
        loss, K = problem.loss(S, y, C), rng.uniform(0.5, 2.0, SAMPLES)
        best = problem.project(alpha - G / K[:, None], y, C)
        linear = (alpha * problem.target(y)).sum(axis=1)
        expected = np.stack(
            [psi, gain, loss, (alpha * S).sum(axis=1), linear, (alpha**2).sum(axis=1)], axis=1
        )
        for i in range(SAMPLES):
            sample = alpha[i], G[i], y[i], C[i], K[i], ridge[i]
            measures, change, looked = of_sample(formulas, number, m, *sample)
            np.testing.assert_allclose(measures, expected[i], rtol=1e-9, atol=1e-10)
            if machine != "c-svc":  # whose samples move in pairs
                np.testing.assert_allclose(alpha[i] + change, best[i], atol=1e-11)
                assert looked[0] == pytest.approx(psi[i], abs=1e-12)
                step = change @ G[i] + 0.5 * K[i] * change @ change
                assert -1e-12 <= looked[1] <= -step + 1e-9  # one move gains no more than the exact step


@pytest.mark.parametrize("source", ["descent.cu", "balanced.cu", "state.cu", "values.cu", "samples.cu"])
def test_sources_are_whole(source):
    """A kernel's text has its headers in it, each once: CuPy's cache knows a kernel by its text alone."""
    text = _text(source, set())
    assert '#include "' not in text
    for header in KERNELS.glob("*.cuh"):
        assert text.count(header.read_text().splitlines()[0]) <= 1
