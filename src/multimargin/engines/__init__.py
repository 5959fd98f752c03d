"""Where the arrays live and the O(q·n) work is done."""

from __future__ import annotations

from .base import Engine, EngineOptions
from .cpu import CpuEngine, LastingEngine
from .cuda import CudaEngine
from .cuda.lasting import LastingCudaEngine
from .lasting import Lasting
from .mpi.setting import Mpi
from .reference import ReferenceEngine
from .scorer import Scorer
from .setting import OneProcess, Setting

ENGINES: dict[str, type[Engine]] = {
    engine.name: engine for engine in (ReferenceEngine, CpuEngine, CudaEngine)
}

# What fits many problems with the same kernel, by the place of the engine.
LASTING: dict[str, type[Lasting]] = {"cpu": LastingEngine, "cuda": LastingCudaEngine}


def find_engine(engine: str | Mpi) -> Setting:
    """What ``engine`` stands for; "auto" is the fastest engine that runs everywhere."""
    if isinstance(engine, Mpi):
        return engine
    if engine == "mpi":
        return Mpi()
    if engine == "auto":
        return OneProcess(CpuEngine)
    if not isinstance(engine, str) or engine not in ENGINES:
        names = ", ".join(map(repr, ["auto", *ENGINES, "mpi"]))
        raise ValueError(f"Unknown engine {engine!r}. Use one of {names}, or a multimargin.engines.Mpi.")
    return OneProcess(ENGINES[engine])


__all__ = [
    "ENGINES",
    "LASTING",
    "CpuEngine",
    "CudaEngine",
    "Engine",
    "EngineOptions",
    "Mpi",
    "OneProcess",
    "ReferenceEngine",
    "Scorer",
    "Setting",
    "find_engine",
]
