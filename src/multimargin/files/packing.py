"""Short forms of long arrays of one dimension: ranges, one value throughout, few values, small integers.

A fitted machine has the number, the label and the cost of every training row. These are long, and they say
little. Every form gives back the same bits in the same type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

_SHORT = 256  # values that need no short form
_MOST_DIFFERENT = 256  # values of "few"
_SMALLER = (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32)


class Packed(NamedTuple):
    """A short form of an array."""

    form: str
    facts: dict[str, Any]  # for JSON
    parts: list[np.ndarray]


def pack(array: np.ndarray) -> Packed | None:
    """Return a short form, if the array has one."""
    if array.ndim != 1 or len(array) <= _SHORT or array.dtype.kind not in "iuf" or not array.dtype.isnative:
        return None
    facts: dict[str, Any] = {"dtype": array.dtype.str.lstrip("<>=|"), "length": len(array)}
    bits = array.view(f"u{array.dtype.itemsize}")
    if (bits == bits[0]).all():
        return Packed("constant", facts, [array[:1]])
    if array.dtype.kind == "f":
        values, codes = np.unique(bits[:: max(1, len(bits) // 4096)], return_counts=True)
        if len(values) > _MOST_DIFFERENT:
            return None
        values, codes = np.unique(bits, return_inverse=True)
        if len(values) > _MOST_DIFFERENT:
            return None
        return Packed("few", facts, [values.view(array.dtype), codes.astype(np.uint8)])
    least, most = int(array.min()), int(array.max())
    if most - least == len(array) - 1 and least == array[0] and (array[1:] > array[:-1]).all():
        return Packed("range", facts, [array[:1]])
    for smaller in _SMALLER:
        limits = np.iinfo(smaller)
        if np.dtype(smaller).itemsize < array.dtype.itemsize and limits.min <= least and most <= limits.max:
            return Packed("small", facts, [array.astype(smaller)])
    return None


@dataclass
class Expansion:
    """How many bytes short forms may still become: a small file must not fill the memory."""

    left: int

    def take(self, wanted: int) -> None:
        """Raise ``ValueError`` if there is no room for so many bytes."""
        self.left -= wanted
        if wanted < 0 or self.left < 0:
            raise ValueError("its short forms of arrays would become far larger than the file")


def unpack(form: str, facts: Mapping[str, Any], parts: Sequence[Any], expansion: Expansion) -> np.ndarray:
    """Return the array that ``pack`` was given; ``ValueError`` if its form is not known or not right."""
    dtype, length = np.dtype(str(facts["dtype"])), int(facts["length"])
    if dtype.kind not in "iuf" or any(not isinstance(part, np.ndarray) for part in parts):
        raise ValueError("a short form has parts of a type that it cannot have")
    expansion.take(length * dtype.itemsize)
    if form == "constant":
        return np.repeat(parts[0].astype(dtype, copy=False)[:1], length)
    if form == "range":
        first = parts[0].item()
        return np.arange(first, first + length, dtype=dtype)
    if form == "few":
        values, codes = parts
        restored = values.astype(dtype, copy=False)[codes]
    elif form == "small":
        restored = parts[0].astype(dtype)
    else:
        raise ValueError(f"it has an array of an unknown form {form!r}")
    if restored.shape != (length,):
        raise ValueError("a short form of an array has another length than it says")
    return np.asarray(restored)
