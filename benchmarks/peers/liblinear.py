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

    def fit(self, C, gamma, tol):
        self.model = train(self.problem, parameter(f"-s 4 -c {C!r} -e {tol!r} -B 1 -q"))

    def predict(self):
        labels, _, _ = predict([], self.test, self.model, "-q")
        return np.asarray(labels)

    def facts(self):
        return {}

    def coefficients(self):
        return {}
