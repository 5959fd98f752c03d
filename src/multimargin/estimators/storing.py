"""Models in files: ``save`` of an estimator, ``load``, and exports to other programs.

A file has the same plain data as a pickled state (``states.py``), without the pickle. docs/model-file.md
describes it.
"""

from __future__ import annotations

import inspect
import os
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn import model_selection
from sklearn.utils.validation import check_is_fitted

from ..files import archive
from ..files.tree import Unstorable, encode
from .states import to_plain

# Splitters of scikit-learn whose parameters are all that they are.
SPLITTERS = (
    "GroupKFold",
    "GroupShuffleSplit",
    "KFold",
    "LeaveOneGroupOut",
    "LeaveOneOut",
    "ShuffleSplit",
    "StratifiedGroupKFold",
    "StratifiedKFold",
    "StratifiedShuffleSplit",
    "TimeSeriesSplit",
)
SPLITTER = "<splitter>"  # the key that tells a splitter from other dictionaries


class StoredModel:
    """Gives an estimator ``save``."""

    def save(self, path: str | os.PathLike[str], *, scaling: Any = None) -> None:
        """Write the fitted model to a file, which :func:`multimargin.load` reads.

        The file has data only, no code, and a checksum of every array. It is written whole or not at all: if
        it cannot be written, an older file of that name stays as it was.

        Parameters
        ----------
        path : path
            The file; an older one is replaced.
        scaling : Scaling or None, default=None
            What the training data were scaled by before ``fit``
            (:class:`multimargin.datasets.Scaling`). It is stored too, and ``load`` then returns a pipeline
            that scales new data in the same way.

        Examples
        --------
        >>> import os, tempfile
        >>> import multimargin
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> path = os.path.join(tempfile.mkdtemp(), "iris.mm")
        >>> multimargin.KernelSVC(C=10).fit(X, y).save(path)
        >>> multimargin.load(path).predict(X[:1])
        array([0])
        """
        if hasattr(self, "_check_has_model"):
            self._check_has_model()
        check_is_fitted(self)
        state = stored_state(self)
        tree: dict[str, Any] = {"state": {name: state[name] for name in sorted(state, key=_parameters_first)}}
        if scaling is not None:
            tree["scaling"] = {name: getattr(scaling, name) for name in ("kind", "offset", "factor")}
        try:
            document, arrays = encode(tree)
        except Unstorable as error:
            raise TypeError(f"This {type(self).__name__} cannot be saved: {error}.") from None
        head = {
            "written_by": {"multimargin": version("multimargin"), "numpy": np.__version__},
            "estimator": type(self).__name__,
            "summary": summary(self),
        }
        archive.write(path, head | document, arrays)


def stored_state(model: Any) -> dict[str, Any]:
    """The attributes of an estimator as plain data; those of the best point's machine are a part of them."""
    if hasattr(model, "_check_params") and hasattr(model, "_train"):
        state: dict[str, Any] = model.__getstate__()
        return state
    state = {name: value for name, value in vars(model).items() if name != "scorer_"}
    if "calibrator_" in state:
        state["calibrator_"] = to_plain(state["calibrator_"])
    if "best_estimator_" in state:
        state["best_estimator_"] = stored_state(state["best_estimator_"])
    if type(state.get("cv")).__name__ in SPLITTERS:
        state["cv"] = _splitter(state["cv"])
    return state


def _parameters_first(name: str) -> tuple[bool, str]:
    return name.startswith("_"), name


def _splitter(splitter: Any) -> Any:
    cls = type(splitter)
    if getattr(model_selection, cls.__name__, None) is not cls:
        return splitter  # of a user's own: it will be refused
    names = [name for name in inspect.signature(cls).parameters if hasattr(splitter, name)]
    return {SPLITTER: cls.__name__, "parameters": {name: getattr(splitter, name) for name in names}}


def summary(model: Any) -> dict[str, Any]:
    """What a model is, for people who look into its file and for ``multimargin info``."""
    best = getattr(model, "best_estimator_", model)
    facts: dict[str, Any] = {
        "machine": best.machine,
        "classes": len(model.classes_),
        "features": int(model.n_features_in_),
    }
    if hasattr(best, "_kernel"):
        support = best._support
        sparse = hasattr(support, "indptr")
        facts |= {
            "kernel": repr(best._kernel),
            "support_vectors": len(best.support_),
            "features_type": f"{support.dtype}{' (sparse)' if sparse else ''}",
            "bias": best.bias_,
        }
    for name in ("status_", "n_iter_", "violation_", "primal_objective_", "duality_gap_"):
        if hasattr(best, name):
            value = getattr(best, name)
            facts[name.rstrip("_")] = value.name if name == "status_" else _number(value)
    for name in ("best_score_", "temperature_"):
        if hasattr(model, name):
            facts[name.rstrip("_")] = _number(getattr(model, name))
    return facts


def _number(value: Any) -> Any:
    """A number for JSON, or its name if it is infinite or NaN."""
    number = value if isinstance(value, int) else float(value)
    return number if np.isfinite(number) else repr(number)
