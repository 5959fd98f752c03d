"""What the estimators share: checking labels and weights, limits, observers, certificates."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from inspect import signature
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from ..run.monitor import Monitor, Observer
from ..run.progress import Progress
from ..solution import Certified
from ..system.team import SOLO, Team
from ..system.typing import FloatArray, IntArray, LabelArray
from ..system.warn import warn_user
from .callbacks import CallbackSupportMixin, SklearnCallbacks, callback_context
from .costs import check_weights
from .exporting import ExportedModel
from .keywords import ForeignKeywords
from .notebook import NotebookMixin
from .reporting import ReportMixin
from .states import from_plain, to_plain
from .storing import StoredModel
from .validation import check_bool, check_choice, check_integer, check_number

# Parameters that may differ between the processes of a team, and types of the others that are compared.
_OWN = frozenset({"engine", "n_threads", "cache_size", "random_state", "verbose", "callback", "checkpoint"})
_COMPARED = (str, bool, int, float, dict, type(None))

AnySolution = TypeVar("AnySolution", bound=Certified)


class Rows(NamedTuple):
    """The training rows of positive weight."""

    kept: IntArray  # their numbers
    labels: np.ndarray  # the classes, those of other rows included
    y: LabelArray  # 0..m-1
    weight: FloatArray
    weighted: bool = False  # whether weights were given


class MachineClassifier(
    StoredModel,
    ExportedModel,
    ReportMixin,
    NotebookMixin,
    ForeignKeywords,
    CallbackSupportMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Base of the estimators of this package."""

    tol: float
    max_iter: int
    time_limit: float | None
    n_threads: int | None
    shrinking: bool
    warm_start: bool
    random_state: Any
    verbose: int
    callback: Callable[..., object] | None
    on_interrupt: str
    classes_: np.ndarray
    _not_stored: ClassVar[frozenset[str]] = frozenset()  # attributes that are not stored

    def _rows(self, y: np.ndarray, sample_weight: Any, team: Team = SOLO) -> Rows:
        weighted = all_or_none("sample_weight", sample_weight is not None, len(y), team)
        weight = team.attempt(lambda: _weights_of_classes(y, sample_weight))
        kept = np.flatnonzero(weight)
        total, n = (int(count) for count in team.sum([len(kept), len(y)]))
        if not total:
            raise ValueError("All sample weights are zero; some samples need a positive weight.")
        labels = team.union(y)
        present = labels if total == n else team.union(y[kept])
        if 2 * len(present) >= total and team.rank == 0 and len(y):
            check_classification_targets(y)  # perhaps no classes after all: scikit-learn's warning
        if len(present) < 2:
            raise ValueError(
                f"At least 2 classes are needed, but rows of positive weight have {len(present)} class: "
                f"{present.tolist()}."
            )
        numbers = np.searchsorted(labels, y[kept]).astype(np.int32)
        return Rows(kept, labels, numbers, weight[kept], weighted)

    def _check_same_parameters(self, team: Team) -> None:
        """Raise unless all processes have the same parameters, of those that can be compared."""
        if team.size == 1:
            return
        mine = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in _OWN and isinstance(value, _COMPARED)
        }
        told = team.collect(mine)
        for rank, other in enumerate(told):
            odd = [name for name in told[0] if other.get(name) != told[0][name]]
            if odd:
                values = told[0][odd[0]], other.get(odd[0])
                raise ValueError(
                    f"All ranks need the same parameters, but {odd[0]} is {values[0]!r} on rank 0 and "
                    f"{values[1]!r} on rank {rank}."
                )

    def _seed(self) -> int:
        """The seed of a fit; a fixed one without ``random_state``."""
        return 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31))

    def _train(
        self,
        run: Callable[[Monitor], AnySolution],
        X: Any,
        y: Any,
        *,
        now: Callable[[], dict[str, Any]],
        final: Callable[[AnySolution], dict[str, Any]],
        max_iter: int = -1,
        team: Team = SOLO,
    ) -> AnySolution:
        """Run a solver under a monitor, with progress display and scikit-learn's callbacks.

        ``now`` makes the attributes of a model from the solver's current point, ``final`` from its solution.
        Only the first process of the team displays anything and has callbacks.
        """
        first = team.rank == 0
        shown = first and self.verbose
        progress = Progress(self.tol, int(self.verbose), type(self).__name__) if shown else None
        observers: list[Observer] = [o for o in (progress, self.callback if first else None) if o is not None]
        context = callback_context(self, max_iter) if first else None
        if team.agree(context is not None):
            observers.append(SklearnCallbacks(self, context, X, y, now, team))
        if context is not None:
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        # A number that overflows is no warning: ``Certified.check`` finds what follows from it.
        with progress or nullcontext(), np.errstate(over="ignore", invalid="ignore"):
            solution = run(Monitor(max_iter, self.time_limit, observers))
            solution.check()
            solution.judge_gap()
            if progress is not None:
                progress.finish(solution)
        if context is not None:
            context.call_on_fit_task_end(estimator=self, X=X, y=y, reconstruction_attributes=final(solution))
        return solution

    def _store_certificate(self, solution: Certified) -> None:
        self.status_ = solution.status
        self.n_iter_ = solution.trace.iterations
        self.violation_ = solution.violation
        self.primal_objective_ = solution.primal
        self.dual_objective_ = solution.dual
        self.duality_gap_ = solution.gap
        self.trace_ = solution.trace

    def _warn_unless_proved(self, solution: Certified, rounding: float = 0.0, asymmetry: float = 0.0) -> None:
        """Warn if the solver did not converge, or if scores have errors above ``tol``.

        ``rounding`` is that of float64, ``asymmetry`` what they differ by between K(a, b) and K(b, a).
        """
        name = type(self).__name__
        if asymmetry > self.tol:
            warn_user(
                f"{name} cannot prove its result to tol = {self.tol:g}: K(a, b) and K(b, a) of the kernel "
                f"matrix differ so much that the scores do by about {asymmetry:.2g}. Give (K + K.T) / 2. It "
                f"{solution}",
                ConvergenceWarning,
            )
        elif rounding > self.tol:
            warn_user(
                f"{name} cannot prove its result to tol = {self.tol:g}: the kernel's values are so large "
                f"that float64 rounds the scores by about {rounding:.2g}. Centre or scale the features. It "
                f"{solution}",
                ConvergenceWarning,
            )
        elif not solution.status.converged:
            warn_user(f"{name} {solution} tol is {self.tol:g}.", ConvergenceWarning)

    def _check_common_params(self) -> None:
        check_choice("on_interrupt", self.on_interrupt, ("raise", "keep"))
        check_number("tol", self.tol)
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit)
        if self.n_threads is not None:
            check_integer("n_threads", self.n_threads, 1)
        check_integer("max_iter", self.max_iter, -1)
        if not isinstance(self.verbose, bool | np.bool_):
            check_integer("verbose", self.verbose, 0)
        check_bool("shrinking", self.shrinking)
        check_bool("warm_start", self.warm_start)
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback must be callable or None, got {self.callback!r}.")

    def decision_function(self, X: Any) -> FloatArray:
        """Scores of every class; of two classes one."""
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """The class with the largest score.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data; for a precomputed kernel, (n_samples, n_training_samples) values of it.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Predicted labels; the smallest in a tie.
        """
        return winners(self.decision_function(X), self.classes_)

    def __getstate__(self) -> dict[str, Any]:
        """The attributes as plain data, without those that need not be stored (see ``states.py``)."""
        state = super().__getstate__()
        return {name: to_plain(value) for name, value in state.items() if name not in self._not_stored}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a stored model; version 0.1.0 stored the objects themselves.

        Parameters that have come since have their defaults, which mean what was done before.
        """
        known = {name: from_plain(value) for name, value in state.items()}
        parameters = signature(type(self)).parameters
        super().__setstate__({name: parameters[name].default for name in self._get_param_names()} | known)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _weights_of_classes(y: np.ndarray, sample_weight: Any) -> FloatArray:
    """The weights of this process's rows; raises if these or the labels are wrong."""
    if len(y) and y.dtype.kind not in "iub":  # integers are classes
        check_classification_targets(y)
    return check_weights(sample_weight, len(y))


def all_or_none(name: str, given: bool, rows: int, team: Team) -> bool:
    """Whether ``name`` was given to the processes that have rows: to all, or to none of them."""
    told = [(rank, given) for rank, (rows, given) in enumerate(team.collect((rows, given))) if rows]
    odd = [rank for rank, given in told if given != told[0][1]]
    if odd:
        known, unknown = (told[0][0], odd[0]) if told[0][1] else (odd[0], told[0][0])
        raise ValueError(
            f"{name} was given on rank {known}, but not on rank {unknown}. Give it on all ranks or on none."
        )
    return bool(told and told[0][1])


def winners(scores: FloatArray, classes: np.ndarray) -> np.ndarray:
    """The labels of the largest scores, the smallest in a tie; for two classes by their ``margins``."""
    best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    return np.asarray(classes[best])


def margins(scores: FloatArray) -> FloatArray:
    """Scores as scikit-learn wants them: for two classes the second minus the first, or c-svc's one."""
    if scores.shape[1] == 1:
        return scores[:, 0]
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores
