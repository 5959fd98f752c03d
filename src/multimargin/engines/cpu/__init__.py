"""The native engine."""

from .engine import CpuEngine

__all__ = ["CpuEngine"]
