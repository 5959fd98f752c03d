"""What a trained machine is to other programs: a kernel, support vectors, coefficients and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import Kernel
from ..system.typing import FloatArray, LabelArray


@dataclass(frozen=True)
class TrainedMachine:
    """Scores are Σ_i K(x, support_i) coef_i + intercept.

    There is one column of coefficients per class. For two classes there is one in all, positive for the
    second.
    """

    kernel: Kernel
    support: Any  # the support vectors; column numbers if X has kernel values; None if ``coef`` has weights
    coef: FloatArray  # (n_SV, outputs)
    intercept: FloatArray  # (outputs,)
    classes: np.ndarray
    features: int
    owners: LabelArray | None = None  # the class of each support vector, 0..m-1, if it is known
    temperature: float | None = None  # of probabilities, if there are any
    single: bool = False  # whether X is of type float32
