"""A search over kernel machines: which points, the fits of each kernel, and the model of the best one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from ..engines import LASTING, Mpi, Setting, find_engine
from ..engines.rounding import score_asymmetry, score_rounding
from ..kernels import Kernel
from ..run.fingerprint import fingerprint
from ..selection.fits import Fitted, KernelFits
from ..selection.search import middle_first
from ..system.device_data import lives_on_device
from ..system.shard import Shard
from ..system.team import SOLO
from ..system.typing import Data, FloatArray
from .attributes import ModelMaker
from .base import Rows
from .cross_validation import CrossValidation, Deciding, Given, Grid
from .grid import WITH_GAMMA, check_gammas, cost_values, gamma_values, values_of
from .kernel_svc import KernelSVC
from .samples import training_data

_LISTED = ("machine", "degree", "coef0")  # parameters that may have several values
_KERNELS_WITH = {"degree": ("poly",), "coef0": ("poly", "sigmoid")}


class KernelSearch(CrossValidation):
    """The base of ``KernelSVCCV``, whose docstring explains the parameters."""

    machine: Any
    Cs: Any
    gammas: Any
    kernel: str | Callable[[Any, Any], Any] | Kernel
    degree: Any
    coef0: Any
    engine: str | Mpi
    best_params_: dict[str, Any]

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
        return self._check_search()

    def _setting(self) -> Setting:
        """Which processes share the search."""
        setting = find_engine(self.engine)
        if isinstance(setting, Mpi):
            if setting.model != "all" or setting.scheme != "rows" or setting.data == "shards":
                raise ValueError(
                    "KernelSVCCV spreads its fits over the ranks, each of which has all rows and gets the "
                    f"model: use 'mpi' or Mpi(data='same'), not {setting!r}."
                )
        elif setting.place not in LASTING:
            raise ValueError(
                f"engine of KernelSVCCV must be 'auto', 'cpu', 'cuda', 'mpi' or an Mpi, got {self.engine!r}: "
                "other engines cannot leave samples out."
            )
        return setting

    def _template(self) -> KernelSVC:
        return self._svc()

    def _training_data(self, X: Any, y: Any) -> tuple[Data, np.ndarray]:
        device = not isinstance(self._setting(), Mpi) and self._engine_for(X) == "cuda"
        return training_data(self, self._svc()._make_kernel(), X, y, device=device)

    def _engine_for(self, X: Any) -> str:
        """The engine of each fit: with "auto" the GPU, if the samples are there."""
        auto = self.engine == "auto" and lives_on_device(X)
        return "cuda" if auto or self._setting().place == "cuda" else "auto"

    # -- the grid ----------------------------------------------------------------------------------
    def _svc(self, **point: Any) -> KernelSVC:
        """One point of the grid, as an estimator."""
        names = ("kernel", "bias", "tol", "cache_size", "class_weight", "n_threads", "random_state")
        shared = {name: getattr(self, name) for name in (*names, "on_interrupt")}
        first = {name: values_of(name, getattr(self, name))[0] for name in _LISTED}
        return KernelSVC(**(shared | first | point))

    def _grid(self, X: Data, rows: Rows) -> Grid:
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
        return Grid(cost_values(self.Cs), kernels, order)

    def _fits(self, column: dict[str, Any], given: Given) -> KernelFits:
        X, rows, n, folds, Cs, seed, workers = given
        svc = self._svc(C=min(Cs), engine=self._engine_for(X), **column)
        task, setting = svc._task(X, rows, Shard(n), min(Cs) * folds[-1].unit), svc._setting()
        method = svc._method()
        options = svc._engine_options(method, len(rows.y), seed, own=setting.memory(SOLO))
        options = replace(options, cache_bytes=options.cache_bytes // workers)
        largest = max(Cs) * np.max([fold.unit for fold in folds], axis=0)
        return KernelFits(task, largest, folds, method, options, LASTING[setting.place])

    def _problem(self, X: Data, rows: Rows, n: int, unit: FloatArray) -> dict[str, Any]:
        svc = self._svc()
        task, kind = svc._task(X, rows, Shard(n), unit), svc._kind_of_bias()
        data = task.X, task.y, task.C, rows.labels, rows.kept
        return fingerprint(task.problem.name, task.kernel, (kind, task.offset), *data, SOLO)

    def _model(self, fitted: Fitted, rows: Rows, given: int, factors: FloatArray) -> KernelSVC:
        svc = self._svc(engine=self._engine_for(fitted.task.X), **self.best_params_)
        return fitted_model(svc, self, fitted, rows, given, factors)

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
    point = task, solution.support, solution.coef
    svc._warn_unless_proved(solution, score_rounding(*point), score_asymmetry(*point))
    return svc
