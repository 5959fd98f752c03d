"""What a solver returns: the dual point, its certificate, and a trace of the iterations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .system.typing import FloatArray, IntArray

LARGE_GAP = 0.05  # of the primal: above this, optimality conditions that hold to tol say too little


class Status(Enum):
    """Why a solver stopped. If it did not converge, the text says what to do next.

    Examples
    --------
    >>> from multimargin import KernelSVC
    >>> status = KernelSVC().fit([[0.0], [1.0]], [0, 1]).status_
    >>> status.name, status.converged
    ('CONVERGED', True)
    >>> print(status)
    converged: every sample meets its optimality condition to tol.
    """

    CONVERGED = "converged: every sample meets its optimality condition to tol."
    WITHIN_GAP = "converged: the duality gap is at most gap_tol of the primal objective."
    LARGE_GAP = (
        "converged: every sample meets its optimality condition to tol. With costs this large that leaves a "
        "large duality gap: take a smaller tol or a smaller C for a tighter certificate."
    )
    MAX_ITER = "stopped at max_iter. Scale the features, take a smaller C, or raise max_iter."
    TIME_LIMIT = "stopped at time_limit. Scale the features, take a smaller C, or raise time_limit."
    CALLBACK = "stopped by a callback before it converged."
    INTERRUPTED = "interrupted by the user before it converged. Fit again with warm_start=True to go on."
    STALLED = (
        "stalled: no step decreases the dual any more at this precision. Scale the features, take a "
        "smaller C, or use dtype='float64'."
    )

    @property
    def converged(self) -> bool:
        """Whether the solution meets the tolerance that was asked for."""
        return self in (Status.CONVERGED, Status.WITHIN_GAP, Status.LARGE_GAP)

    def __str__(self) -> str:
        return self.value


def relative_gap(gap: float, primal: float) -> float:
    """Gap / primal; infinite if the primal is not positive, as it may be with an indefinite kernel."""
    if gap == 0:
        return 0.0
    return gap / primal if primal > 0 else math.inf


def falls(dual: float, lowest: float) -> bool:
    """Return whether the dual fell by more than rounding."""
    return dual < lowest - 1e-15 * abs(dual) if math.isfinite(lowest) else True


class TraceRow(NamedTuple):
    """One outer iteration, as recorded."""

    iteration: int  # 1, 2, …; counts on if the fit goes on with a checkpoint
    seconds: float  # since the solver started
    violation: float  # largest KKT violation of the samples examined to choose this step
    dual: float  # dual objective after the step (minimised)
    gap: float  # duality gap before the step; NaN if not all samples were examined
    working_set: int  # samples in the working set; of a linear machine: samples visited in the pass
    inner: int  # iterations or single-sample updates of the inner solver
    rows: int  # kernel rows computed so far
    hits: int  # kernel rows found in the cache so far
    evictions: int  # kernel rows dropped from the cache so far
    support: int  # support vectors after the step


_DTYPE = np.dtype(
    [(name, "f8" if name in ("seconds", "violation", "dual", "gap") else "i8") for name in TraceRow._fields]
)


class Trace:
    """A growing table with one row per outer iteration.

    ``trace["dual"]`` is a column as an array, ``trace[-1]`` a row, ``trace.info`` a dictionary of
    facts about the whole fit (engine, method, kernel precision, seconds per phase, …). Its columns are the
    fields of :class:`~multimargin.solution.TraceRow`.

    Examples
    --------
    >>> from multimargin import KernelSVC
    >>> trace = KernelSVC().fit([[0.0], [1.0]], [0, 1]).trace_
    >>> trace[-1].support, trace.info["n_threads"] >= 1
    (2, True)
    """

    before: int = 0  # iterations of the run that this one goes on with, which have no rows here

    def __init__(self) -> None:
        self._rows = np.zeros(64, dtype=_DTYPE)
        self._n = 0
        self.info: dict[str, object] = {}

    @property
    def iterations(self) -> int:
        """Iterations so far, those of the run that this one goes on with included."""
        return self.before + self._n

    def append(self, row: TraceRow) -> None:
        """Record one iteration."""
        if self._n == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros(max(64, self._n), dtype=_DTYPE)])
        self._rows[self._n] = row
        self._n += 1

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, key: str | int) -> NDArray[np.generic] | TraceRow:
        if isinstance(key, str):
            column: NDArray[np.generic] = self._rows[: self._n][key]
            return column
        return TraceRow(*self._rows[: self._n][key].item())

    def __iter__(self) -> Iterator[TraceRow]:
        return (self.row(k) for k in range(self._n))

    def row(self, k: int) -> TraceRow:
        """Row ``k`` (negative counts from the end)."""
        return TraceRow(*self._rows[: self._n][k].item())

    def __getstate__(self) -> dict[str, object]:
        """The rows there are, without the room for more."""
        rows = self._rows[: self._n].copy()
        return {"_rows": rows, "_n": self._n, "info": self.info, "before": self.before}

    def __repr__(self) -> str:
        if not self._n:
            return "Trace(empty)"
        last = self.row(-1)
        return (
            f"Trace({last.iteration} iterations, {last.seconds:.3g} s, dual {last.dual:.8g}, "
            f"{last.rows} kernel rows computed, {last.hits} from cache, {last.support} support vectors)"
        )


@dataclass
class Certified:
    """Why a run ended, and a certificate that is computed in float64 from the dual point alone.

    ``primal + dual = gap >= 0`` bounds how far both objectives are from the optimum.
    """

    status: Status
    violation: float
    primal: float
    dual: float
    gap: float
    trace: Trace = field(repr=False)

    def check(self) -> None:
        """Raise ``ValueError`` unless all numbers of the certificate are finite."""
        if not all(map(math.isfinite, (self.violation, self.primal, self.dual, self.gap))):
            raise ValueError(
                "Scores or objectives overflow float64. Scale the features or kernel values, or take a "
                "smaller C."
            )

    def judge_gap(self) -> None:
        """Say in the status if every sample meets ``tol`` and the gap is large nevertheless."""
        if self.status is Status.CONVERGED and relative_gap(self.gap, self.primal) > LARGE_GAP:
            self.status = Status.LARGE_GAP

    def __str__(self) -> str:
        share = relative_gap(self.gap, self.primal)
        return (
            f"{self.status} Largest violation {self.violation:.3g}, duality gap {self.gap:.3g}, "
            f"{share:.2g} of the primal objective."
        )


@dataclass
class Solution(Certified):
    """A dual-feasible point of a kernel machine with its certificate: what a :class:`Decomposition` returns.

    Parameters
    ----------
    status : Status
        Why the run ended.
    violation, primal, dual, gap : float
        The certificate. ``primal + dual = gap >= 0`` bounds how far both are from the optimum.
    trace : Trace
        What happened.
    n : int
        Number of samples.
    support : ndarray of shape (n_SV,)
        Those with coefficients, ascending.
    coef : ndarray of shape (n_SV, m)
        Their rows of α.
    loss : ndarray of shape (n_SV,)
        Their primal losses for unit cost.
    bias : ndarray of shape (m,)
        The bias of every class.

    Examples
    --------
    >>> import numpy as np
    >>> ids, coef = np.array([1]), np.array([[0.5, -0.5]])
    >>> found = Solution(Status.CONVERGED, 0.0, 0.5, -0.5, 0.0, Trace(), 3, ids, coef, coef[0], coef[0])
    >>> found.alpha
    array([[ 0. ,  0. ],
           [ 0.5, -0.5],
           [ 0. ,  0. ]])
    """

    n: int  # samples
    support: IntArray  # ids of those with alpha ≠ 0, ascending
    coef: FloatArray  # (n_SV, m), their rows of alpha
    loss: FloatArray  # (n_SV,), their primal losses for unit cost
    bias: FloatArray  # (m,)

    @property
    def alpha(self) -> FloatArray:
        """The dual point, (n, m)."""
        alpha = np.zeros((self.n, self.coef.shape[1]))
        alpha[self.support] = self.coef
        return alpha


@dataclass
class LinearSolution(Certified):
    """A dual-feasible point of a linear machine, and its weights."""

    weights: FloatArray  # (features, at least m); the constant feature, if there is one, is the last
    alpha: sp.csr_array  # (n, m)
    passes: int  # over the data: samples visited / n
