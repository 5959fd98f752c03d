"""Ours: KernelSVC."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import multimargin
from multimargin import KernelSVC


class Adapter:
    def __init__(self, threads):
        self.threads = threads

    def load(self, split):
        self.split, self.model = split, None

    def make(self, C, gamma, tol, **options):
        return KernelSVC(C=C, gamma=gamma, tol=tol, n_threads=self.threads, **options)

    def fit(self, C, gamma, tol, **options):
        self.model = None  # the model before frees its memory outside of this fit's peak
        model = self.make(C, gamma, tol, **options)
        with warnings.catch_warnings():  # whether it converged is said in facts
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model = model.fit(self.split.X_train, self.split.y_train)

    def predict(self):
        return self.model.predict(self.split.X_test)

    def facts(self):
        """What tells two versions apart whatever the clock says."""
        trace, last = self.model.trace_, self.model.trace_[-1]
        return {
            "package": multimargin.__file__,
            "numpy": np.__version__,
            "converged": bool(self.model.status_.converged),
            "dual": float(self.model.dual_objective_),
            "support": len(self.model.support_),
            "rounds": int(self.model.n_iter_),
            "updates": int(np.sum(trace["inner"])),
            "rows": int(last.rows),
            "hits": int(last.hits),
            "evictions": int(last.evictions),
            "working_set": int(np.max(trace["working_set"])),
            "info": {key: plain(value) for key, value in trace.info.items()},
        }

    def coefficients(self):
        model = self.model
        return {
            "support": model.support_,
            "dual_coef": model.dual_coef_,
            "classes": model.classes_,
            "intercept": getattr(model, "_class_bias", model.intercept_),  # one per class
            "machine": model.machine,
            "bias": getattr(model, "bias_", model.bias),  # versions before bias_ had no "auto"
        }


def plain(value):
    """A fact of the trace as JSON can hold it."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (int, float, bool, type(None))) else str(value)
