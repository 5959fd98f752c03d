"""Array types used in signatures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
LabelArray = NDArray[np.int32]
Data = Any  # a C-contiguous array (n, d), or a scipy.sparse CSR matrix or array
