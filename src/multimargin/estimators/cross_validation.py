"""Cross-validation over a grid of points, whatever the machines are: checks, search, results."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..engines import Setting
from ..engines.mpi.data import are_equal
from ..selection.calibration import METHODS
from ..selection.column import Fits
from ..selection.dropping import Dropping, largest_score
from ..selection.fits import Fold
from ..selection.progress import SearchProgress
from ..selection.search import Search
from ..selection.search_file import SearchFile, describe
from ..selection.spread import Jobs, Ranks, Spread
from ..system.device_data import on_host
from ..system.team import Team
from ..system.typing import Data, FloatArray
from ..system.warn import warn_user
from .base import MachineClassifier, Rows
from .chosen import ChosenModel
from .fold_model import FoldModel, Scorer, evaluate, find_scorers
from .grid import FoldMaker
from .starts import CheckpointSetting, path_and_seconds
from .validation import check_choice, check_integer


class Deciding(NamedTuple):
    """The scores of a search."""

    scorers: dict[str, Scorer]
    by: str | None  # the name of the one that decides, if one does


class Given(NamedTuple):
    """What the fits of all columns have in common."""

    X: Data
    rows: Rows
    n: int  # rows of X
    folds: list[Fold]  # the last one has all rows
    Cs: list[float]
    seed: int
    workers: int  # that share the memory


class Grid(NamedTuple):
    """The columns of a search, each with every C."""

    Cs: list[float]
    columns: list[dict[str, Any]]  # parameters of the estimator beside C
    order: list[int]  # in which columns are visited

    @property
    def points(self) -> list[dict[str, Any]]:
        """The points of the grid, all costs of the first column first."""
        return [{"C": C} | column for column in self.columns for C in self.Cs]


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
        data = given if self.X is None else on_host(self.X[given])
        weight = rows.weight[fold.test] if rows.weighted else None
        return {name: evaluate(of, model, data, self.y[given], weight) for name, of in self.scorers.items()}


class CrossValidation(ChosenModel):
    """The base of the estimators that choose their parameters."""

    Cs: Any
    cv: Any
    tol: float
    class_weight: Any
    drop: str | float | None
    calibration: str
    n_jobs: int | None
    checkpoint: CheckpointSetting
    verbose: int
    on_interrupt: str

    # -- what differs between the machines ---------------------------------------------------------
    @abstractmethod
    def _setting(self) -> Setting:
        """Which processes share the search."""

    @abstractmethod
    def _template(self) -> MachineClassifier:
        """An estimator with the parameters that all points share."""

    @abstractmethod
    def _check_params(self) -> Deciding:
        """Check all parameters; what is scored, and what decides."""

    @abstractmethod
    def _training_data(self, X: Any, y: Any) -> tuple[Data, np.ndarray]:
        """Checked samples and labels."""

    @abstractmethod
    def _grid(self, X: Data, rows: Rows) -> Grid:
        """The points."""

    @abstractmethod
    def _fits(self, column: dict[str, Any], given: Given) -> Fits:
        """The fits of one column."""

    @abstractmethod
    def _problem(self, X: Data, rows: Rows, n: int, unit: FloatArray) -> dict[str, Any]:
        """What tells the samples and the machine from others, for a checkpoint."""

    @abstractmethod
    def _model(self, fitted: Any, rows: Rows, given: int, factors: FloatArray) -> Any:
        """The best point as a fitted estimator."""

    # -- checks ------------------------------------------------------------------------------------
    def _check_search(self) -> Deciding:
        """Check what all searches have."""
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

    # -- the search --------------------------------------------------------------------------------
    def _search(self, X: Any, y: Any, sample_weight: Any, groups: Any, team: Team) -> None:
        deciding = team.attempt(self._check_params)
        if team.size > 1 and not are_equal(team, X, y, sample_weight):
            raise ValueError(f"{type(self).__name__} needs the same X, y and sample_weight on all ranks.")
        template = self._template()
        X, y = self._training_data(X, y)
        rows = template._rows(y, sample_weight)
        grid = self._grid(X, rows)
        maker = FoldMaker(rows, self.class_weight, len(y), grid.Cs)
        folds = team.agree(maker.folds(self.cv, X, y, groups))
        problems = [*folds, maker.whole()]
        spread: Spread = Jobs(self.n_jobs) if team.size == 1 else Ranks(team)
        workers = spread.workers if team.size == 1 else self._setting().sharers(team)
        given = Given(X, rows, len(y), problems, grid.Cs, team.agree(template._seed()), workers)
        makers = [partial(self._fits, column, given) for column in grid.columns]
        (scorers, by), points, first = deciding, grid.points, team.rank == 0
        metrics = list(scorers)
        file = team.attempt(lambda: self._file(X, rows, len(y), grid, problems, metrics) if first else None)
        search = Search(
            makers,
            grid.order,
            grid.Cs,
            points,
            folds,
            self._scoring(scorers, X, y, rows),
            metrics,
            by,
            Dropping(self.drop, largest_score(self._deciding_score(by))),
            SearchProgress(len(points) * len(folds), int(self.verbose) if first else 0),
            len(points) == 1 and bool(self.refit) and file is None,
            spread,
            file,
            team.agree([] if file is None else list(file.points)),
        )
        search.run(self.on_interrupt == "keep")
        self._store_results(search, rows.labels, deciding)
        if by is not None and self.refit:
            fitted = search.refitted
            if fitted is None:
                fits = makers[search.best // len(grid.Cs)]()
                fitted = fits.fit(self.best_params_["C"], fits.whole)
            factors = maker.factors(np.ones(len(rows.y), dtype=bool))
            self.best_estimator_ = self._model(fitted, rows, len(y), factors)
            self.refit_time_ = fitted.seconds
            scores = np.concatenate(search.out_of_fold)
            tested = np.concatenate([fold.test for fold in folds])
            self._calibrate(scores, rows.y[tested], rows.weight[tested])

    def _scoring(self, scorers: dict[str, Scorer], X: Data, y: np.ndarray, rows: Rows) -> FoldScoring:
        named = isinstance(self.scoring, str | list | tuple | set | None)
        return FoldScoring(scorers, None if named else X, y, rows)

    def _file(
        self, X: Data, rows: Rows, n: int, grid: Grid, folds: list[Fold], metrics: list[str]
    ) -> SearchFile | None:
        """The checkpoint, if there is one; ``ValueError`` if it is damaged or of another search."""
        parsed = path_and_seconds(self.checkpoint)
        if parsed is None:
            return None
        rule = {"tol": float(self.tol), "drop": str(self.drop)}
        problem = self._problem(X, rows, n, folds[-1].unit)
        columns = 1 if self._template().machine == "c-svc" else len(rows.labels)
        shapes = [(len(fold.test), columns) for fold in folds[:-1]]  # the last one has all samples
        return SearchFile(*parsed, problem | describe(grid.points, folds, metrics) | rule, shapes)

    def _calibrate(self, scores: FloatArray, y: np.ndarray, weight: FloatArray) -> None:
        """Find probabilities from the out-of-fold scores of the best point."""
        self.calibrator_ = METHODS[self.calibration].fit(scores, y, weight, len(self.classes_))
        self.temperature_ = getattr(self.calibrator_, "temperature", np.nan)

    def _store_results(self, search: Search, labels: np.ndarray, deciding: Deciding) -> None:
        scorers, by = deciding
        results, done = search.results, int((~np.isnan(search.results.facts["fit_time"])).sum())
        self.classes_ = labels
        self.cv_results_ = results.table()
        self.scorer_ = scorers["score"] if list(scorers) == ["score"] else scorers
        self.n_splits_, self.interrupted_ = results.folds, search.interrupted
        if by is not None:
            if not search.out_of_fold:
                raise ValueError("No point has a score that is a number in every fold: scoring gave NaN.")
            self.best_index_ = search.best
            self.best_params_ = results.params[search.best]
            self.best_score_ = float(results.scores[by][search.best].mean())
        if results.unproved:
            warn_user(
                f"{results.unproved} of {done} fits did not reach tol = {self.tol:g}: see 'converged' and "
                "'violation' in cv_results_.",
                ConvergenceWarning,
            )
