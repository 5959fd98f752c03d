"""The tuning protocol of the papers, as one call."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit
from sklearn.utils import _safe_indexing, check_random_state

from .kernel_svc_cv import KernelSVCCV
from .validation import check_integer

_BETAS = range(-12, 3)  # exponents of 2; C = 1 / β
_GAMMAS = range(-10, 5)
_VALIDATION = 0.3  # of the rows
_MOST_ROWS, _SAMPLED = 10_000, 5_000  # from so many rows on, so many of them are drawn


def papers_protocol(
    X: Any,
    y: Any,
    machine: str = "crammer-singer",
    *,
    most_rows: int = _MOST_ROWS,
    sampled_rows: int = _SAMPLED,
    random_state: Any = 0,
    **options: Any,
) -> KernelSVCCV:
    """Choose C and gamma of an RBF kernel as Niu & Yuan did ("Parallel decomposition algorithm …", §5.1).

    All of 225 points with β = 1/C = 2⁻¹² … 2² and γ = 2⁻¹⁰ … 2⁴ are trained on 70% of the rows, and the
    accuracy on the other 30% decides. From 10,000 rows on, 5,000 of them are drawn at random before.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training data; the papers scale features to [-1, 1] or [0, 1].
    y : array-like of shape (n_samples,)
        Labels of any kind.
    machine : str, default="crammer-singer"
        The machine.
    most_rows, sampled_rows : int
        If there are at least ``most_rows`` rows, ``sampled_rows`` of them are drawn.
    random_state : int, RandomState or None, default=0
        Seed of the draw and of the split.
    **options
        Parameters of :class:`KernelSVCCV`: ``Cs`` and ``gammas`` for a coarser grid, ``refit=False`` for the
        point alone, n_jobs, drop, tol, verbose, ….

    Returns
    -------
    search : KernelSVCCV
        The fitted search; its model was trained on the rows that were drawn. For a model of all rows, fit
        ``KernelSVC(machine, **search.best_params_)``.

    Examples
    --------
    >>> from multimargin import papers_protocol
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> search = papers_protocol(X, y, Cs=[1, 64], gammas=[2**-4, 1])
    >>> sorted(search.best_params_)
    ['C', 'gamma']
    """
    check_integer("most_rows", most_rows, 1)
    check_integer("sampled_rows", sampled_rows, 2)
    rng = check_random_state(random_state)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if n >= most_rows:
        rows = np.sort(rng.permutation(n)[:sampled_rows])
        X, y = _safe_indexing(X, rows), _safe_indexing(y, rows)
    grid = {"Cs": [2.0**-k for k in reversed(_BETAS)], "gammas": [2.0**k for k in _GAMMAS]}
    split = ShuffleSplit(1, test_size=_VALIDATION, random_state=int(rng.randint(2**31)))
    return KernelSVCCV(machine, **(grid | {"cv": split} | options)).fit(X, y)
