"""Labels of a stream: all classes are known from the first batch on."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Rows
from .costs import check_weights


def stream_classes(classes: Any, known: np.ndarray | None) -> np.ndarray:
    """All classes: those given now, which must be those ``known`` from earlier calls, if any."""
    if classes is None:
        if known is None:
            raise ValueError(
                "classes must be given in the first call of partial_fit: all labels that will come."
            )
        return known
    labels = np.unique(np.asarray(classes))
    if len(labels) < 2:
        raise ValueError(f"At least 2 classes are needed, got {labels.tolist()}.")
    if known is not None and not np.array_equal(labels, known):
        raise ValueError(f"classes must stay {known.tolist()}, got {labels.tolist()}.")
    return labels


def stream_rows(y: np.ndarray, labels: np.ndarray, sample_weight: Any) -> Rows:
    """The rows of positive weight of a batch."""
    weight = check_weights(sample_weight, len(y))
    kept = np.flatnonzero(weight)
    unknown = np.setdiff1d(y, labels)
    if len(unknown):
        raise ValueError(f"y has labels {unknown.tolist()}, which are not in classes {labels.tolist()}.")
    return Rows(kept, labels, np.searchsorted(labels, y[kept]).astype(np.int32), weight[kept])
