"""Where a fit starts: from zero, from the previous solution, or from the file that ``checkpoint`` names."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..problems import Problem
from ..run.checkpoint import EVERY, Checkpoint
from ..run.fingerprint import fingerprint
from ..system.shard import Shard
from ..system.typing import FloatArray, IntArray
from .attributes import ModelMaker
from .base import Rows
from .validation import check_number


# -- the previous solution ---------------------------------------------------------------------------
def previous_solution(
    estimator: Any, rows: Rows, given: Shard, problem: Problem, C: FloatArray
) -> tuple[tuple[IntArray, FloatArray] | None, FloatArray | None]:
    """Return the support vectors of the last fit that are held here, with their coefficients, and its bias.

    The coefficients are made feasible for the costs. None if the estimator of the first process should not
    start there, or has no solution of a problem of this shape.
    """
    previous = given.team.agree(_last_solution(estimator, given.n, rows.labels, problem.columns))
    if previous is None:
        return None, None
    support, coef, bias = previous
    kept = given.first + rows.kept
    _, before, ids = np.intersect1d(support, kept, assume_unique=True, return_indices=True)
    return (ids, problem.shrink_into(coef[before], rows.y[ids], C[ids])), bias


def _last_solution(
    estimator: Any, n: int, labels: np.ndarray, columns: int
) -> tuple[IntArray, FloatArray, FloatArray] | None:
    if not estimator.warm_start or not hasattr(estimator, "dual_coef_"):
        return None
    same = estimator._rows_fitted == n and np.array_equal(estimator.classes_, labels)
    if not same or estimator.dual_coef_.shape[1] != columns:
        return None
    return estimator.support_, estimator.dual_coef_, estimator._class_bias


# -- a checkpoint ------------------------------------------------------------------------------------
Path = str | os.PathLike[str]
CheckpointSetting = Path | tuple[Path, float] | None


def path_and_seconds(checkpoint: CheckpointSetting) -> tuple[str, float] | None:
    """Return the file and the seconds between two writes; None if there is no checkpoint."""
    if checkpoint is None:
        return None
    path, every = checkpoint, EVERY
    if isinstance(checkpoint, tuple | list) and len(checkpoint) == 2:
        path, every = checkpoint
        check_number("The seconds of checkpoint", every, positive=False)
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise TypeError(
            "checkpoint must be None, a path, or a tuple of a path and the seconds between two writes, got "
            f"{checkpoint!r}."
        )
    if not os.fspath(path):
        raise ValueError("checkpoint must name a file, got an empty path.")
    return os.fspath(path), float(every)


def open_checkpoint(
    parameter: CheckpointSetting, model: ModelMaker, solver: str, seed: int
) -> Checkpoint | None:
    """Return the checkpoint that the first process has set; the task then starts from its state."""
    task, shard = model.task, model.shard
    parsed = task.team.agree(path_and_seconds(parameter))
    if parsed is None:
        return None
    bias = model.bias, task.offset
    data = task.X, task.y, task.C, model.labels, model.kept
    problem = fingerprint(task.problem.name, task.kernel, bias, *data, task.team)
    of_all = None if model.rows == shard.n else task.team.join(model.kept)
    checkpoint = Checkpoint(*parsed, problem, solver, seed, of_all, task.team)
    before = checkpoint.before
    if before is not None:
        places, ids = shard.mine(checkpoint.ids)
        task.start = ids, task.problem.shrink_into(before.coef[places], task.y[ids], task.C[ids])
        task.bias = before.bias if model.bias == "free" else None
    return checkpoint
