"""Where a fit runs: which processes share it, and which engine works in each of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from ..system.team import SOLO, Team
from .base import Engine, EngineOptions, Task


class Setting(ABC):
    """What the parameter ``engine`` of an estimator stands for."""

    data: str = "same"  # what the processes are given: "same" arrays, "shards", or "auto" to find out
    model: str = "all"  # which processes get the whole model: "all", or "root" for the first one

    @property
    def place(self) -> str:
        """The engine that works in each process; methods may differ by it (``methods/table.py``)."""
        return "cpu"

    @property
    def takes_device_data(self) -> bool:
        """Whether samples may be on a GPU."""
        return False

    def memory(self, team: Team) -> int | None:
        """Bytes for ``cache_size="auto"``; None for a share of the host's free memory."""
        return None

    def sharers(self, team: Team) -> int:
        """How many processes of the team share that memory."""
        return team.ranks_on_host

    @abstractmethod
    def assemble(self) -> Team:
        """The processes that will hold a problem together; asked before there is a task."""

    @abstractmethod
    def __call__(self, task: Task, options: EngineOptions) -> Engine:
        """The engine of this process."""


@dataclass(frozen=True)
class OneProcess(Setting):
    """An engine in this process alone."""

    kind: type[Engine]

    @property
    def place(self) -> str:
        return self.kind.name

    @property
    def takes_device_data(self) -> bool:
        return self.place == "cuda"

    def memory(self, team: Team) -> int | None:
        return self.kind.memory()

    def assemble(self) -> Team:
        return SOLO

    def __call__(self, task: Task, options: EngineOptions) -> Engine:
        return self.kind(task, options)
