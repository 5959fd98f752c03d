"""Axes: where a value lies, and which values have a tick."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .numbers import power_text, short


@dataclass(frozen=True)
class Scale:
    """A map from values to positions between ``start`` and ``end``; values beyond the ends stay on them."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self._inner(self.low), self._inner(self.high)
        share = (self._inner(max(value, self.low) if self.log else value) - low) / ((high - low) or 1.0)
        return round(self.start + (self.end - self.start) * min(1.0, max(0.0, share)), 2)

    def _inner(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """Values and their texts: powers of ten, or multiples of 1, 2 or 5."""
        if not self.log:
            return [(value, short(value)) for value in _round_values(self.low, self.high, most)]
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        step = max(1, math.ceil((last - first + 1) / most))
        return [(10.0**power, f"10{power_text(power)}") for power in range(first, last + 1, step)]


def _round_values(low: float, high: float, most: int) -> list[float]:
    if not high > low:
        return [low]
    rough = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(k * unit for k in (1, 2, 5, 10) if k * unit >= rough * (1 - 1e-9))
    values = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [float(f"{k * step:.12g}") for k in values]


def decades(values: list[float]) -> tuple[float, float]:
    """Whole powers of ten around positive values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) - 1e-12)
    return 10.0**low, 10.0 ** max(high, low + 1)
