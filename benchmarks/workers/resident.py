"""How much memory this process has in use; Linux only."""

from __future__ import annotations

from pathlib import Path

PROCESS = Path("/proc/self")


def resident_mb(which: str) -> float:
    """VmRSS is the present size, VmHWM the largest one since the start or since ``forget_peak``."""
    # getrusage would do for the second, but what it says includes the parent's size before exec.
    lines = (PROCESS / "status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(which))) * 1024 / 1e6


def forget_peak() -> None:
    """Count the peak from now on."""
    (PROCESS / "clear_refs").write_text("5")
