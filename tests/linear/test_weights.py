"""Shapes of the linear machine's weights."""

import math

import numpy as np
import pytest
from linear_cases import random_task

from multimargin import _core
from multimargin.linear.descent import TrainingSet
from multimargin.linear.weights import WeightLayout


def test_padded_shape():
    for m, width in ((2, 8), (8, 8), (9, 16), (5000, 5000), (5001, 5008)):
        assert WeightLayout(3, m).shape == (3, width)
    assert TrainingSet(np.zeros((1, 3)), np.zeros(1), np.ones(1), 2, 0.5).layout().shape == (4, 8)


def test_blocks_of_classes():
    assert WeightLayout(3, 105, 2).shape == (2 * 3, 56)
    assert WeightLayout(3, 20, 2).shape == (2 * 3, 16)
    assert WeightLayout(3, 40, 4).shape == (3 * 3, 16)  # four blocks of 16 would be one too many
    assert WeightLayout(3, 5, 8).shape == (3, 8)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [0, 1, 3, 5000, 70_001])
def test_squared_norm(rows, dtype, threads):
    weights = np.full((rows, 8), 0.5, dtype=dtype)
    assert math.isclose(_core.squared_norm(weights, threads), 2.0 * rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_new_weights_are_zeros_on_a_cache_line(dtype):
    layout = random_task(constant=1.0).layout()
    weights = layout.zeros(dtype)
    assert weights.shape == layout.shape and weights.dtype == dtype
    assert weights.flags.c_contiguous and weights.flags.writeable and not weights.any()
    assert weights.ctypes.data % 64 == 0
