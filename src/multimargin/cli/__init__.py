"""The command line: ``multimargin train``, ``predict`` and so on; one file per command."""

from __future__ import annotations

from .main import main

__all__ = ["main"]
