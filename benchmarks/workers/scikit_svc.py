"""scikit-learn's SVC: LIBSVM, one-vs-one, one thread."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.svm import SVC


class Adapter:
    estimator = SVC

    def __init__(self, threads):
        self.threads = threads

    def load(self, split):
        self.split = split

    def fit(self, C, gamma, tol, **options):
        model = self.estimator(C=C, gamma=gamma, tol=tol, **options)
        self.model = model.fit(self.split.X_train, self.split.y_train)

    def predict(self):
        return self.model.predict(self.split.X_test)

    def facts(self):
        return {"support": len(self.model.support_)}

    def coefficients(self):
        """Of two classes; of more it is as many machines as there are pairs."""
        model = self.model
        if len(model.classes_) > 2:
            return {}
        coef = model.dual_coef_
        return {
            "support": model.support_,
            "dual_coef": (coef.toarray() if sp.issparse(coef) else np.asarray(coef)).T,
            "classes": model.classes_,
            "intercept": model.intercept_,
            "machine": "c-svc",
            "bias": "free",
        }
