"""The problem of all ranks in one process: for schemes in which every rank has all samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...system.shard import Shard
from ...system.team import SOLO
from ..base import Task


def whole_task(task: Task) -> Task:
    """The problem with the samples of all ranks, for one process."""
    team, shard = task.team, Shard(len(task.y), task.team)
    counts = np.diff(shard.bounds).tolist()
    start = None
    if team.max(float(task.start is not None)):
        ids, rows = task.start or (np.empty(0, dtype=np.int64), np.empty((0, task.m)))
        start = team.join(shard.first + ids), team.join(rows)
    X = shard.take_data(np.arange(shard.n), task.X)
    y, C = team.join(task.y, counts), team.join(task.C, counts)
    return replace(task, X=X, y=y, C=C, start=start, team=SOLO)
