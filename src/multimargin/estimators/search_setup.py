"""What the parameters of a search mean: its scores, its grid of points, and the fits of each kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from ..engines import CpuEngine, Mpi, Setting, find_engine
from ..engines.rounding import score_rounding
from ..kernels import Kernel
from ..run.fingerprint import fingerprint
from ..selection.calibration import METHODS
from ..selection.fits import Fitted, Fold, KernelFits
from ..selection.search import middle_first
from ..selection.search_file import SearchFile, describe
from ..system.shard import Shard
from ..system.team import SOLO
from ..system.typing import Data, FloatArray
from .attributes import ModelMaker
from .base import Rows
from .chosen import ChosenModel
from .fold_model import FoldModel, Scorer, evaluate, find_scorers
from .grid import WITH_GAMMA, check_gammas, cost_values, gamma_values, values_of
from .kernel_svc import KernelSVC
from .starts import CheckpointSetting, path_and_seconds
from .validation import check_choice, check_integer

_LISTED = ("machine", "degree", "coef0")  # parameters that may have several values
_KERNELS_WITH = {"degree": ("poly",), "coef0": ("poly", "sigmoid")}


class Deciding(NamedTuple):
    """The scores of a search."""

    scorers: dict[str, Scorer]
    by: str | None  # the name of the one that decides, if one does


class KernelGrid(NamedTuple):
    """The kernels of a search, each with every C."""

    Cs: list[float]
    kernels: list[dict[str, Any]]  # parameters of ``KernelSVC``; a machine counts as one of a kernel
    order: list[int]  # in which kernels are visited

    @property
    def points(self) -> list[dict[str, Any]]:
        """The points of the grid, all costs of the first kernel first."""
        return [{"C": C} | kernel for kernel in self.kernels for C in self.Cs]


@dataclass(frozen=True)
class FoldScoring:
    """Scores a fold: all metrics from the decision values of its test rows."""

    scorers: dict[str, Scorer]
    X: Data | None  # None if all scores have names: these read no data
    y: np.ndarray
    rows: Rows

    def __call__(self, fold: Fold, scores: FloatArray) -> dict[str, float]:
        rows = self.rows
        model, given = FoldModel(rows.labels, scores), rows.kept[fold.test]
        data = given if self.X is None else self.X[given]
        weight = rows.weight[fold.test] if rows.weighted else None
        return {name: evaluate(of, model, data, self.y[given], weight) for name, of in self.scorers.items()}


class SearchSetup(ChosenModel):
    """The base of ``KernelSVCCV``, whose docstring explains the parameters."""

    machine: Any
    Cs: Any
    gammas: Any
    kernel: str | Callable[[Any, Any], Any] | Kernel
    degree: Any
    coef0: Any
    drop: str | float | None
    calibration: str
    engine: str | Mpi
    n_jobs: int | None
    checkpoint: CheckpointSetting

    # -- checks ------------------------------------------------------------------------------------
    def _check_params(self) -> Deciding:
        """Check the parameters; what is scored, and what decides."""
        cost_values(self.Cs)
        check_gammas(self.gammas, self.kernel)
        listed = [values_of(name, getattr(self, name)) for name in _LISTED]
        for values in product(*listed):
            self._svc(**dict(zip(_LISTED, values, strict=True)))._check_params()
        for name, kernels in _KERNELS_WITH.items():
            if len(values_of(name, getattr(self, name))) > 1 and self.kernel not in kernels:
                raise ValueError(
                    f"{name} has several values, and is for kernel={' or '.join(map(repr, kernels))} only; "
                    f"kernel={self.kernel!r} has none."
                )
        check_choice("calibration", self.calibration, tuple(METHODS))
        self._setting()
        if self.n_jobs is not None:
            check_integer("n_jobs", abs(self.n_jobs) if isinstance(self.n_jobs, int) else self.n_jobs, 1)
        path_and_seconds(self.checkpoint)
        exact = isinstance(self.drop, str) and self.drop == "exact"
        share = isinstance(self.drop, Real) and not isinstance(self.drop, bool) and float(self.drop) >= 0
        if not (exact or share or self.drop is None):
            raise ValueError(f"drop must be 'exact', a number >= 0 or None, got {self.drop!r}.")
        return self._deciding()

    def _deciding(self) -> Deciding:
        scorers = find_scorers(self, self.scoring)
        if "score" in scorers and len(scorers) == 1:
            if isinstance(self.refit, str):
                raise ValueError("refit names one of several scores; with a single one it is True or False.")
            return Deciding(scorers, "score")
        if self.refit and self.refit not in scorers:
            names = ", ".join(map(repr, scorers))
            raise ValueError(
                f"With several scores refit must be one of {names}, or False; got {self.refit!r}."
            )
        return Deciding(scorers, str(self.refit) if self.refit else None)

    def _deciding_score(self, by: str | None) -> Any:
        """The score that decides, as the user named it."""
        if by is None or by == "score":
            return "accuracy" if self.scoring is None else self.scoring
        return self.scoring[by] if isinstance(self.scoring, dict) else by

    def _setting(self) -> Setting:
        """Which processes share the search."""
        setting = find_engine(self.engine)
        if isinstance(setting, Mpi):
            if setting.model != "all" or setting.scheme != "rows" or setting.data == "shards":
                raise ValueError(
                    "KernelSVCCV spreads its fits over the ranks, each of which has all rows and gets the "
                    f"model: use 'mpi' or Mpi(data='same'), not {setting!r}."
                )
        elif self.engine not in ("auto", CpuEngine.name):
            raise ValueError(
                f"engine of KernelSVCCV must be 'auto', 'cpu', 'mpi' or an Mpi, got {self.engine!r}: other "
                "engines cannot leave samples out."
            )
        return setting

    # -- the grid ----------------------------------------------------------------------------------
    def _svc(self, **point: Any) -> KernelSVC:
        """One point of the grid, as an estimator."""
        names = ("kernel", "bias", "tol", "cache_size", "class_weight", "n_threads", "random_state")
        shared = {name: getattr(self, name) for name in (*names, "on_interrupt")}
        first = {name: values_of(name, getattr(self, name))[0] for name in _LISTED}
        return KernelSVC(**(shared | first | point))

    def _grid(self, X: Data, rows: Rows) -> KernelGrid:
        gammas: list[float | None] = [None]
        if isinstance(self.kernel, str) and self.kernel in WITH_GAMMA:
            weight = rows.weight if rows.weighted else None
            kept = X if len(rows.kept) == X.shape[0] else X[rows.kept]
            gammas = [*gamma_values(self.gammas, self._svc()._make_kernel(), kept, weight)]
        several = {name: getattr(self, name) for name in _LISTED}
        several = {k: values_of(k, v) for k, v in several.items() if isinstance(v, list | tuple | np.ndarray)}
        others = [dict(zip(several, values, strict=True)) for values in product(*several.values())]
        kernels = [({} if g is None else {"gamma": g}) | other for other in others for g in gammas]
        order = [k + len(gammas) * part for k in middle_first(len(gammas)) for part in range(len(others))]
        return KernelGrid(cost_values(self.Cs), kernels, order)

    def _fits(
        self,
        kernel: dict[str, Any],
        X: Data,
        rows: Rows,
        n: int,
        folds: list[Fold],
        Cs: list[float],
        seed: int,
        workers: int = 1,
    ) -> KernelFits:
        """The fits of one kernel; the last of ``folds`` has all rows, and ``workers`` share the memory."""
        svc = self._svc(C=min(Cs), **kernel)
        task = svc._task(X, rows, Shard(n), min(Cs) * folds[-1].unit)
        method = svc._method()
        options = svc._engine_options(method, len(rows.y), seed)
        options = replace(options, cache_bytes=options.cache_bytes // workers)
        largest = max(Cs) * np.max([fold.unit for fold in folds], axis=0)
        return KernelFits(task, largest, folds, method, options)

    def _scoring(self, scorers: dict[str, Scorer], X: Data, y: np.ndarray, rows: Rows) -> FoldScoring:
        named = isinstance(self.scoring, str | list | tuple | set | None)
        return FoldScoring(scorers, None if named else X, y, rows)

    def _file(
        self, X: Data, rows: Rows, n: int, grid: KernelGrid, folds: list[Fold], metrics: list[str]
    ) -> SearchFile | None:
        """The checkpoint, if there is one; ``ValueError`` if it is damaged or of another search."""
        parsed = path_and_seconds(self.checkpoint)
        if parsed is None:
            return None
        svc = self._svc()
        task = svc._task(X, rows, Shard(n), folds[-1].unit)
        bias = svc._kind_of_bias(), task.offset if svc._kind_of_bias() == "regularized" else 0.0
        data = task.X, task.y, task.C, rows.labels, rows.kept
        problem = fingerprint(task.problem.name, task.kernel, bias, *data, SOLO)
        rule = {"tol": float(self.tol), "drop": str(self.drop)}
        return SearchFile(*parsed, problem | describe(grid.points, folds, metrics) | rule)

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), self._svc().__sklearn_tags__()
        tags.input_tags = own.input_tags
        tags.classifier_tags = own.classifier_tags
        return tags


def fitted_model(
    svc: KernelSVC, like: Any, fitted: Fitted, rows: Rows, given: int, factors: FloatArray
) -> KernelSVC:
    """Make a fitted ``KernelSVC`` of the solution for all rows, with the features that ``like`` has seen."""
    solution, task = fitted.solution, fitted.task
    model = ModelMaker(task, rows.labels, given, rows.kept, factors, svc._kind_of_bias())
    svc._store_model(model.of(solution), True)
    svc._store_certificate(solution)
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(like, name):
            setattr(svc, name, getattr(like, name))
    svc._warn_unless_proved(solution, score_rounding(task, solution.support, solution.coef))
    return svc
