"""Amdahl's law, phase by phase: what one and two threads tell of many cores.

A phase of a fit takes s + d / p seconds on p cores: s is done by one thread while the others wait, and d is
divided. Two measurements determine both. Memory sets a floor: no phase is faster than the machine can move
its bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Phase(NamedTuple):
    """Seconds of one phase on one thread: what one thread must do, and what threads divide."""

    serial: float
    divided: float
    floor: float = 0.0  # seconds that moving its bytes takes on any number of cores

    @classmethod
    def of(cls, one: float, two: float, floor: float = 0.0) -> Phase:
        """From the seconds on one thread and on two.

        What a second thread does not make faster is serial. A phase that takes less than half the time on two
        threads had luck, and counts as divided; one that takes longer counts as serial with the longer time.
        """
        serial = min(max(2.0 * two - one, 0.0), max(one, two))
        return cls(serial, max(one - serial, 0.0), floor)

    def seconds(self, cores: int) -> float:
        """Predicted seconds on so many cores."""
        return max(self.serial + self.divided / cores, min(self.floor, self.serial + self.divided))

    @property
    def serial_share(self) -> float:
        """Of its time on one thread."""
        whole = self.serial + self.divided
        return self.serial / whole if whole > 0 else 0.0


def predicted(phases: Mapping[str, Phase], cores: int) -> float:
    """Seconds of a fit: its phases come one after the other."""
    return sum(phase.seconds(cores) for phase in phases.values())
