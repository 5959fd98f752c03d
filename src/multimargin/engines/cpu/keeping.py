"""Whether kernel rows are kept or computed anew: what costs less."""

from __future__ import annotations

from ...inner import work
from ...problems import Problem
from ...system.memory import WHOLE_SAMPLES
from ...system.shard import Shard
from ..base import EngineOptions
from .kernel_values import KernelValues, NativeValues


def keeping_pays(values: KernelValues, problem: Problem, options: EngineOptions, shard: Shard) -> bool:
    """Whether to keep kernel rows.

    Rows are computed anew only if

    - a growing set is solved by coordinate descent over listed pairs, which needs K between its samples only;
    - no bias is found from the scores of all samples in every round;
    - one process has all samples, and more than fit a small kernel matrix, which is kept as a whole;
    - native code computes values, and a value that is computed as often as rounds need it costs less than
      one that is kept: computed once, written to fresh memory and read again.
    """
    inner = options.inner
    listed = inner is not None and (problem.name in inner.together or not problem.coupled)
    able = listed and options.lazy_blocks
    if not able or options.free_bias or not shard.alone or shard.n <= WHOLE_SAMPLES:
        return True
    if not isinstance(values, NativeValues):
        return True
    kept = values.work + work.FIRST_TOUCH + work.USES * work.READ
    return work.USES * values.work > kept
