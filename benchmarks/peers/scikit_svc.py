"""scikit-learn's SVC: LIBSVM, one-vs-one, one thread."""

from __future__ import annotations

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
        return {}
