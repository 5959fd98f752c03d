"""The point of a fit on the device: alpha and G in float64, class-major, and the measures of each sample.

G is always that of alpha: scores are computed in float64 after every step, so that a proof has nothing left
to do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...problems.base import DualRows
from ...system.team import Team
from ...system.typing import FloatArray, IntArray
from ..base import Task
from ..solved_costs import SolvedCosts
from .device import cupy, function, launch
from .values import KernelValues

MACHINES = {
    "crammer-singer": "CRAMMER_SINGER",
    "weston-watkins": "WESTON_WATKINS",
    "lee-lin-wahba": "LEE_LIN_WAHBA",
    "msvm2": "MSVM2",
    "one-vs-rest": "ONE_VS_REST",
    "c-svc": "C_SVC",
}


class Facts(NamedTuple):
    """Of every sample, on the device."""

    psi: Any  # violation, in units of the scores
    gain: Any  # part of the gap
    loss: Any
    score: Any  # ⟨α_i, S_i + b⟩
    linear: Any  # ⟨T_i, α_i⟩
    square: Any  # ‖α_i‖²


class DeviceState:
    """Alpha, G, the bias, the dual."""

    def __init__(
        self,
        task: Task,
        values: KernelValues,
        diagonal: FloatArray,
        costs: SolvedCosts,
        team: Team,
        scores: Any = None,
    ) -> None:
        """The start of ``task``; ``scores`` are those of its alpha, (m, n), if they are known."""
        cp = cupy()
        self.task, self.problem, self.values, self.costs, self._team = task, task.problem, values, costs, team
        self.n, self.m = len(task.y), task.m
        self.bias: FloatArray = np.zeros(self.m) if task.bias is None else task.bias
        self.y = cp.asarray(task.y.astype(np.int32, copy=False))
        self.diagonal = cp.asarray(diagonal)
        ridge = task.problem.ridge(task.C)
        self.ridge = None if ridge is None else cp.asarray(ridge)
        self.target = self._target()
        self._support: IntArray | None = None
        out = task.left_out
        # Those that take part, by their ids on the host, and the others on the device; None if all do.
        self.part: IntArray | None = None if out is None else np.flatnonzero(~out)
        self._left_out = None if out is None else cp.asarray(np.flatnonzero(out))
        alpha = task.alpha()
        if out is not None and alpha[out].any():
            raise ValueError("A sample that is left out has no weight, but the start gives it some.")
        self.asked = self._costs(task.C)
        self.take_costs()
        self._put(alpha)
        if scores is None:
            self.refresh()
        else:
            self._take_scores(scores)

    def _target(self) -> Any:
        """T by label, (labels, m): one row per class."""
        labels = np.arange(self.problem.m, dtype=np.int32)
        return cupy().asarray(np.ascontiguousarray(self.problem.target(labels).T))  # (m, labels)

    def take_costs(self) -> None:
        """Take over the costs that are solved with."""
        solved = self.costs.solved
        self.C = self.asked if solved is self.task.C else self._costs(solved)

    def _costs(self, C: FloatArray) -> Any:
        """Costs on the device: 1 for samples that are left out, because measures are divided by them."""
        return cupy().asarray(C if self.task.left_out is None else np.where(self.task.left_out, 1.0, C))

    def place(self, alpha: FloatArray) -> None:
        """Take over a point from the host."""
        self._put(alpha)
        self.refresh()

    def _put(self, alpha: FloatArray) -> None:
        self.alpha = cupy().asarray(np.ascontiguousarray(alpha.T, dtype=np.float64))
        self.lose()

    def write(self, ids: IntArray, alpha: FloatArray) -> None:
        """Rows of alpha from the host; G is as it was."""
        cp = cupy()
        self.alpha[:, cp.asarray(ids)] = cp.asarray(np.ascontiguousarray(alpha.T))

    def lose(self) -> None:
        """Alpha has changed, and G no longer belongs to it."""
        self.is_exact, self._support = False, None

    def refresh(self) -> None:
        """G = (K + R) α - T + b from alpha alone, in float64, and what follows from it."""
        ids = self.support
        S = self.values.scores(ids, self.coefficients(ids))
        self._take_scores(S)

    def add(self, ids: IntArray, delta: Any) -> None:
        """The same, from the change of alpha: (k, m) rows of ``ids``; alpha has it already."""
        self.G += self.values.scores(ids, delta)
        if self.ridge is not None:
            at = cupy().asarray(ids)
            self.G[:, at] += self.ridge[at] * delta.T
        self._measure()

    def _take_scores(self, S: Any) -> None:
        S -= self.target[:, self.y]
        S += cupy().asarray(self.bias)[:, None]
        if self.ridge is not None:
            S += self.ridge * self.alpha
        self.G = S
        self._measure()

    def shift(self, change: FloatArray) -> None:
        """Add to the bias, and to every row of G."""
        self.bias = self.bias + change
        self.G += cupy().asarray(change)[:, None]
        self._measure()

    # -- measures ------------------------------------------------------------------------------------
    def _facts(self, C: Any) -> Facts:
        out = cupy().empty((6, self.n))
        kernel = function("state.cu", "measure", MACHINE=MACHINES[self.problem.name], REAL="double")
        arguments = self.alpha, self.G, self.ridge, self.y, C, self.n, np.int32(self.problem.m), out
        launch(kernel, self.n, *arguments)
        if self._left_out is not None:
            out[:, self._left_out] = 0.0
        return Facts(*out)

    def _measure(self) -> None:
        self.facts = self._facts(self.C)
        self.asked_facts = self.facts if self.C is self.asked else self._facts(self.asked)
        f, squares = self.facts, 0.0
        sums = self.sums()
        totals = cupy().stack([f.score.sum(), f.linear.sum()]).get()
        if self.ridge is not None:
            squares = 0.5 * float((self.ridge * f.square).sum())
        # ½ ⟨α, S⟩ + ½ ⟨Rα, α⟩ - ⟨T, α⟩ + ⟨b, Σ α⟩, and f.score is of S + b
        energy = 0.5 * float(totals[0] - self.bias @ sums)  # ½ ⟨α, S⟩
        dual = energy + squares - float(totals[1]) + float(self.bias @ sums)
        self.energy, self.dual = self._team.agree((energy, dual))
        self.is_exact = True

    @property
    def support(self) -> IntArray:
        """Ids of the samples with weight, ascending."""
        if self._support is None:
            self._support = cupy().flatnonzero(self.alpha.any(axis=0)).get()
        return self._support

    def sums(self) -> FloatArray:
        """Σ_i α_i."""
        return np.asarray(self.alpha.sum(axis=1).get())

    def coefficients(self, ids: IntArray) -> Any:
        """Rows of alpha, on the device."""
        cp = cupy()
        return cp.ascontiguousarray(self.alpha[:, cp.asarray(ids)].T)

    def kernel_scores(self) -> Any:
        """K α of all samples, (m, n)."""
        S = self.G + self.target[:, self.y] - cupy().asarray(self.bias)[:, None]
        return S if self.ridge is None else S - self.ridge * self.alpha

    # -- on the host ---------------------------------------------------------------------------------
    def rows(self, ids: IntArray | None = None) -> DualRows:
        """Samples as the machine's own formulas want them; all if None."""
        if ids is None:
            alpha, G = self.alpha.T.get(), self.G.T.get()
            return DualRows(
                np.ascontiguousarray(alpha), np.ascontiguousarray(G), self.task.y, self.costs.solved
            )
        at = cupy().asarray(ids)
        alpha, G = self.alpha[:, at].T.get(), self.G[:, at].T.get()
        y, C = self.task.y[ids], self.costs.solved[ids]
        return DualRows(np.ascontiguousarray(alpha), np.ascontiguousarray(G), y, C)

    def taking_part(self) -> DualRows:
        """The same of the samples that take part."""
        return self.rows(self.part)

    def whole(self, alpha: FloatArray) -> FloatArray:
        """Rows of alpha of all samples, from those of the samples that take part."""
        if self.part is None:
            return alpha
        every = np.zeros((self.n, self.m))
        every[self.part] = alpha
        return every

    def scores(self, ids: IntArray | None) -> FloatArray:
        """S of some samples, or of all, on the host."""
        rows, C = self.rows(ids), self.task.C if ids is None else self.task.C[ids]
        return self.problem.scores(rows.G - self.bias, rows.alpha, rows.y, C)
