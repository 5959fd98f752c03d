"""What the dual says about the training labels (Crammer & Singer 2001, Sections 3 and 8)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problems.base import Problem
from ..system.typing import FloatArray, IntArray
from .attributes import SupportAttributes
from .validation import check_integer


class LabelNoiseMixin(SupportAttributes):
    """Methods of a fitted machine that judge the labels of its training rows."""

    _costs: FloatArray  # of the training rows whose labels are known
    _problem: Problem
    _support_loss: FloatArray  # of the support vectors, for unit cost

    def label_distribution(self, i: Any) -> FloatArray:
        """Return the distribution over the classes that the dual solution assigns to training row ``i``.

        A row that is not a support vector has all its mass on its label. A support vector has some of it on
        the classes that it is confused with. For Crammer-Singer η_i = e_y - α_i / C_i (their Section 3). For
        the other machines class r ≠ y gets a share of their dual variables β, and the label gets the rest:

        - Weston-Watkins, Lee-Lin-Wahba: β_ir / ((m - 1) C_i);
        - M-SVM²: β_ir / (2 m C_i + Σ β);
        - one-vs-rest: β_ir / (m C_i), after β_iy has been spread evenly over the other classes;
        - c-svc: β_i / C_i.

        Parameters
        ----------
        i : int or array-like of int
            Row number(s) of the training data. A model that several processes have trained knows only its
            support vectors.

        Returns
        -------
        eta : ndarray of shape (m,) or (len(i), m)
            Non-negative, summing to 1.

        Examples
        --------
        >>> from multimargin import KernelSVC
        >>> float(KernelSVC().fit([[0.0], [1.0], [2.0]], [0, 1, 0]).label_distribution(1).sum())
        1.0
        """
        self._check_has_model()
        rows = np.atleast_1d(np.asarray(i))
        if not np.issubdtype(rows.dtype, np.integer):
            raise TypeError(f"i must be a row number or an array of row numbers, got {i!r}.")
        at = np.searchsorted(self._kept, rows)
        if rows.ndim != 1 or (at == len(self._kept)).any() or (self._kept[at] != rows).any():
            known = "training rows of positive weight"
            if self._processes > 1:
                known = "support vectors: a model trained by several processes knows no other labels"
            raise ValueError(f"i must name {known} (there are {len(self._kept)}), got {i!r}.")
        alpha = np.zeros((len(rows), self.dual_coef_.shape[1]))
        where = np.searchsorted(self.support_, rows)
        is_support = np.append(self.support_, -1)[where] == rows
        alpha[is_support] = self.dual_coef_[where[is_support]]
        eta = self._problem.label_distribution(alpha, self._labels[at], self._costs[at])
        return eta[0] if np.ndim(i) == 0 else eta

    def suspects(self, k: int = 10) -> IntArray:
        """Return the training rows that are most likely mislabelled.

        Rows are ranked by their loss for unit cost, and rows of equal loss by the norm of α_i / C_i. Crammer
        & Singer's Section 8 proposes that norm alone, but if every dual variable has its own upper bound,
        many rows have the same norm.

        Parameters
        ----------
        k : int, default=10
            Number of rows.

        Returns
        -------
        rows : ndarray of shape (at most k,)
            Row numbers of support vectors, most suspicious first.

        Examples
        --------
        >>> from multimargin import KernelSVC
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> y[10] = 2
        >>> KernelSVC().fit(X, y).suspects(1)
        array([10])
        """
        self._check_has_model()
        check_integer("k", k, 1)
        costs = self._costs[np.searchsorted(self._kept, self.support_)]
        norms = np.linalg.norm(self.dual_coef_, axis=1) / costs
        order = np.lexsort((-norms, -self._support_loss.round(6)))
        return np.asarray(self.support_[order[: int(k)]])
