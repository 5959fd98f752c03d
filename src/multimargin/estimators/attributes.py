"""From coefficients to the attributes of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..engines import Scorer
from ..engines.base import Task
from ..kernels import Kernel, Linear
from ..solution import Status
from ..system.arithmetic import as_float64
from ..system.typing import Data, FloatArray, IntArray, LabelArray


@dataclass(frozen=True)
class ModelMaker:
    """Makes the attributes of a model; used at the end of a fit, and on the way by callbacks."""

    task: Task
    labels: np.ndarray
    kept: IntArray  # row numbers of the samples of the task
    factors: FloatArray  # of C, one per class
    bias: str  # "none", "regularized" or "free"

    def __call__(self, ids: IntArray, coef: FloatArray, bias: FloatArray) -> dict[str, Any]:
        kernel, rows = self.task.kernel, self.kept[ids]
        support = kernel.support(self.task.X, rows if kernel.pairwise else ids)
        return {
            "classes_": self.labels,
            "class_weight_": self.factors,
            "support_": rows,
            "dual_coef_": coef,
            "intercept_": intercept(bias),
            "bias_": self.bias,
            "_class_bias": bias,
            "_kernel": kernel,
            "_support": support,
            "_scorer": Scorer(kernel, support, coef),
        }


def intercept(bias: FloatArray) -> FloatArray:
    """Return what is added to the scores that a user sees: of two classes, the second minus the first."""
    return bias[1:] - bias[:1] if len(bias) == 2 else bias


class SupportAttributes:
    """The attributes of scikit-learn's ``SVC`` that follow from others, computed when they are asked for."""

    support_: IntArray
    dual_coef_: FloatArray
    intercept_: FloatArray
    classes_: np.ndarray
    n_features_in_: int
    status_: Status
    _kernel: Kernel
    _support: Any
    _kept: IntArray  # numbers of the training rows of positive weight, ascending
    _labels: LabelArray  # of those rows
    _rows_fitted: int

    @property
    def support_vectors_(self) -> Data:
        """The support vectors, in the order of ``support_``; sparse if X was. Empty for kernel values."""
        check_is_fitted(self)
        if self._kernel.pairwise:
            return np.empty((0, 0))
        rows: Data = self._support
        return rows.astype(np.float64) if rows.dtype.kind in "biu" else rows  # integers would overflow

    @property
    def n_support_(self) -> np.ndarray:
        """Number of support vectors of each class."""
        check_is_fitted(self)
        labels = self._labels[np.searchsorted(self._kept, self.support_)]
        return np.bincount(labels, minlength=len(self.classes_)).astype(np.int32)

    @property
    def shape_fit_(self) -> tuple[int, int]:
        """Shape of the training data."""
        check_is_fitted(self)
        return self._rows_fitted, self.n_features_in_

    @property
    def fit_status_(self) -> int:
        """0 if the fit converged, 1 if not."""
        check_is_fitted(self)
        return 0 if self.status_.converged else 1

    @property
    def coef_(self) -> FloatArray:
        """Weights of a linear machine: ``X @ coef_.T + intercept_`` are the scores."""
        check_is_fitted(self)
        if not isinstance(self._kernel, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        weights = np.asarray(as_float64(self._support).T @ self.dual_coef_).T
        coef: FloatArray = weights[1:] - weights[:1] if len(weights) == 2 else weights
        coef.flags.writeable = False  # a change would be lost: it is computed anew every time
        return coef
