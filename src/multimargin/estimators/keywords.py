"""Keywords of scikit-learn's ``SVC`` and ``LinearSVC`` that our estimators do not take.

The error for such a keyword says what to write instead. Any other unknown keyword gets Python's own error, or
scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

_INSTEAD = {
    "probability": "Probabilities come from sklearn.calibration.CalibratedClassifierCV({name}(...)).",
    "break_ties": "predict is always the class with the largest decision_function, so there are no ties to "
    "break: leave it out.",
    "decision_function_shape": "decision_function always has one score per class, and one score in all for "
    "two classes: leave it out. Scores of pairs of classes come from "
    "sklearn.multiclass.OneVsOneClassifier({name}(...)).",
    "penalty": "The weights always have a squared (l2) penalty: leave it out.",
    "loss": "The loss belongs to the machine: choose machine='crammer-singer' for a hinge loss, or "
    "machine='msvm2' for a squared one. LinearSVC has a loss.",
    "dual": "The dual is always what is solved: leave it out.",
    "multi_class": "Choose a machine: machine='crammer-singer' is multi_class='crammer_singer', and "
    "machine='one-vs-rest' is multi_class='ovr'.",
}


class ForeignKeywords:
    """Refuses these keywords when an estimator is made and in ``set_params``."""

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        if message := _refusal(cls, parameters):
            raise TypeError(message)
        return super().__new__(cls)

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters of this estimator.

        Parameters
        ----------
        **parameters : dict
            Names and values of the parameters.

        Returns
        -------
        self : estimator
            This estimator.
        """
        if message := _refusal(type(self), parameters):
            raise ValueError(message)
        super().set_params(**parameters)  # type: ignore[misc]
        return self


def _refusal(cls: Any, given: Iterable[str]) -> str | None:
    """Return what to say about the first keyword that the class does not take, if there is one."""
    for keyword in given:
        if keyword in _INSTEAD and keyword not in cls._get_param_names():
            advice = _INSTEAD[keyword].format(name=cls.__name__)
            return f"{cls.__name__} does not take {keyword!r}, a keyword of scikit-learn. {advice}"
    return None
