"""Kernels of engines/cuda/kernels that run on the host, where every thread of the device is a fiber."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from oracle import kernel_matrix

from multimargin.engines.cuda.device import _text

COMPILER = shutil.which("g++") or shutil.which("clang++")
BLOCKS, THREADS, EACH = 2, 32, 8
C_NAMES = {"float32": "float", "float64": "double", "uint16": "unsigned short"}
TOL, MARGIN = 1e-3, {"float32": 4e-7, "float64": 1e-15}


def compiled(folder, real, value):
    """The descent of c-svc as a function of the host."""
    text = _text("balanced.cu", set())
    shared = "extern __shared__ __align__(16) char raw[];"
    spin = "while (*(volatile unsigned*)arrived < target) {"
    assert shared in text
    assert spin in text
    kernel = folder / "kernel.cu"
    kernel.write_text(text.replace(shared, "char* raw = shared_memory();").replace(spin, spin + " pause();"))
    macros = {"REAL": C_NAMES[real], "VALUE": C_NAMES[value], "KERNEL": f'"{kernel}"'}
    macros |= {"BLOCKS": BLOCKS, "THREADS": THREADS, "EACH": EACH}
    library = folder / "balanced.so"
    options = ["-O2", "-std=c++17", "-shared", "-fPIC", *(f"-D{key}={text}" for key, text in macros.items())]
    source = Path(__file__).parent / "balanced.cpp"
    subprocess.run([COMPILER, *options, "-Wno-unknown-pragmas", str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library)).balanced


@pytest.fixture(scope="module", params=[("float32", "uint16"), ("float64", "float64")])
def descent(request, tmp_path_factory):
    if COMPILER is None:
        pytest.skip("no C++ compiler on PATH")
    real, value = request.param
    function = compiled(tmp_path_factory.mktemp("balanced"), real, value)

    def run(K, y, C, most=400, idle=0):
        """alpha, G, iterations and the violation that the kernel tells; ``idle`` iterations came before."""
        q = len(y)
        wide = -(-q // 16) * 16
        stored = np.zeros((q, wide), dtype=value)
        stored[:, :q] = np.rint(K * 65535) if value == "uint16" else K
        alpha, G = np.zeros(wide, dtype=real), np.zeros(wide, dtype=real)
        G[:q] = -(2.0 * y - 1)
        costs, diagonal, found = C.astype(real), np.diag(K).astype(real), np.zeros(4)
        found[2:] = 1e-20 if idle else 1e30, idle
        labels = y.astype(np.int32)
        pointers = [
            ctypes.c_void_p(a.ctypes.data) for a in (stored, diagonal, labels, costs, alpha, G, found)
        ]
        K_, d_, y_, C_, a_, G_, f_ = pointers
        numbers = ctypes.c_double(MARGIN[real]), ctypes.c_double(TOL), most
        function(K_, ctypes.c_longlong(wide), d_, y_, C_, q, a_, G_, *numbers, f_)
        return alpha[:q].astype(float), G[:q].astype(float), int(found[0]), found[1]

    return run


def problem(kind, n):
    """Labels, and samples that make the kernel ``kind``."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 4)) + 1.2 * (2 * y[:, None] - 1) * np.array([1.0, 0.5, 0, 0])
    gamma = {"usual": 0.3, "nearly flat": 0.003, "steep": 5.0}[kind]
    return kernel_matrix("rbf", X, gamma=gamma), y


@pytest.mark.parametrize("kind", ["usual", "nearly flat", "steep"])
@pytest.mark.parametrize("C", [1.0, 30.0])
def test_descent_of_c_svc(descent, kind, C):
    K, y = problem(kind, 40)
    sign, costs = 2.0 * y - 1, np.full(40, C) * np.where(y == 1, 1.0, 0.75)
    alpha, G, iterations, worst = descent(K, y, costs)
    assert iterations < 400
    assert worst <= TOL
    assert (alpha * sign >= 0).all()
    assert (alpha * sign <= costs * (1 + 1e-6)).all()
    assert abs(alpha.sum()) <= 1e-5 * np.abs(alpha).sum()
    exact = K @ alpha - sign
    np.testing.assert_allclose(G, exact, atol=2e-4 * max(1.0, np.abs(alpha).sum() / 10))
    grows, shrinks = np.where(y == 1, alpha < costs, alpha < 0), np.where(y == 1, alpha > 0, alpha > -costs)
    assert 0.5 * ((-G)[grows].max() + G[shrinks].max()) == pytest.approx(worst, abs=1e-6)


def test_samples_that_are_equal_and_one_that_is_alone(descent):
    X = np.zeros((20, 2))
    X[19] = 3.0
    y = np.arange(20) % 2
    alpha, _, _, worst = descent(kernel_matrix("rbf", X, gamma=1.0), y, np.ones(20))
    assert worst <= TOL
    assert abs(alpha.sum()) <= 1e-5 * max(1.0, np.abs(alpha).sum())


def test_a_descent_that_does_not_get_on_ends(descent):
    K, y = problem("usual", 100)
    _, _, iterations, worst = descent(K, y, np.full(100, 30.0), idle=199)
    assert iterations == 1
    assert worst > TOL
