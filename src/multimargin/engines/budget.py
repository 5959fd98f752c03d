"""How the memory that a fit may use is divided.

    cache_bytes ── block_share ──── block       the kernel block K_WW of a working set
                │                ├─ work space  as much again, for the parts of it that a solver copies
                │                └─ finisher    matrices of what finishes a block, or of a leap
                └─ the rest ─────── rows        kept kernel rows

However small the cache is, ``_LEAST`` bytes are there for blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_LEAST = 32 << 20
_BLOCK = 0.4  # of the bytes for blocks: the block itself, and as much for the work space
_LAZY_BYTES, _LAZY_ROWS = 48 << 20, 64  # room for rows of a lazy block: at most bytes, at least rows
_PASSING_ROWS = 64  # computed in one go if the cache has no place for them


@dataclass(frozen=True)
class Budget:
    """The bytes of a fit, and what they hold."""

    cache_bytes: int
    block_share: float  # of cache_bytes
    itemsize: int  # of a kernel value

    @property
    def _block_bytes(self) -> int:
        return max(int(self.block_share * self.cache_bytes), _LEAST)

    @property
    def largest_block(self) -> int:
        """Samples of the largest kernel block."""
        return math.isqrt(int(_BLOCK * self._block_bytes) // self.itemsize)

    @property
    def finisher_bytes(self) -> int:
        """For what a solver needs beside the kernel block and its work space."""
        return int((1 - 2 * _BLOCK) * self._block_bytes)

    def kept_rows(self, n: int) -> int:
        """Kernel rows of ``n`` samples that are kept."""
        row_bytes = int((1 - self.block_share) * self.cache_bytes)
        return min(n, row_bytes // (n * self.itemsize))

    def passing_rows(self, at_once: int) -> int:
        """Rows that pass by without being kept, if ``at_once`` could be computed in one go."""
        return min(at_once, _PASSING_ROWS)

    def lazy_room(self, q: int) -> tuple[int, int]:
        """(rows, values) of the room for rows of a lazy block of ``q`` samples.

        There is no more room than is fast to reach, and no less than a solver needs.
        """
        values = min(self._block_bytes, _LAZY_BYTES) // self.itemsize
        return min(q, max(_LAZY_ROWS, values // q)), values
