"""Models along C, each from the one before, with the leave-one-out error that each of them bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engines.cpu import LastingEngine
from ..engines.diagonal import kernel_diagonal
from ..selection.fits import Fitted, KernelFits
from ..selection.leave_one_out import LeaveOneOut, leave_one_out
from ..selection.plots import plot_path
from ..selection.tables import text_table
from ..system.shard import Shard
from ..system.team import SOLO
from ..system.typing import FloatArray
from .base import Rows
from .grid import FoldMaker, cost_values
from .kernel_search import fitted_model
from .kernel_svc import KernelSVC
from .samples import training_data


@dataclass(frozen=True)
class RegularizationPath:
    """What :func:`regularization_path` returns: an entry per C, in ascending order.

    Attributes
    ----------
    Cs : ndarray of shape (k,)
        The costs.
    models : list of KernelSVC
        The fitted models, each certified to ``tol``.
    leave_one_out : list of LeaveOneOut
        For each model, which rows are certainly predicted right or wrong by a model that is not trained on
        them, and bounds of the error.
    seconds : ndarray of shape (k,)
        Seconds of each fit.
    """

    Cs: FloatArray
    models: list[KernelSVC]
    leave_one_out: list[LeaveOneOut]
    seconds: FloatArray

    @property
    def gaps(self) -> FloatArray:
        """The duality gap of each model."""
        return np.array([model.duality_gap_ for model in self.models])

    @property
    def n_support(self) -> np.ndarray:
        """The number of support vectors of each model."""
        return np.array([len(model.support_) for model in self.models])

    @property
    def lower(self) -> FloatArray:
        """The least leave-one-out error that is possible at each C."""
        return np.array([found.lower for found in self.leave_one_out])

    @property
    def upper(self) -> FloatArray:
        """The largest leave-one-out error that is possible at each C."""
        return np.array([found.upper for found in self.leave_one_out])

    def __str__(self) -> str:
        heads = ("C", "support vectors", "gap", "least error", "largest error", "seconds")
        columns = self.Cs, self.n_support, self.gaps, self.lower, self.upper, self.seconds
        return text_table(heads, list(zip(*columns, strict=True)))

    def plot(self, ax: Any = None) -> Any:
        """Draw the bounds of the leave-one-out error and the share of support vectors over C.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None
            Where to draw; None makes a figure. It needs the extra ``multimargin[plot]``.

        Returns
        -------
        ax : matplotlib.axes.Axes
            The axes.
        """
        share = self.n_support / len(self.leave_one_out[0].right)
        return plot_path(self.Cs, self.lower, self.upper, share, ax)


def regularization_path(
    X: Any, y: Any, machine: str = "crammer-singer", *, Cs: Any = 9, sample_weight: Any = None, **options: Any
) -> RegularizationPath:
    """Fit a machine at several C, from small to large, on one cache of kernel rows.

    Each fit starts from the one before, and is certified to the same ``tol`` as a fit alone. If no row is at
    its bound, the solution is that of every larger C, and only the proof is left. The leave-one-out error
    takes no further fit: it is exact for rows that are no support vectors, and for the others there are
    bounds of the margins, except with a free bias. It is that with the kernel and the costs of this fit:
    ``gamma="scale"`` and balanced weights are those of all rows.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training data, as for :class:`KernelSVC`.
    y : array-like of shape (n_samples,)
        Labels of any kind.
    machine : str, default="crammer-singer"
        The machine.
    Cs : int or sequence of float, default=9
        The costs; a number k stands for k values from 0.1 to 1000, evenly on a logarithmic scale.
    sample_weight : array-like of shape (n_samples,) or None
        Factors of C for each sample, and its weight in errors.
    **options
        Parameters of :class:`KernelSVC`: kernel, gamma, degree, coef0, bias, tol, cache_size, class_weight,
        n_threads, dtype, random_state.

    Returns
    -------
    path : RegularizationPath
        Models, gaps and errors; ``print(path)`` shows them as a table.

    Examples
    --------
    >>> from multimargin import regularization_path
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = regularization_path(X, y, Cs=[0.1, 1, 10])
    >>> [model.C for model in path.models]
    [0.1, 1.0, 10.0]
    >>> bool((path.lower <= path.upper).all())
    True
    """
    costs = sorted(cost_values(Cs))
    allowed = {"kernel", "gamma", "degree", "coef0", "bias", "tol", "cache_size", "class_weight"}
    if unknown := set(options) - (allowed | {"n_threads", "dtype", "random_state"}):
        raise TypeError(f"regularization_path does not know {', '.join(map(repr, sorted(unknown)))}.")
    first = KernelSVC(machine, costs[0], **options)
    first._check_params()
    X, y = training_data(first, first._make_kernel(), X, y)
    rows = first._rows(y, sample_weight)
    maker = FoldMaker(rows, first.class_weight, len(y), costs)
    whole = replace(maker.whole(), test=np.arange(len(rows.y)))
    task, method = first._task(X, rows, Shard(len(y)), costs[0] * whole.unit), first._method()
    engine_options = first._engine_options(method, len(rows.y), first._seed())
    fits = KernelFits(task, costs[-1] * whole.unit, [whole], method, engine_options, LastingEngine)
    models, errors, seconds = [], [], []
    factors = maker.factors(np.ones(len(rows.y), dtype=bool))
    diagonal = kernel_diagonal(task.kernel, task.X, SOLO) + task.offset
    for C in costs:
        fitted = fits.fit(C, 0)
        svc = KernelSVC(machine, C, **options)
        models.append(fitted_model(svc, first, fitted, rows, len(y), factors))
        errors.append(_errors(fitted, diagonal, rows, engine_options.free_bias))
        seconds.append(fitted.seconds)
    return RegularizationPath(np.array(costs), models, errors, np.array(seconds))


def _errors(fitted: Fitted, diagonal: FloatArray, rows: Rows, free_bias: bool) -> LeaveOneOut:
    problem, alpha = fitted.task.problem, fitted.solution.alpha
    return leave_one_out(problem, alpha, fitted.scores, diagonal, rows.y, rows.weight, free_bias)
