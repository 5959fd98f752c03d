"""What a caller wants of a data file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..system.threads import effective_threads
from .labels import check_label
from .types import check_dtype


@dataclass(frozen=True)
class ReadOptions:
    """How to read; the parameters of :func:`multimargin.datasets.load`."""

    label: Any
    n_features: int | None
    zero_based: bool | None  # None: by the smallest index
    dtype: np.dtype[Any] | None  # None: the smallest type
    n_threads: int

    @classmethod
    def checked(cls, label: Any, n_features: Any, zero_based: Any, dtype: Any, n_threads: Any) -> ReadOptions:
        """The options, if they are valid."""
        for name, value in (("n_features", n_features), ("n_threads", n_threads)):
            if value is not None and not (isinstance(value, int | np.integer) and value >= 1):
                raise ValueError(f"{name} must be a whole number >= 1 or None, got {value!r}.")
        automatic = isinstance(zero_based, str) and zero_based == "auto"
        if not automatic and not isinstance(zero_based, bool | np.bool_):
            raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}.")
        return cls(
            check_label(label),
            None if n_features is None else int(n_features),
            None if automatic else bool(zero_based),
            check_dtype(dtype),
            effective_threads(n_threads),
        )

    def check_features(self, found: int, source: str) -> None:
        """Raise unless a table has as many features as was asked for."""
        if self.n_features not in (None, found):
            raise ValueError(f"{source} has {found} features, and n_features={self.n_features}.")


@dataclass(frozen=True)
class WriteOptions:
    """How to write; the parameters of :func:`multimargin.datasets.save`."""

    feature_names: Sequence[str] | None
    zero_based: bool
    label: str
