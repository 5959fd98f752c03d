"""R's kernlab: "spoc-svc" is the Crammer-Singer machine, "kbb-svc" Weston and Watkins'. One thread.

R runs beside this process and takes raw files: float64, by columns. Its own seconds are reported.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np
from scipy.sparse import issparse

PROGRAM = Path(__file__).with_suffix(".R")


class Adapter:
    def __init__(self, threads):
        self.folder = tempfile.TemporaryDirectory(prefix="kernlab-")
        self.process = subprocess.Popen(
            ["Rscript", "--vanilla", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def load(self, split):
        self.classes, self.codes = np.unique(split.y_train, return_inverse=True)
        n, d = split.X_train.shape
        for name, X in (("train", split.X_train), ("test", split.X_test)):
            X = np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64)
            X.ravel(order="F").tofile(self._file(name))
        (self.codes + 1).astype(np.int32).tofile(self._file("labels"))
        paths = [self._file(name) for name in ("train", "labels", "test")]
        self._ask("load", n, split.X_test.shape[0], d, *paths)
        self.n, self.tested = n, split.X_test.shape[0]

    def fit(self, C, gamma, tol, type, cache_size):
        self.type, self.C = type, C
        seconds, cpu = self._ask("fit", type, C, gamma, tol, cache_size)
        return {"seconds": float(seconds), "cpu": float(cpu)}

    def predict(self):
        self._ask("predict", self._file("predicted"))
        return self.classes[np.fromfile(self._file("predicted"), np.int32) - 1]

    def facts(self):
        (support,) = self._ask("support")
        return {"support": int(support)}

    def coefficients(self):
        """alpha_i <= C e_y with rows that sum to zero, as ours."""
        if self.type != "spoc-svc":
            return {}
        self._ask("alpha", self._file("alpha"))
        alpha = np.fromfile(self._file("alpha")).reshape(len(self.classes), self.n).T
        support = np.flatnonzero(alpha.any(axis=1))
        return {"support": support, "dual_coef": alpha[support], "classes": self.classes}

    def _file(self, name):
        return str(Path(self.folder.name) / name)

    def _ask(self, *words):
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if not answer or answer[0] != "ok":
            raise RuntimeError(" ".join(answer) or "R ended; its own words are above")
        return answer[1:]
