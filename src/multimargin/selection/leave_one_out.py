"""Leave-one-out error from one fit: exact for samples without weight, bounds for the others.

Let α solve the dual of ``ARCHITECTURE.md`` and β the same dual without sample i. Both are solutions of
variational inequalities. Take each at the other's point and add them up. With δ_j = β_j - α_j for j ≠ i,
and d = Σ_j K_ij δ_j what the others' change adds to the scores of sample i,

    ⟨δ, (K + R) δ⟩ ≤ ⟨d, α_i⟩.

R ≥ 0, and |d|² ≤ K_ii ⟨δ, K δ⟩ by the inequality of Cauchy and Schwarz in the space of the kernel. So

    |d|² ≤ K_ii ⟨d, α_i⟩,

and d is in the ball that has the segment from 0 to K_ii α_i as a diameter. The scores of sample i without
itself are s_i - K_ii α_i + d. Hence the margin of its class y over a class r, which is s_iy - s_ir with it,
is without it in

    s_iy - s_ir - ½ K_ii (α_iy - α_ir) ± ½ K_ii √2 |α_i|.

If the classes are not coupled (one-vs-rest), the same holds for each class alone: d_r is between 0 and K_ii
α_ir. With a single class this is the bound of Jaakkola and Haussler (1999). A sample with α_i = 0 does not
change the optimum: its margins are exact.

All this needs the same feasible set with and without the sample. A free bias couples the samples (Σ_i α_i =
0): then nothing is said of support vectors, and the upper bound is Vapnik's, their share. The scores are
those of a point that meets the optimality conditions to ``tol``, and the bounds are exact to the same
tolerance. For the offset of a regularised bias, K is the kernel with the offset.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..problems import Problem
from ..system.typing import FloatArray, LabelArray


@dataclass(frozen=True)
class LeaveOneOut:
    """What one fit says of the predictions of its samples by machines that were not trained on them.

    Attributes
    ----------
    right : ndarray of bool
        Samples that are certainly predicted right.
    wrong : ndarray of bool
        Samples that are certainly predicted wrong. What is neither is undecided.
    exact : ndarray of bool
        Samples without weight, which are always decided.
    weight : ndarray
        Sample weights.
    """

    right: np.ndarray
    wrong: np.ndarray
    exact: np.ndarray
    weight: FloatArray

    @property
    def lower(self) -> float:
        """The least error that is possible."""
        return float(self.weight @ self.wrong / self.weight.sum())

    @property
    def upper(self) -> float:
        """The largest error that is possible."""
        return float(1.0 - self.weight @ self.right / self.weight.sum())


def leave_one_out(
    problem: Problem,
    alpha: FloatArray,
    scores: FloatArray,
    diagonal: FloatArray,
    y: LabelArray,
    weight: FloatArray,
    free_bias: bool,
) -> LeaveOneOut:
    """Bounds for every sample, from the scores that the machine gives its own samples.

    Parameters
    ----------
    problem : Problem
        The machine.
    alpha, scores : ndarray of shape (n, m)
        Coefficients, and scores with the bias.
    diagonal : ndarray of shape (n,)
        K(x_i, x_i), with the offset of a regularised bias.
    y, weight : ndarray of shape (n,)
        Labels 0..m-1, and sample weights.
    free_bias : bool
        Whether the bias is free.
    """
    exact = np.asarray(~alpha.any(axis=1))
    if alpha.shape[1] == 1:  # c-svc: one score, positive for the second class
        side = np.where(y == 1, 1.0, -1.0)
        low = high = (side * scores[:, 0])[:, None]
    else:
        low, high = _margins(problem, alpha, scores, diagonal, y)
    right, wrong = np.asarray((low > 0).all(axis=1)), np.asarray((high < 0).any(axis=1))
    if free_bias:
        right, wrong = np.asarray(right & exact), np.asarray(wrong & exact)
    return LeaveOneOut(right, wrong, exact, weight)


def _margins(
    problem: Problem, alpha: FloatArray, scores: FloatArray, diagonal: FloatArray, y: LabelArray
) -> tuple[FloatArray, FloatArray]:
    """Least and largest margin of each sample's class over every other one, without the sample."""
    n, m = alpha.shape
    every, K = np.arange(n), diagonal[:, None]
    own_score, own_alpha = scores[every, y][:, None], alpha[every, y][:, None]
    with_it, half = own_score - scores, 0.5 * K * (own_alpha - alpha)
    reach = 0.5 * K * np.sqrt(2.0) * np.linalg.norm(alpha, axis=1, keepdims=True)
    if not problem.coupled:  # each score moves by K α_r at most: both halves of the sum
        reach = np.minimum(reach, 0.5 * K * (np.abs(own_alpha) + np.abs(alpha)))
    others = np.ones((n, m), dtype=bool)
    others[every, y] = False
    low, high = with_it - half - reach, with_it - half + reach
    return low[others].reshape(n, m - 1), high[others].reshape(n, m - 1)
