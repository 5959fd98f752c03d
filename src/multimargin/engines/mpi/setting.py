"""The options of a fit by several processes, as a value."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from ...system.team import Team
from ..base import Engine, EngineOptions, Task
from ..cpu import CpuEngine
from ..cuda.device import cupy
from ..setting import Setting
from .cards import CardsEngine, ranks_on_card, use_card
from .columns import ColumnsEngine

_CHOICES = {
    "data": ("auto", "same", "shards"),
    "model": ("all", "root"),
    "scheme": ("rows", "columns"),
    "engine": ("cpu", "cuda"),
}


@dataclass(frozen=True)
class Mpi(Setting):
    """Fit with all processes that ``mpiexec`` has started; ``engine="mpi"`` stands for ``Mpi()``.

    Every process runs the same program and calls ``fit`` with the same parameters. Each holds some rows of
    the data, with their kernel values, and sends the others only rows of the working set. It needs mpi4py
    (``pip install multimargin[mpi]``); a fitted model does not.

    Parameters
    ----------
    data : {"auto", "same", "shards"}, default="auto"
        What the ranks give to ``fit``. With "same" every rank gives the same arrays and works on its own
        slice of them. No rank reads beyond its slice of a memory map. With "shards" every rank gives the rows
        that it alone has. Shards may differ in length, and some may be empty. "auto" compares the arrays of
        all ranks by their digests: equal arrays are "same", others are "shards". Memory maps are compared by
        name, size and time of their files.
    model : {"all", "root"}, default="all"
        Which ranks get the whole model. "root" is rank 0. The other ranks then have the classes, the
        certificate and the trace, and cannot predict.
    scheme : {"rows", "columns"}, default="rows"
        What the ranks share. With "rows", each has some rows of the data, of the coefficients and of the
        gradient. With "columns", each has all of them, and the ranks share the columns of the kernel matrix.
        That is the scheme of Niu & Yuan (Algorithm 6). It sends far more, and is there to be compared with.
    timeout : float, default=60.0
        Seconds without a sign of life from a rank, after which the others end with an error.
    comm : mpi4py.MPI.Comm or None, default=None
        The ranks that take part; None is all of them. It is not stored with a model. A
        ``multimargin.system.team.Team`` of another kind is taken as it is.
    engine : {"cpu", "cuda"}, default="cpu"
        What works in each rank. With "cuda" each rank takes a GPU of its host, and ranks share one if there
        are not enough. Every rank then has all rows. A search spreads its fits over the cards. In a single
        fit the first card descends, and all compute scores.

    Examples
    --------
    >>> from multimargin import KernelSVC
    >>> from multimargin.engines import Mpi
    >>> model = KernelSVC(engine=Mpi(data="shards", model="root"))
    >>> model.engine.data
    'shards'

    A program ``train.py`` that gives every rank's own rows to ``model.fit(X, y)`` is started by
    ``mpiexec -n 4 python -m mpi4py train.py``. Prediction sends no messages: each rank may then call
    ``model.predict`` with test rows of its own, and a stored model predicts without MPI. The file
    ``examples/mpi_train.py`` does all this.
    """

    data: str = "auto"
    model: str = "all"
    scheme: str = "rows"
    timeout: float = 60.0
    comm: Any = field(default=None, hash=False, metadata={"stored": False})
    engine: str = "cpu"

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                listed = ", ".join(map(repr, choices))
                raise ValueError(f"{name} of Mpi must be one of {listed}, got {value!r}.")
        if self.engine == "cuda" and self.scheme != "rows":
            raise ValueError("scheme of Mpi is for engine='cpu': with engine='cuda' every rank has all rows.")
        number = isinstance(self.timeout, Real) and not isinstance(self.timeout, bool)
        if not number or not 0 < self.timeout < math.inf:
            raise ValueError(f"timeout of Mpi must be a finite number of seconds > 0, got {self.timeout!r}.")
        if self.comm is not None and not (isinstance(self.comm, Team) or hasattr(self.comm, "Get_rank")):
            raise TypeError(f"comm of Mpi must be a communicator of mpi4py or None, got {self.comm!r}.")

    @property
    def place(self) -> str:
        return self.engine

    def memory(self, team: Team) -> int | None:
        return CardsEngine.memory() // self.sharers(team) if self.engine == "cuda" else None

    def sharers(self, team: Team) -> int:
        return ranks_on_card(team) if self.engine == "cuda" else team.ranks_on_host

    def assemble(self) -> Team:
        team = self._team()
        if self.engine == "cuda":
            team.attempt(cupy)
            use_card(team)
        return team

    def _team(self) -> Team:
        if isinstance(self.comm, Team):
            return self.comm
        from .team import MpiTeam  # not before there is a fit: mpi4py starts MPI when it is imported

        return MpiTeam.assemble(self.comm, self.timeout)

    def __call__(self, task: Task, options: EngineOptions) -> Engine:
        if self.engine == "cuda":
            return CardsEngine(task, options)
        return (ColumnsEngine if self.scheme == "columns" else CpuEngine)(task, options)

    def __getstate__(self) -> dict[str, Any]:
        """The options without the communicator, which belongs to this process."""
        return vars(self) | {"comm": None}

    def __copy__(self) -> Mpi:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Mpi:
        return self  # it cannot change; a clone of an estimator keeps the communicator
