"""The named methods, and the outer loop that runs them."""

from __future__ import annotations

from .table import FREE_BIAS, METHODS, VARIANTS, find_method

__all__ = ["FREE_BIAS", "METHODS", "VARIANTS", "find_method"]
