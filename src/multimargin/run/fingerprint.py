"""What tells one problem from another, in a few numbers: a checkpoint must not be continued on other data.

Labels, costs and parameters are compared completely, up to rounding of numbers that are summed up from the
data. Of the samples, evenly spread rows are compared: at most 256, and at most two million values. That
takes about 10 ms, whatever the number of samples. A change in a row that was not compared is not noticed,
and it does no harm: the fit starts from a point that is feasible, and proves its result on the data that it
has.

The numbers do not depend on how many processes share the samples, nor on the type that stores them.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..kernels import Kernel
from ..system.device_data import on_host
from ..system.shard import Shard
from ..system.team import Team
from ..system.typing import Data, FloatArray, IntArray, LabelArray

_MOST_ROWS, _MOST_VALUES = 256, 1 << 21  # of the samples
_CLOSE = 1e-9  # relative: sums of many processes are rounded differently
_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_HIDDEN = ("the names of the classes", "the labels", "the samples", "the costs")  # values that say nothing


def fingerprint(
    machine: str,
    kernel: Kernel,
    bias: tuple[str, float],
    X: Data,
    y: LabelArray,
    C: FloatArray,
    names: np.ndarray,
    numbers: IntArray,
    team: Team,
) -> dict[str, Any]:
    """Return the parts of a problem by name, as JSON can hold them.

    Parameters
    ----------
    machine, kernel, X, y, C, team
        The problem; X, y and C are what this process has.
    bias : tuple
        The kind of bias, and the constant that is added to the kernel if the bias is regularised.
    names : ndarray
        The classes.
    numbers : ndarray
        Row numbers of the samples of this process in the data of all processes.
    """
    parts: dict[str, Any] = {"the machine": machine, "the kernel": type(kernel).__name__}
    for field in fields(kernel):
        parts[f"the kernel's {field.name}"] = _plain(getattr(kernel, field.name))
    shard = Shard(len(y), team)
    order = np.modf(numbers * (math.sqrt(5) - 1) / 2)[0]  # in [0, 1), different for every row
    return parts | {
        "the kind of bias": bias[0],
        "the constant of the bias": bias[1] if bias[0] == "regularized" else 0.0,
        "the number of samples": shard.n,
        "the number of features": list(X.shape[1:]),
        "the number of classes": len(names),
        "the names of the classes": hashlib.sha256(repr(names.tolist()).encode()).hexdigest(),
        "the labels": _total((y.astype(np.uint64) + 1) * _weights(numbers), team),
        "the costs": team.sum([C.sum(), C @ order]).tolist(),
        "the samples": _samples(X, shard, numbers, team),
    }


def differences(there: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """Return what is different, in words."""
    found = []
    for name in {**here, **there}:
        a, b = there.get(name), here.get(name)
        if not _same(a, b):
            found.append(name if name in _HIDDEN else f"{name} ({a!r} in the file, {b!r} here)")
    return found


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=_CLOSE)
    return bool(a == b)


def _plain(value: Any) -> Any:
    """Return a parameter of a kernel as plain data; of a function its name, of other objects their type's."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    return getattr(value, "__qualname__", type(value).__qualname__)


def _weights(numbers: IntArray) -> np.ndarray:
    """Return an odd number of 64 bits for each row: sums weighted by them depend on the order of rows."""
    x = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(_GOLDEN)
    return (x ^ (x >> np.uint64(29))) | np.uint64(1)


def _total(values: np.ndarray, team: Team) -> str:
    """Return the sum of all processes' values modulo 2⁶⁴, as text: JSON readers round large numbers."""
    mine = int(values.sum(dtype=np.uint64))
    return f"{sum(team.collect(mine)) & _MASK:016x}"


def _samples(X: Data, shard: Shard, numbers: IntArray, team: Team) -> str:
    width = max(1, math.prod(X.shape[1:]))
    count = max(1, min(shard.n, _MOST_ROWS, _MOST_VALUES // width))
    _, rows = shard.mine(np.arange(count) * shard.n // count)
    compared = on_host(X[rows])
    digests = [int.from_bytes(_row_digest(compared, k)[:8], "little") for k in range(len(rows))]
    return _total(np.array(digests, dtype=np.uint64) * _weights(numbers[rows]), team)


def _row_digest(X: Data, row: int) -> bytes:
    """Return a checksum of the values of one row that are not zero, and of their places."""
    if sp.issparse(X):
        part = slice(X.indptr[row], X.indptr[row + 1])
        places, values = X.indices[part], X.data[part]
    else:
        values = np.ravel(X[row])
        places = np.arange(len(values))
    if values.dtype.kind in "US":
        return hashlib.sha256("\0".join(map(str, values)).encode()).digest()
    if values.dtype.kind not in "biuf":  # objects that only a kernel of one's own can read
        return hashlib.sha256().digest()
    stored = values != 0
    digest = hashlib.sha256(places[stored].astype("<i8").tobytes())
    digest.update(values[stored].astype("<f8").tobytes())
    return digest.digest()
