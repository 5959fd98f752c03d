"""LIBLINEAR's linear Crammer-Singer machine (-s 4), one thread."""

from __future__ import annotations

import numpy as np
from liblinear.liblinear import parameter, problem
from liblinear.liblinearutil import predict, train


class Adapter:
    def __init__(self, threads):
        self.threads = threads

    def load(self, split):
        self.test = split.X_test.astype(np.float64)
        self.problem = problem(split.y_train.astype(float), split.X_train.astype(np.float64))

    def fit(self, C, gamma, tol, bias=1):
        self.model = train(self.problem, parameter(f"-s 4 -c {C!r} -e {tol!r} -B {bias} -q"))

    def predict(self):
        labels, _, _ = predict([], self.test, self.model, "-q")
        return np.asarray(labels)

    def facts(self):
        return {}

    def coefficients(self):
        """Feature-major in the model, in its own order of classes, down to the last feature in use."""
        model, order = self.model, np.argsort(self.model.get_labels())
        constant = model.bias >= 0
        found = np.ctypeslib.as_array(model.w, (model.nr_feature + constant, model.nr_class))[:, order]
        weights = np.zeros((model.nr_class, self.test.shape[1] + constant))  # the constant feature last
        weights[:, : model.nr_feature] = found[: model.nr_feature].T
        if constant:
            weights[:, -1] = found[-1]
        return {"weights": weights, "classes": np.sort(model.get_labels())}
