"""Whether fixed-point kernel rows serve although the costs are large.

Rounding of kernel values matters as much as the coefficients are large, and costs only bound them. With
large costs they stay small if the classes hardly overlap for the kernel. A few samples show it: those of the
first two rounds, before most rows are computed.
"""

from __future__ import annotations

import numpy as np

from ...system.fixed_point import FIXED_POINT
from .row_store import RowStore
from .state import State

ROUNDS = 2  # after which it is decided; the rows so far are computed again
_LARGEST = 6.0  # coefficient then


def coarse_rows_serve(rows: RowStore, state: State) -> bool:
    """Whether to go on with fixed-point rows.

    Not if the fit starts from a known point: then most rows have been computed.
    """
    values = rows.values
    able = rows.keeps_rows and values.may_be_coarse and values.row_dtype != FIXED_POINT
    if not able or not state.shard.alone or state.task.start is not None:
        return False
    return float(np.abs(state.alpha[state.support]).max(initial=0.0)) <= _LARGEST
