"""Shrinking: samples that are not worth a look for a while."""

from __future__ import annotations

import numpy as np

from ...system.shard import Shard
from ...system.typing import IntArray

_FULL_CHECK_EVERY = 20  # checks between two that look at all samples
_CALM_CHECKS = 3  # full checks that a sample must pass to be left out
_WORTH_WHILE = 0.9  # of all samples: more, and leaving the others out saves nothing


class Shrinking:
    """Which samples to look at.

    A sample that was zero and met its condition in the last few full checks waits for the next full check.
    """

    def __init__(self, shard: Shard, enabled: bool) -> None:
        self._shard, self._enabled, self._checks = shard, enabled, 0
        self._calm = np.zeros(shard.count, dtype=np.int64)  # full checks passed in a row
        self._near, self._pays = np.arange(shard.count), False

    def near(self) -> IntArray | None:
        """The samples held here that are worth a look, or None if all are due."""
        self._checks += 1
        if not self._enabled or self._checks % _FULL_CHECK_EVERY == 0:
            return None
        return self._near if self._pays else None

    def saw_all(self, calm: np.ndarray) -> None:
        """A full check found the samples of this mask zero and without violation."""
        if self._enabled:
            self._calm = np.where(calm, self._calm + 1, 0)
            self._near, self._checks = np.flatnonzero(self._calm < _CALM_CHECKS), 0
            self._pays = bool(self._shard.team.sum(len(self._near)) < _WORTH_WHILE * self._shard.n)
