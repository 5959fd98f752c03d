"""Who competes, in which environment, and why somebody is missing."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.workers import environments

PEER_CACHE = 2000  # MB of kernel cache for every peer that has one: more than their defaults, for their good


@dataclass(frozen=True)
class Contender:
    name: str
    adapter: str  # a module of workers/
    machine: str
    environment: str | None = None  # in peers/ of our environment; None is ours itself
    options: dict[str, Any] = field(default_factory=dict)
    view: str = "scaled"  # which storage of the data it gets
    one_thread: bool = False
    interpreter: Path | None = None  # instead of the environment's
    short_rows: float = float("inf")  # with more training rows it is left to --full

    @property
    def python(self) -> Path:
        if self.interpreter is not None:
            return self.interpreter
        return environments.interpreter(self.environment) if self.environment else Path(sys.executable)

    @property
    def search_path(self) -> str:
        """Its PYTHONPATH: ours in our environment; none in any other, which has its own packages."""
        if self.interpreter is not None or self.environment is not None:
            return ""
        entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        return os.pathsep.join(os.path.abspath(entry) for entry in entries if entry)

    def missing(self) -> str | None:
        """Why it cannot run here, if so."""
        if not self.python.exists():
            return f"no environment {self.environment!r}: run make peers"
        return missing_kernlab() if self.adapter == "kernlab" else None


@functools.cache
def missing_kernlab() -> str | None:
    program = shutil.which("Rscript")
    if program is None:
        return "no Rscript: install R and its package kernlab (Debian: r-cran-kernlab)"
    command = [program, "--vanilla", "-e", "quit(status = !requireNamespace('kernlab', quietly = TRUE))"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        return "R has no package kernlab (Debian: r-cran-kernlab)"
    return None


OURS, STORED = "multimargin", "multimargin, stored"
SVC, INTELEX = "scikit-learn SVC", "intelex SVC"
SPOC, KBB = "kernlab spoc-svc", "kernlab kbb-svc"
CACHE = {"cache_size": PEER_CACHE}
CONTENDERS = {
    contender.name: contender
    for contender in (
        Contender(OURS, "multimargin_kernel", "Crammer-Singer"),
        Contender(STORED, "multimargin_kernel", "Crammer-Singer", view="stored"),
        Contender(SVC, "scikit_svc", "one-vs-one", options=CACHE),
        Contender(INTELEX, "intelex_svc", "one-vs-one", "intelex", options=CACHE),
        Contender(
            "LIBSVM", "libsvm", "one-vs-one", "libsvm", options=CACHE, one_thread=True, short_rows=5000
        ),
        Contender("LIBSVM, OpenMP", "libsvm", "one-vs-one", "libsvm", options=CACHE, short_rows=5000),
        Contender(
            SPOC,
            "kernlab",
            "Crammer-Singer",
            options={"type": "spoc-svc"} | CACHE,
            short_rows=1000,
        ),
        Contender(
            KBB,
            "kernlab",
            "Weston-Watkins",
            options={"type": "kbb-svc"} | CACHE,
            short_rows=1000,
        ),
        Contender("scikit-learn LinearSVC", "scikit_linear", "linear Crammer-Singer", short_rows=5000),
        Contender("LIBLINEAR", "liblinear", "linear Crammer-Singer", "liblinear", short_rows=5000),
    )
}

# All machines by our default method.
MACHINES = {
    machine: Contender(machine, "multimargin_kernel", machine, options={"machine": machine})
    for machine in ("crammer-singer", "weston-watkins", "one-vs-rest", "lee-lin-wahba", "msvm2")
}

# The binary machine, in the order of the tables.
C_SVC = Contender("c-svc", "multimargin_kernel", "c-svc", options={"machine": "c-svc"})
BINARY = {contender.name: contender for contender in (C_SVC, CONTENDERS[SVC], CONTENDERS[INTELEX])}

# Linear Crammer-Singer machines without intercept, whose weights are judged.
ONE, TWO, LIBLINEAR = "multimargin, 1 thread", "multimargin, 2 threads", "LIBLINEAR -s 4"
LINEAR = {
    contender.name: contender
    for contender in (
        Contender(ONE, "multimargin_linear", "linear Crammer-Singer", one_thread=True),
        Contender(TWO, "multimargin_linear", "linear Crammer-Singer"),
        Contender(
            LIBLINEAR,
            "liblinear",
            "linear Crammer-Singer",
            "liblinear",
            options={"bias": -1},
            one_thread=True,
        ),
    )
}
SAME_CODE = Contender(  # LIBLINEAR's code, if that has no environment
    "scikit-learn LinearSVC",
    "scikit_linear",
    "linear Crammer-Singer",
    options={"fit_intercept": False, "max_iter": 100_000},
    one_thread=True,
)

# One-vs-rest with the squared hinge, without intercept: ours against scikit-learn's default.
PEER_OVR = "scikit-learn LinearSVC, ovr"
LINEAR_OVR = {
    contender.name: contender
    for contender in (
        Contender(
            ONE,
            "multimargin_linear",
            "linear one-vs-rest",
            options={"machine": "one-vs-rest", "loss": "squared_hinge"},
            one_thread=True,
        ),
        Contender(
            PEER_OVR,
            "scikit_linear",
            "linear one-vs-rest",
            options={"multi_class": "ovr", "fit_intercept": False, "max_iter": 100_000},
            one_thread=True,
        ),
    )
}
