"""How the memory that a fit may use is divided.

    cache_bytes ── blocks ─────── block        the kernel block K_WW of a working set
                │              ├─ work space   as much again, or the copies that the inner solver makes
                │              └─ finisher     matrices of what finishes a block, or of a leap
                ├─ passing ────── some rows that are not kept, and what Python needs to compute rows
                └─ the rest ───── kept kernel rows

``cache_bytes`` is a hard limit of all of these: of kernel values and matrices made of them. A rule with sets
of a fixed size gets the block that it needs, and it is an error if that does not fit. A rule that asks for
the largest block gets a share of the memory, and more than its share if there is little. Not counted are the
data, alpha and the gradient, and work space of a fixed size, which is a few MB.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

_ENOUGH = 32 << 20  # bytes for blocks: below, they get more than their share
_MOST = 0.75  # of all bytes, for blocks
_BLOCK = 0.4  # of the bytes for blocks: the block itself, and as much for the work space
_LAZY_BYTES, _LAZY_ROWS = 48 << 20, 64  # room for rows of a lazy block: so many bytes, but no fewer rows
_PASSING_ROWS = 64  # computed in one go if the cache has no place for them
_PASSING = 0.125  # of the bytes that blocks leave over, at most


@dataclass(frozen=True)
class Budget:
    """The bytes of a fit to ``n`` samples, and what they hold. ``ValueError`` if they are too few."""

    cache_bytes: int
    n: int
    itemsize: int  # of a kernel value
    block_share: float = 0.0  # of cache_bytes
    working_set: int | None = None  # largest set of a rule that does not ask what fits
    solver_bytes: int = 0  # that the inner solver needs per value of a block
    temporary_bytes: int = 0  # per kernel value while rows are computed
    row: int = 0  # values of a kernel row: n, unless other processes hold the rest of it

    def __post_init__(self) -> None:
        object.__setattr__(self, "row", self.row or self.n)
        if self._fixed_block + self._row_bytes > self.cache_bytes:
            raise ValueError(self._too_small())

    @cached_property
    def _row_bytes(self) -> int:
        """One row that passes by: no fit can do with less."""
        return self.row * (self.itemsize + self.temporary_bytes)

    @cached_property
    def _fixed_block(self) -> int:
        samples = 2 if self.working_set is None else self.working_set
        return min(self.n, samples) ** 2 * (self.itemsize + self.solver_bytes)

    def _too_small(self) -> str:
        needs, has = _megabytes(self._fixed_block + self._row_bytes), f"{self.cache_bytes / 1e6:g}"
        if self.working_set is None or self._fixed_block <= self._row_bytes:
            return (
                f"cache_size is {has} MB, and a fit to {self.n} samples by this method needs {needs} MB: "
                f"use cache_size>={needs}."
            )
        q = min(self.n, self.working_set)
        left = max(0, self.cache_bytes - self._row_bytes) // (self.itemsize + self.solver_bytes)
        smaller = f", or working sets of at most {math.isqrt(left)} samples" if left >= 4 else ""
        return (
            f"A working set of {q} samples needs {_megabytes(self._fixed_block)} MB for its kernel block, "
            f"and cache_size is {has} MB: use cache_size>={needs}{smaller}."
        )

    @cached_property
    def _block_bytes(self) -> int:
        wanted = int(self.block_share * self.cache_bytes)
        if self.working_set is None:
            wanted = max(wanted, min(_ENOUGH, int(_MOST * self.cache_bytes)))
        return min(max(wanted, self._fixed_block), self.cache_bytes - self._row_bytes)

    @cached_property
    def largest_block(self) -> int:
        """Samples of the largest kernel block."""
        copies = max(1.0, (self.itemsize + self.solver_bytes) / (2 * self.itemsize))
        values = int(_BLOCK * self._block_bytes / copies) // self.itemsize
        return max(math.isqrt(values), min(self.n, self.working_set or 2))

    @cached_property
    def finisher_bytes(self) -> int:
        """For what a solver needs beside the kernel block and its work space."""
        return int((1 - 2 * _BLOCK) * self._block_bytes)

    @cached_property
    def rows_in_python(self) -> int:
        """Rows that Python may compute in one go; all, if it computes none."""
        return self._rows_of(self.temporary_bytes)

    @cached_property
    def passing_rows(self) -> int:
        """Rows that pass by without being kept, at a time."""
        return min(_PASSING_ROWS, self._rows_of(self.itemsize), self.rows_in_python)

    def twin(self, count: int, kept_bytes: int) -> Budget:
        """For one of ``count`` fits beside this one, which all share kernel rows of so many bytes.

        They keep no rows of their own. ``ValueError`` if too little is left.
        """
        left = self._left - kept_bytes
        return replace(self, cache_bytes=left // count, block_share=_MOST)

    @cached_property
    def _left(self) -> int:
        return self.cache_bytes - self._block_bytes

    def _rows_of(self, value_bytes: int) -> int:
        """Rows, at least one, with so many bytes per value that take a small part of what blocks leave."""
        most = int(_PASSING * self._left) // (self.row * value_bytes) if value_bytes else self.n
        return min(self.n, max(1, most))

    @cached_property
    def kept_rows(self) -> int:
        """Kernel rows that are kept."""
        rows = self._left - self.row * self.rows_in_python * self.temporary_bytes
        return min(self.n, max(0, rows // (self.row * self.itemsize) - self.passing_rows))

    @cached_property
    def largest_lazy_block(self) -> int:
        """Samples of the largest block of which only some rows are there at a time."""
        values = self._block_bytes // self.itemsize
        return min(self.n, max(math.isqrt(values), values // _LAZY_ROWS))

    def lazy_room(self, q: int) -> tuple[int, int]:
        """(rows, values) of the room for rows of a lazy block of ``q`` samples.

        There is no more room than is fast to reach, and no less than a solver needs.
        """
        values = self._block_bytes // self.itemsize
        values = min(values, max(_LAZY_BYTES // self.itemsize, _LAZY_ROWS * q))
        return min(q, values // q), values


def _megabytes(size: int) -> str:
    """A number of MB that is not below ``size`` bytes, with three digits."""
    unit = 10 ** max(0, len(str(size)) - 3)
    return f"{math.ceil(size / unit) * unit / 1e6:g}"
