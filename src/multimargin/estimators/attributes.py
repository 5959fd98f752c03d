"""From coefficients to the attributes of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..engines import Scorer
from ..engines.base import Engine, Found, Task
from ..kernels import Kernel, Linear
from ..solution import Solution, Status
from ..system.arithmetic import as_float64
from ..system.device_data import on_host
from ..system.shard import Shard
from ..system.typing import Data, FloatArray, IntArray, LabelArray


@dataclass
class ModelMaker:
    """Makes the attributes of a model; used at the end of a fit, and on the way by callbacks."""

    task: Task
    labels: np.ndarray
    rows: int  # that were given, to all processes together
    kept: IntArray  # among them, those of the task that are held here
    factors: FloatArray  # of C, one per class
    bias: str  # "none", "regularized" or "free"
    place: str = "cpu"  # where the model scores new samples

    def __post_init__(self) -> None:
        self.shard = Shard(len(self.task.y), self.task.team)  # who holds which samples of the task

    def __call__(self, found: Found, engine: Engine | None = None) -> dict[str, Any]:
        """The attributes; if several processes hold the samples, ``engine`` has those of the others.

        One process knows the labels and costs of all its samples. A model that several have trained knows
        only those of its support vectors, so that it does not grow with the data.
        """
        ids, coef, loss, bias = found
        task, kernel, shard = self.task, self.task.kernel, self.shard
        mine = shard.mine(ids)[1]
        rows = shard.take(ids, self.kept[mine])
        if kernel.pairwise or engine is None:
            support = on_host(kernel.support(task.X, rows if kernel.pairwise else ids))
        else:
            support = engine.samples(ids)
        known = (self.kept, task.y, task.C)
        if not shard.alone:
            known = (rows, shard.take(ids, task.y[mine]), shard.take(ids, task.C[mine]))
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
            "_scorer": Scorer(kernel, support, coef, self.place),
            "_problem": task.problem,
            "_support_loss": loss,
            "_kept": known[0],
            "_labels": known[1],
            "_costs": known[2],
            "_rows_fitted": self.rows,
            "_processes": task.team.size,
        }

    def of(self, solution: Solution, engine: Engine | None = None) -> dict[str, Any]:
        """The attributes of a model with this solution."""
        return self(Found(solution.support, solution.coef, solution.loss, solution.bias), engine)


# What a process has too if only the first one gets the model.
EVERYWHERE = frozenset({"classes_", "class_weight_", "bias_", "_problem", "_rows_fitted", "_processes"})


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
    _kept: IntArray  # numbers of the training rows whose labels are known, ascending
    _labels: LabelArray  # of those rows
    _rows_fitted: int
    _processes: int = 1  # that have trained it together

    def _check_has_model(self) -> None:
        """Raise if there is no model in this process."""
        check_is_fitted(self)
        if not hasattr(self, "dual_coef_"):
            raise NotFittedError(
                f"This rank has no model: {type(self).__name__} was fitted with Mpi(model='root'), so only "
                "rank 0 has one. Predict there, or fit with Mpi(model='all')."
            )

    @property
    def support_vectors_(self) -> Data:
        """The support vectors, in the order of ``support_``; sparse if X was. Empty for kernel values."""
        self._check_has_model()
        if self._kernel.pairwise:
            return np.empty((0, 0))
        rows: Data = self._support
        return rows.astype(np.float64) if rows.dtype.kind in "biu" else rows  # integers would overflow

    @property
    def n_support_(self) -> np.ndarray:
        """Number of support vectors of each class."""
        self._check_has_model()
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
        self._check_has_model()
        if not isinstance(self._kernel, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        weights = np.asarray(as_float64(self._support).T @ self.dual_coef_).T
        coef: FloatArray = weights[1:] - weights[:1] if len(weights) == 2 else weights
        coef.flags.writeable = False  # a change would be lost: it is computed anew every time
        return coef
