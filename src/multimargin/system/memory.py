"""How much memory a fit may use for kernel rows."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path
from typing import NamedTuple

from .team import SOLO, Team

CACHE_SHARE = 0.5  # of the free memory, for cache_size="auto"
WHOLE_SAMPLES = 2048  # up to here the whole kernel matrix is small, and is treated as one block in float64
_SMALL = 1024  # samples; their kernel matrix and all its copies take some 30 MB at most
_SMALL_BYTES = 256 << 20
_NO_LIMIT = 1 << 60  # version 1 of control groups writes so large a number if there is none
_FALLBACK = 2 << 30  # if the system does not say how much is free


def available_bytes(root: Path = Path("/")) -> int:
    """Bytes that can be used without swapping, as far as the system reports them below ``root``."""
    free = [value for value in (_meminfo(root), *map(_left, _cgroups(root))) if value is not None]
    if free:
        return min(free)
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _FALLBACK


def cache_bytes(cache_size: float | str, n: int, team: Team = SOLO, own: int | None = None) -> int:
    """Bytes for kernel rows of ``n`` samples: ``cache_size`` MB (10**6 bytes), or a share of the free memory.

    Processes on the same host share its memory evenly. All processes of the team get the same number, the
    smallest. For at most ``_SMALL`` samples the free memory is not read, because reading it takes longer
    than computing their kernel matrix. An engine with memory of its ``own`` says what "auto" is.
    """
    if cache_size != "auto":
        mine = int(float(cache_size) * 10**6)
    elif own is not None:
        mine = own
    elif n <= _SMALL:
        mine = _SMALL_BYTES
    else:
        mine = int(CACHE_SHARE * available_bytes() / team.ranks_on_host)
    return -int(team.max(-mine))


def _meminfo(root: Path) -> int | None:
    try:
        return _entry(root / "proc/meminfo", "MemAvailable:") * 1024
    except (OSError, ValueError, IndexError):
        return None


def _entry(file: Path, name: str) -> int:
    """The number after ``name`` at the start of a line."""
    text = f"\n{file.read_text()}"
    return int(text[text.index(f"\n{name}") + len(name) + 1 :].split(maxsplit=1)[0])


class _CGroup(NamedTuple):
    """A control group that this process is in, and the names of its files."""

    folder: Path
    limit: str
    used: str
    unused_files: str  # entry of memory.stat: pages of files that can be dropped at once


_NAMES = {
    "cgroup2": ("memory.max", "memory.current", "inactive_file"),
    "cgroup": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),  # version 1
}


def _left(group: _CGroup) -> int | None:
    """Bytes up to the limit of a group; None if it has no limit."""
    try:
        limit = (group.folder / group.limit).read_text().strip()
        if limit == "max" or int(limit) >= _NO_LIMIT:
            return None
        used = int((group.folder / group.used).read_text())
    except (OSError, ValueError):
        return None
    with contextlib.suppress(OSError, ValueError):  # without this entry all pages count
        used -= _entry(group.folder / "memory.stat", f"{group.unused_files} ")
    return max(int(limit) - used, 0)


@functools.cache
def _cgroups(root: Path) -> list[_CGroup]:
    """The groups whose limits hold for this process, from its own up to the top of their trees."""
    try:
        paths = _cgroup_paths((root / "proc/self/cgroup").read_text())
        mounts = (root / "proc/self/mountinfo").read_text().splitlines()
        found = [group for line in mounts for group in _mounted(line, paths, root)]
    except (OSError, ValueError):
        return []
    return [group for group in found if (group.folder / group.limit).exists()]


def _cgroup_paths(text: str) -> dict[str, Path]:
    """The path of this process's group in the tree of version 2, and in that of version 1 for memory."""
    paths = {}
    for number, controllers, path in (line.split(":", 2) for line in text.splitlines()):
        if "memory" in controllers.split(","):
            paths["cgroup"] = Path(path)
        elif number == "0" and not controllers:
            paths["cgroup2"] = Path(path)
    return paths


def _mounted(line: str, paths: dict[str, Path], root: Path) -> list[_CGroup]:
    """The groups of this process in what a line of mountinfo mounts, if that is a tree of groups."""
    before, _, after = line.partition(" - ")
    kind, _, options = after.split(" ", 2)
    if kind not in paths or (kind == "cgroup" and "memory" not in options.split(",")):
        return []
    inside, mounted_at = (Path(field) for field in before.split(" ")[3:5])
    top, path = root / mounted_at.relative_to("/"), paths[kind]
    own = top / path.relative_to(inside) if path.is_relative_to(inside) else top
    levels = [own, *own.parents]
    return [_CGroup(folder, *_NAMES[kind]) for folder in levels[: levels.index(top) + 1]]
