"""scikit-learn's LinearSVC, one thread: LIBLINEAR's linear Crammer-Singer machine, or one-vs-rest."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from . import scikit_svc


class Adapter(scikit_svc.Adapter):
    def fit(self, C, gamma, tol, multi_class="crammer_singer", **options):
        model = LinearSVC(C=C, tol=tol, multi_class=multi_class, random_state=0, **options)
        with warnings.catch_warnings():  # its limit of iterations is its own default
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model = model.fit(self.split.X_train, self.split.y_train)

    def facts(self):
        return {"rounds": int(np.max(self.model.n_iter_))}

    def coefficients(self):
        """The constant feature last; of two classes it keeps the difference only."""
        model = self.model
        if len(model.classes_) == 2:
            return {}
        weights = np.column_stack([model.coef_, model.intercept_]) if model.fit_intercept else model.coef_
        return {"weights": weights, "classes": model.classes_}
