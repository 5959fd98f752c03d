"""How much memory a fit may use for kernel rows."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_SHARE = 0.5  # of the free memory, for cache_size="auto"
WHOLE_SAMPLES = 2048  # up to here the whole kernel matrix is small, and is treated as one block in float64
_SMALL = 512  # samples; their kernel matrix and all its copies take a few MB
_SMALL_BYTES = 256 << 20
_FALLBACK = 2 << 30  # if the system does not say how much is free


def available_bytes() -> int:
    """Bytes that can be used without swapping, as far as the system reports them."""
    free = [value for value in (_meminfo(), _cgroup()) if value is not None]
    if free:
        return min(free)
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _FALLBACK


def cache_bytes(cache_size: float | str, n: int) -> int:
    """Bytes for kernel rows of ``n`` samples: ``cache_size`` MB (10**6 bytes), or a share of the free memory.

    For at most ``_SMALL`` samples the free memory is not read, because reading it takes longer than computing
    their kernel matrix.
    """
    if cache_size == "auto":
        return _SMALL_BYTES if n <= _SMALL else int(CACHE_SHARE * available_bytes())
    return int(float(cache_size) * 10**6)


def _meminfo() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _cgroup() -> int | None:
    base = Path("/sys/fs/cgroup")
    try:
        limit = (base / "memory.max").read_text().strip()
        used = int((base / "memory.current").read_text())
        return None if limit == "max" else max(int(limit) - used, 0)
    except (OSError, ValueError):
        return None
