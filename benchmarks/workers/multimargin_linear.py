"""Ours: LinearSVC, without intercept."""

from __future__ import annotations

from multimargin import LinearSVC

from . import multimargin_kernel


class Adapter(multimargin_kernel.Adapter):
    def make(self, C, gamma, tol, **options):
        return LinearSVC(C=C, tol=tol, fit_intercept=False, n_threads=self.threads, **options)

    def coefficients(self):
        model = self.model
        return {
            "support": model.support_,
            "dual_coef": model.dual_coef_.toarray(),
            "classes": model.classes_,
            "machine": f"squared-{model.machine}" if model.loss == "squared_hinge" else model.machine,
        }
