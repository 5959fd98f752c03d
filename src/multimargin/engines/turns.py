"""Samples taken evenly from the classes."""

from __future__ import annotations

import numpy as np


def in_turns(order: list[int], y: np.ndarray, share: int) -> list[int]:
    """The first ``share`` of every class: each class's first, then each class's second, and so on.

    ``order`` has numbers of samples, the best first, and ``y`` the label of each number.
    """
    turns: dict[int, list[int]] = {}
    for i in order:
        turns.setdefault(int(y[i]), []).append(i)
    classes = [turns[label][:share] for label in sorted(turns)]
    return [ids[turn] for turn in range(share) for ids in classes if turn < len(ids)]
