"""scikit-learn's LinearSVC: LIBLINEAR's linear Crammer-Singer machine, one thread."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from . import scikit_svc


class Adapter(scikit_svc.Adapter):
    def fit(self, C, gamma, tol, **options):
        model = LinearSVC(C=C, tol=tol, multi_class="crammer_singer", random_state=0, **options)
        with warnings.catch_warnings():  # its limit of iterations is its own default
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model = model.fit(self.split.X_train, self.split.y_train)

    def facts(self):
        return {"rounds": int(self.model.n_iter_)}
