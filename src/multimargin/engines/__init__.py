"""Where the arrays live and the O(q·n) work is done."""

from __future__ import annotations

from .base import Engine, EngineOptions
from .cpu import CpuEngine
from .reference import ReferenceEngine
from .scorer import Scorer

ENGINES: dict[str, type[Engine]] = {engine.name: engine for engine in (ReferenceEngine, CpuEngine)}


def find_engine(name: str) -> type[Engine]:
    """The engine of that name; "auto" is the fastest that runs everywhere."""
    if name == "auto":
        return CpuEngine
    if name not in ENGINES:
        raise ValueError(f"Unknown engine {name!r}. Use 'auto' or one of {', '.join(map(repr, ENGINES))}.")
    return ENGINES[name]


__all__ = ["ENGINES", "CpuEngine", "Engine", "EngineOptions", "ReferenceEngine", "Scorer", "find_engine"]
