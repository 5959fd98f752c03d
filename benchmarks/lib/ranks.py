"""Fits by several ranks under mpiexec, as (rank -> what it counted), and their models.

Each fit is a start of its own, so that fits with different numbers of ranks can take turns. mpiexec is the
one beside the Python that runs, or $MULTIMARGIN_MPIEXEC.
"""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.lib.data import ROOT, Split
from benchmarks.lib.process import SLEEPING, THREAD_VARIABLES
from benchmarks.lib.scoring import Coefficients
from benchmarks.workers.storage import write_split
from multimargin.engines import Mpi

LIMIT = 1800.0  # seconds of one start


def mpiexec() -> list[str]:
    """The command, without the number of ranks; without one the benchmark says so and ends."""
    beside = Path(sys.executable).parent / "mpiexec"
    named = os.environ.get("MULTIMARGIN_MPIEXEC")
    command = named or (str(beside) if beside.exists() else shutil.which("mpiexec"))
    if command is None or find_spec("mpi4py") is None:
        print('skipped: no mpiexec or no mpi4py here; pip install "multimargin[mpi]" installs both')
        raise SystemExit(0)
    told = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60).stdout
    open_mpi = "Open MPI" in told or "OpenRTE" in told
    return [command, *(["--allow-run-as-root", "--oversubscribe"] if open_mpi else [])]


@dataclass
class TeamFit:
    """One fit: what each rank counted."""

    ranks: list[dict[str, Any]]

    def __getitem__(self, name: str) -> Any:
        """A count that all ranks share, by rank 0."""
        return self.ranks[0][name]

    def total(self, name: str) -> float:
        return sum(rank[name] for rank in self.ranks)

    def most(self, name: str) -> float:
        """Of the rank that has most."""
        return max(rank[name] for rank in self.ranks)

    @property
    def work(self) -> float:
        """CPU seconds of the slowest rank, without those of waiting."""
        return max(rank["cpu"] - rank["waiting"] for rank in self.ranks)

    @property
    def model(self) -> Coefficients:
        """For the judge."""
        found = self["coefficients"]
        first = (found["support"], found["dual_coef"], found["classes"])
        return Coefficients(*first, *(found[name] for name in ("intercept", "machine", "bias")))


class Ranks:
    """A problem on disk that any number of ranks can fit."""

    def __init__(self, split: Split) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="multimargin-ranks-")
        self._problem = Path(self._folder.name) / "problem.npz"
        write_split(self._problem, split)

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def fit(self, ranks: int, *, engine: Any = None, **parameters: Any) -> TeamFit:
        """The first fit of so many ranks of one thread each; on one rank ``engine`` may be "cpu"."""
        return self.fits(ranks, 1, engine=engine, **parameters)[0]

    def fits(self, ranks: int, repeats: int, *, engine: Any = None, **parameters: Any) -> list[TeamFit]:
        """The first fits of the same processes, one after the other."""
        engine = Mpi(data="same") if engine is None else engine
        own = {"engine": engine, "n_threads": 1} | parameters
        if engine == "cpu" and own.get("solver") == "pdasmc":
            own["solver"] = "dasmc"  # the same method
        found = start(ranks, problem=self._problem, parameters=own, repeats=repeats)
        return [TeamFit(list(each)) for each in zip(*found, strict=True)]


def call(ranks: int, function: Callable[..., Any], **more: Any) -> list[Any]:
    """What a function of a module returns on each rank."""
    return [found[0] for found in start(ranks, problem=Path(), parameters={}, call=function, more=more)]


def start(ranks: int, **job: Any) -> list[list[Any]]:
    """Run a job; what each rank wrote."""
    from benchmarks.workers.mpi_worker import Job  # mpi4py is needed from here on

    variables = dict.fromkeys(THREAD_VARIABLES, "1") | SLEEPING
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    with tempfile.TemporaryDirectory(prefix="multimargin-job-") as folder:
        (Path(folder) / "job").write_bytes(pickle.dumps(Job(**job)))
        command = [*mpiexec(), "-n", str(ranks), sys.executable, "-m", "mpi4py", "-m"]
        done = subprocess.run(
            [*command, "benchmarks.workers.mpi_worker", folder],
            cwd=ROOT,
            env=os.environ | variables | {"PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        if done.returncode:
            raise RuntimeError(f"{ranks} ranks ended with {done.returncode}: {done.stdout}{done.stderr}")
        return [pickle.loads((Path(folder) / f"rank{rank}").read_bytes()) for rank in range(ranks)]
