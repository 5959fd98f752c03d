"""The binary machine with a free bias: C-SVC, LIBSVM's and the one of Serafini, Zanghirati & Zanni (2).

Primal, with Y_i = 1 for the second class and -1 for the first:

    min  ½ ‖w‖² + Σ_i C_i [1 - Y_i (s_i + b)]₊

Dual, minimised, over 0 ≤ β_i ≤ C_i with Σ_i Y_i β_i = 0, in the coefficients α_i = Y_i β_i of one column:

    D = ½ ⟨α, Kα⟩ - ⟨Y, α⟩,    Σ_i α_i = 0

With G = Kα - Y + b the gradient in β is γ_i = Y_i G_i; see ``box.py`` for the conditions at a given b. The
constraint is part of the machine (``balanced``): solvers keep the sum and never use b. It is computed only to
evaluate a point, and the best b is in the middle between the samples that pull it up and down most:

    v(b) = max( max_{α_i can grow} -G_i,  max_{α_i can shrink} G_i ),    min_b v = ½ (their sum at any b)

which is half of the difference that LIBSVM bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from ..system.shard import Shard
from ..system.team import SOLO, Team, largest_first
from ..system.typing import FloatArray, IntArray, LabelArray
from .base import ON_BOUND, DualRows
from .box import BoxProblem, with_rest
from .quantiles import hinge_bias


class CSvc(BoxProblem):
    """Formulas of the binary machine; see the module's head."""

    name: ClassVar[str] = "c-svc"
    idle_without_loss: ClassVar[bool] = False  # the bias decides
    feasible_set: ClassVar[str] = "balanced box"
    updates: ClassVar[tuple[str, ...]] = ()
    balanced: ClassVar[bool] = True

    def __init__(self, m: int) -> None:
        if m != 2:
            raise ValueError(
                f"Only binary classification is supported by machine='c-svc', and y has {m} classes. Use one "
                "of the multiclass machines ('crammer-singer', 'weston-watkins', 'lee-lin-wahba', 'msvm2', "
                "'one-vs-rest'), or wrap the estimator in scikit-learn's OneVsOneClassifier or "
                "OneVsRestClassifier."
            )
        super().__init__(m)

    @property
    def columns(self) -> int:
        return 1

    @property
    def gap_scale(self) -> float:
        return 1.0

    def target(self, y: LabelArray) -> FloatArray:
        return _signs(y)

    def loss(self, S: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        return np.asarray(C * np.maximum(1.0 - _signs(y) * S, 0.0)[:, 0])

    def beta(self, alpha: FloatArray, y: LabelArray) -> FloatArray:
        return np.maximum(_signs(y) * alpha, 0.0)

    def alpha(self, beta: FloatArray, y: LabelArray) -> FloatArray:
        return _signs(y) * beta + 0.0

    def gamma(self, G: FloatArray, y: LabelArray) -> FloatArray:
        return _signs(y) * G

    def bounds(self, y: LabelArray, C: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.where(y == 1, 0.0, -C), np.where(y == 1, C, 0.0)

    def project(self, w: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """On the box; ``projections.py`` has the projection that also keeps the sum."""
        low, high = self.bounds(y, C)
        return np.clip(w, low[:, None], high[:, None])

    def spread(self, room: FloatArray, mu: FloatArray, y: LabelArray) -> FloatArray:
        return room * mu

    def label_distribution(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """β_i / C_i on the other class."""
        share = self.beta(alpha, y) / C[:, None]
        return with_rest(np.repeat(share, 2, axis=1), y)

    # -- the free bias -----------------------------------------------------------------------------
    def best_bias(
        self,
        S: FloatArray,
        y: LabelArray,
        C: FloatArray,
        start: FloatArray | None = None,
        team: Team = SOLO,
    ) -> FloatArray:
        return hinge_bias(S, self.target(y), C, team)

    def pulls(self, rows: DualRows) -> tuple[FloatArray, FloatArray]:
        """-G if α can grow (else -inf), and G if it can shrink (else -inf)."""
        low, high = self.bounds(rows.y, rows.C)
        a, g, slack = rows.alpha[:, 0], rows.G[:, 0], ON_BOUND * rows.C
        return np.where(a < high - slack, -g, -np.inf), np.where(a > low + slack, g, -np.inf)

    def centre(self, rows: DualRows, team: Team = SOLO) -> float:
        up, down = _largest(self.pulls(rows), team)
        if math.isinf(up) or math.isinf(down):  # no sample can grow, or none can shrink
            return 0.0 if up == down else (up if math.isinf(down) else -down)
        return 0.5 * (up - down)

    def pairs(self, rows: DualRows, most: int, shard: Shard) -> tuple[IntArray, IntArray]:
        """The solution of Serafini, Zanghirati & Zanni's (5).

        The largest -G that can grow is matched with the largest G that can shrink, as long as the pair
        descends. A sample that can do both is used only once.
        """
        return _matched(*self.pulls(rows), most, shard)

    def gaining_pairs(
        self, rows: DualRows, pair: IntArray, curvature: FloatArray, most: int, shard: Shard
    ) -> tuple[IntArray, IntArray]:
        """By (ω_i - ω_j)² / 2(K_ii + K_jj - 2K_ij), the gain of a pair that meets no bound."""
        (up, down), (_, of_i), (_, of_j) = self.pulls(rows), shard.mine(pair[:1]), shard.mine(pair[1:])
        pull_i, pull_j = _largest((up[of_i], down[of_j]), shard.team)
        with_i, with_j = np.maximum(down + pull_i, 0.0), np.maximum(up + pull_j, 0.0)
        gain_down, gain_up = with_i**2 / curvature[0], with_j**2 / curvature[1]
        gain_up[of_i] = gain_down[of_j] = np.inf  # the pair itself
        gain_up, gain_down = (np.where(gain > 0, gain, -np.inf) for gain in (gain_up, gain_down))
        return _matched(gain_up, gain_down, most, shard)


def _matched(up: FloatArray, down: FloatArray, most: int, shard: Shard) -> tuple[IntArray, IntArray]:
    """Up to ``most`` disjoint pairs, largest values first, as long as the sum of both is positive."""
    rises, falls = map(iter, _candidates((up, down), 2 * most, shard))
    taken: set[int] = set()
    chosen: list[tuple[int, int]] = []
    while len(chosen) < most:
        i, pull_i = next((rise for rise in rises if rise[0] not in taken), (-1, -np.inf))
        j, pull_j = next((fall for fall in falls if fall[0] not in taken and fall[0] != i), (-1, -np.inf))
        if not pull_i + pull_j > 0:
            break
        chosen.append((i, j))
        taken |= {i, j}
    both = np.array(chosen, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _largest(pulls: tuple[FloatArray, FloatArray], team: Team) -> list[float]:
    """The largest value of either, of all processes, in one message."""
    mine = [float(pull.max(initial=-np.inf)) for pull in pulls]
    return mine if team.size == 1 else team.join(np.array([mine]), [1] * team.size).max(axis=0).tolist()


def _candidates(
    pulls: tuple[FloatArray, FloatArray], k: int, shard: Shard
) -> list[Iterable[tuple[int, float]]]:
    """Ids and values of the ``k`` largest of either, of all samples, largest first; -inf does not count."""
    tops = [largest_first(pull, k, -np.inf) for pull in pulls]
    both = zip(pulls, tops, strict=True)
    if shard.alone:
        return [zip(top.tolist(), pull[top].tolist(), strict=True) for pull, top in both]
    mine = np.full((1, 2, 2, k), -np.inf)  # values and ids, in one message of a known size
    for side, (pull, top) in enumerate(both):
        mine[0, side, :, : len(top)] = pull[top], top + shard.first
    found: list[Iterable[tuple[int, float]]] = []
    for values, ids in shard.team.join(mine, [1] * shard.team.size).transpose(1, 2, 0, 3).reshape(2, 2, -1):
        order = np.lexsort((ids, -values))[:k]
        order = order[values[order] > -np.inf]
        found.append(zip(ids[order].astype(np.int64).tolist(), values[order].tolist(), strict=True))
    return found


def _signs(y: LabelArray) -> FloatArray:
    """Y_i, as a column."""
    return np.where(y == 1, 1.0, -1.0)[:, None]
