"""LIBSVM by its own Python interface; since 3.36 its kernel rows are threaded (OpenMP)."""

from __future__ import annotations

import numpy as np
from libsvm.svm import svm_parameter, svm_problem
from libsvm.svmutil import svm_predict, svm_train

OPTIONS = "-s 0 -t 2 -c {C!r} -g {gamma!r} -e {tol!r} -m {cache_size} -q"


class Adapter:
    def __init__(self, threads):
        self.threads = threads  # given to OpenMP by the environment

    def load(self, split):
        self.test = split.X_test.astype(np.float64)
        self.problem = svm_problem(split.y_train.astype(float), split.X_train.astype(np.float64))

    def fit(self, C, gamma, tol, cache_size):
        options = OPTIONS.format(C=C, gamma=gamma, tol=tol, cache_size=cache_size)
        self.model = svm_train(self.problem, svm_parameter(options))

    def predict(self):
        labels, _, _ = svm_predict([], self.test, self.model, "-q")
        return np.asarray(labels)

    def facts(self):
        return {"support": int(self.model.get_nr_sv())}

    def coefficients(self):
        return {}
