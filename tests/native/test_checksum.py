"""The checksum that tells whether two processes have the same data."""

import numpy as np
import pytest

from multimargin import _core


@pytest.mark.parametrize("size", [1, 7, 8, 63, 64, 65, 200])
def test_every_changed_bit_shows(size):
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    found = {_core.checksum(data)}
    for bit in range(8 * size):
        changed = data.copy()
        changed[bit // 8] ^= 1 << bit % 8
        found.add(_core.checksum(changed))
    assert len(found) == 8 * size + 1


def test_lengths_orders_and_places_differ():
    words = np.arange(1, 33, dtype=np.uint64)
    others = [words[::-1], np.roll(words, 1), np.roll(words, 8), words[:-1], np.append(words, 0)]
    others += [np.zeros(size, dtype=np.uint64) for size in range(20)]
    found = {_core.checksum(np.ascontiguousarray(part).view(np.uint8)) for part in [words, *others]}
    assert len(found) == 1 + len(others)


def test_random_data_do_not_collide():
    rng = np.random.default_rng(0)
    found = {_core.checksum(rng.integers(0, 2, 128, dtype=np.uint8)) for _ in range(20_000)}
    assert len(found) == 20_000
