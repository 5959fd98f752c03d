"""From coefficients to the attributes of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engines import Scorer
from ..engines.base import Task
from ..system.typing import FloatArray, IntArray


@dataclass(frozen=True)
class ModelMaker:
    """Makes the attributes of a model; used at the end of a fit, and on the way by callbacks."""

    task: Task
    labels: np.ndarray
    kept: IntArray  # row numbers of the samples of the task
    bias: str  # "none", "regularized" or "free"

    def __call__(self, ids: IntArray, coef: FloatArray, bias: FloatArray) -> dict[str, Any]:
        kernel, rows = self.task.kernel, self.kept[ids]
        support = kernel.support(self.task.X, rows if kernel.pairwise else ids)
        return {
            "classes_": self.labels,
            "support_": rows,
            "dual_coef_": coef,
            "intercept_": bias,
            "bias_": self.bias,
            "_kernel": kernel,
            "_support": support,
            "_scorer": Scorer(kernel, support, coef),
        }
