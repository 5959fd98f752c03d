"""scikit-learn-intelex's SVC: oneDAL, one-vs-one, threads."""

from __future__ import annotations

import daal4py
from sklearnex.svm import SVC

from . import scikit_svc


class Adapter(scikit_svc.Adapter):
    estimator = SVC

    def __init__(self, threads):
        super().__init__(threads)
        daal4py.daalinit(threads)

    def facts(self):
        """It falls back to scikit-learn's own code in silence if it has none: that must be seen."""
        return super().facts() | {"accelerated": hasattr(self.model, "_onedal_estimator")}
