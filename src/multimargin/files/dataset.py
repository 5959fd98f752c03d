"""What a data file holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..system.typing import Data


@dataclass(frozen=True, eq=False)
class Dataset:
    r"""Samples and their labels, as :func:`multimargin.datasets.load` returns them.

    ``X, y = load(path)`` unpacks it.

    Parameters
    ----------
    X : {ndarray, scipy.sparse.csr_array} of shape (n_samples, n_features)
        The samples. Whole numbers that fit are of type uint8, int8 or int16.
    y : ndarray of shape (n_samples,) or None
        The labels: int64, float64 or strings. None if the file has none.
    feature_names : list of str or None
        The names of the columns, if the file has them.
    source : str
        Where the data came from, for messages.

    Examples
    --------
    >>> import io
    >>> from multimargin.datasets import load
    >>> data = load(io.BytesIO(b"width,label\n3,cat\n4,dog\n"), format="csv")
    >>> data.feature_names, data.y.tolist()
    (['width'], ['cat', 'dog'])
    """

    X: Data
    y: np.ndarray | None
    feature_names: list[str] | None = None
    source: str = ""

    def __iter__(self) -> Iterator[Any]:
        """Yield X and y."""
        return iter((self.X, self.y))
