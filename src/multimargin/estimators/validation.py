"""Checks of parameters. Every message names the parameter, the values allowed, and the value given."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real

import numpy as np


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def check_number(name: str, value: object, *, positive: bool = True) -> None:
    """Raise unless ``value`` is a finite number > 0, or >= 0 if not ``positive``."""
    what = "a finite number > 0" if positive else "a finite number >= 0"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {what}, got {value!r}.")
    number = float(value)
    if not np.isfinite(number) or number < 0 or (positive and number == 0):
        raise ValueError(f"{name} must be {what}, got {value!r}.")


def check_integer(name: str, value: object, least: int) -> None:
    """Raise unless ``value`` is an integer >= ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer >= {least}, got {value!r}.")
    if int(value) < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}.")


def check_bool(name: str, value: object) -> None:
    """Raise unless ``value`` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}.")
