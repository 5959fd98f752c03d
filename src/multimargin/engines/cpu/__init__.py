"""The native engine."""

from .engine import CpuEngine
from .lasting import LastingEngine
from .reached import Reached

__all__ = ["CpuEngine", "LastingEngine", "Reached"]
