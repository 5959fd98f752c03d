"""What the tests of the benchmarks share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.workers.storage import Split


@pytest.fixture(scope="module")
def split(iris):
    X, y = iris
    return Split(X, y, X[:10], y[:10])
