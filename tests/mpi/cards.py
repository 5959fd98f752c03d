"""What ranks under mpiexec do in ``test_cards.py``: a fit and a search on GPUs."""

import numpy as np

from multimargin import KernelSVC, KernelSVCCV
from multimargin.engines import Mpi


def problem(n=2000, m=5, d=8):
    """Overlapping classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, m, n)
    return rng.normal(size=(n, d)) + 1.2 * rng.normal(size=(m, d))[y], y


def fits():
    """Coefficients and the gap of a shared fit, and the best point of a search."""
    X, y = problem()
    model = KernelSVC(engine=Mpi(engine="cuda")).fit(X, y)
    search = KernelSVCCV(Cs=[0.5, 5.0], gammas=[0.05, 0.2], engine=Mpi(engine="cuda")).fit(X, y)
    return model.dual_coef_, model.duality_gap_, model.trace_.info["device"], search.best_params_
