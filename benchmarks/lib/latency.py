"""Milliseconds that a fitted model takes to label one row, with scikit-learn's validation of the row."""

from __future__ import annotations

import warnings
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from multimargin import KernelSVC, LinearSVC

from .report import Report

KERNEL_BAR, LINEAR_BAR = 1.0, 0.2  # milliseconds
SUPPORT, WIDTH = 3_000, 300  # of the kernel machine
FEATURES, CLASSES, STORED = 2**18, 20, 100  # of the linear machine; non-zeros of a row


def one_row_ms(model: Any, row: Any, repeats: int = 200) -> float:
    """The median time of ``predict`` for one row, in milliseconds."""
    model.predict(row)
    times = np.empty(repeats)
    for k in range(repeats):
        start = perf_counter()
        model.predict(row)
        times[k] = perf_counter() - start
    return 1e3 * float(np.median(times))


def kernel_model(support: int = SUPPORT, width: int = WIDTH) -> tuple[KernelSVC, np.ndarray]:
    """A model whose rows are all support vectors, since their labels are random; and a row."""
    random = np.random.default_rng(0)
    X = random.normal(size=(support, width))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelSVC(C=0.1, tol=0.1).fit(X, random.integers(10, size=support))
    return model, X[:1]


def linear_model(features: int = FEATURES, m: int = CLASSES) -> tuple[LinearSVC, sp.csr_array]:
    """A model of hashed text, trained by one pass over a few rows; and a row."""
    random = np.random.default_rng(0)
    rows = 10 * m
    columns = np.sort(random.choice(features, size=(rows, STORED)), axis=1)
    starts = np.arange(0, rows * STORED + 1, STORED)
    X = sp.csr_array((random.random(rows * STORED), columns.ravel(), starts), shape=(rows, features))
    X.sum_duplicates()
    return LinearSVC().partial_fit(X, np.arange(rows) % m, classes=range(m)), X[:1]


def check_latency(report: Report) -> None:
    """Claim both bars."""
    kernel, row = kernel_model()
    spent = one_row_ms(kernel, row)
    text = f"KernelSVC labels one row with {len(kernel.support_):,} support vectors of {WIDTH} features"
    report.claim(f"{text} in {KERNEL_BAR} ms", spent <= KERNEL_BAR, f"{spent:.3f} ms")
    report.keep("latency", {"model": "KernelSVC", "ms": spent})
    linear, sparse_row = linear_model()
    spent = one_row_ms(linear, sparse_row)
    text = f"LinearSVC labels one sparse row of {FEATURES:,} features, {CLASSES} classes"
    report.claim(f"{text} in {LINEAR_BAR} ms", spent <= LINEAR_BAR, f"{spent:.3f} ms")
    report.keep("latency", {"model": "LinearSVC", "ms": spent})
