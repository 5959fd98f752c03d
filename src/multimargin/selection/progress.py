"""Reports on a running search: a bar over its fits, or a line per point."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from ..run.estimate import time_left
from ..run.progress import make_bar
from ..system.typing import FloatArray

_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt} of {total_fmt} fits, {elapsed}{postfix}"


class SearchProgress:
    """Counts fits, and those that were dropped as done.

    ``verbose=1`` shows a bar with the time left, or lines if tqdm is not installed; ``verbose=2`` always
    shows lines.
    """

    def __init__(self, fits: int, verbose: int) -> None:
        self._total, self._done, self._verbose = fits, 0, verbose
        self._start = time.perf_counter()
        self._bar: Any = make_bar("KernelSVCCV", fits, _FORMAT) if verbose == 1 else None

    def step(self, fits: int = 1) -> None:
        """So many fits are done, or need not be."""
        self._done += fits
        if self._bar is not None:
            self._bar.set_postfix_str(self._left(), refresh=False)
            self._bar.update(fits)

    def point(self, params: dict[str, Any], dropped: bool, scores: FloatArray | None) -> None:
        """Nothing more is to be done for a point, which has these scores; NaN where it was dropped."""
        if not self._verbose or self._bar is not None:
            return
        words = "dropped" if dropped else "done"
        if scores is not None:
            words += f", score {scores[: np.count_nonzero(~np.isnan(scores)) or 1].mean():.4f}"
        named = ", ".join(f"{name}={value:.4g}" for name, value in params.items())
        seconds = time.perf_counter() - self._start
        line = (
            f"[multimargin] {seconds:7.1f} s  {self._done} of {self._total} fits  {named}: {words}"
            f"  {self._left()}"
        )
        sys.stderr.write(f"{line.rstrip()}\n")

    def _left(self) -> str:
        if not 0 < self._done < self._total:
            return ""
        seconds = time.perf_counter() - self._start
        return time_left(seconds * (self._total / self._done - 1))

    def close(self) -> None:
        """End the bar."""
        if self._bar is not None:
            self._bar.close()
