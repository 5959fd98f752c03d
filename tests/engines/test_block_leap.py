"""The leap within a block: it solves the block, and is taken only if descent has paid for it."""

import numpy as np
import pytest
from leap_problems import wide
from oracle import assert_feasible, kernel_matrix
from test_leap import AGES, engine_of

from multimargin.engines.cpu.block_leap import BlockLeap

MEMORY, GAMMA, EPS = 10**9, 0.05, 1e-5


def never():
    return False


@pytest.fixture
def engine():
    return engine_of(*wide(2000), gamma=GAMMA)


def test_leap_in_a_block_solves_it(engine):
    X, y = wide(2000)
    block = engine.blocks.growing(np.arange(100))
    assert BlockLeap(engine.state, MEMORY).take(block, EPS, AGES, never)
    W = block.W
    target = np.eye(6)[y[W]]
    G = kernel_matrix("rbf", X[W], gamma=GAMMA) @ block.alpha - target
    np.testing.assert_allclose(block.G, G, atol=1e-4)  # kernel rows may be float32
    assert_feasible(block.alpha, y[W], engine.task.C[W])
    free = block.alpha < engine.task.C[W, None] * target
    assert (G.max(axis=1) - np.where(free, G, np.inf).min(axis=1)).max() <= EPS + 2e-4
    assert np.vdot(G - target, block.alpha) < 0  # twice the dual


def test_no_leap_in_a_block_that_is_not_paid_for(engine):
    block, leap = engine.blocks.growing(np.arange(100)), BlockLeap(engine.state, MEMORY)
    assert not leap.take(block, EPS, 1000, never)
    assert not leap.may_pay(block, 1001)
    assert leap.may_pay(block, AGES)
    assert not block.alpha.any()


def test_large_blocks_wait_for_a_leap_over_all_samples(engine):
    block = engine.blocks.growing(np.arange(300))
    assert not BlockLeap(engine.state, MEMORY).may_pay(block, AGES)
