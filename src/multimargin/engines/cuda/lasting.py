"""The CUDA engine for many fits to the same samples with the same kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...run.profile import Profile
from ...system.typing import FloatArray, IntArray
from ..base import Task
from ..lasting import Lasting
from .blocks import Blocks, largest_whole
from .device import cupy, memory_errors
from .engine import MOST_SHARE, CudaEngine


@dataclass(frozen=True)
class DeviceReached:
    """A point, and its scores on the device."""

    alpha: FloatArray  # (n, m)
    scores: Any  # (m, n), K alpha
    additions: int  # since they were summed anew

    def scaled(self, factor: float) -> DeviceReached:
        """The point ``factor`` alpha."""
        return DeviceReached(factor * self.alpha, factor * self.scores, self.additions)

    def at(self, alpha: FloatArray) -> DeviceReached:
        """The same with ``alpha``, which differs by rounding alone."""
        return replace(self, alpha=alpha)


class LastingCudaEngine(CudaEngine, Lasting):
    """Keeps the kernel block of all samples, if it fits beside one of a working set."""

    def _make_blocks(self) -> Blocks:
        share = 1.0 - MOST_SHARE
        most = largest_whole(share, self.options.cache_bytes, self._value_dtype().itemsize)
        return Blocks(self.values, np.arange(self.n) if self.n <= most else None)

    @memory_errors()
    def another(self, task: Task, near: DeviceReached | None = None) -> None:
        self.check_serves(task)
        self.profile = Profile()
        scores, additions = (None, 0) if near is None else self._moved(near, task.alpha())
        self._begin(task, scores)
        self._since_sum = additions

    def _moved(self, near: DeviceReached, alpha: FloatArray) -> tuple[Any, int]:
        """The scores of ``alpha`` from those of ``near``, unless it takes fewer kernel values to sum anew."""
        delta = alpha - near.alpha
        moved, support = np.flatnonzero(delta.any(axis=1)), int(np.count_nonzero(alpha.any(axis=1)))
        if not self.may_add(len(moved), support, near.additions):
            return None, 0
        with self.profile.phase("gradient"):
            change = self.values.scores(moved, cupy().asarray(np.ascontiguousarray(delta[moved])))
            self._values_computed += self.n * len(moved)
            return near.scores + change, near.additions + 1

    def reached(self) -> DeviceReached:
        alpha = np.ascontiguousarray(self.state.alpha.T.get())
        return DeviceReached(alpha, self.state.kernel_scores(), self._since_sum)

    def scores(self, ids: IntArray) -> FloatArray:
        return self.state.scores(ids) + self.bias
