"""What a report says about an estimator: its facts, in the form that the pages are made from."""

from __future__ import annotations

import math
import re
import time
from inspect import signature
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import assert_all_finite, check_consistent_length, check_is_fitted, column_or_1d

from ..kernels import RBF, Kernel, Laplacian, Linear, Polynomial
from ..report import Certificate, Grid, Judged, Subject, Support, Suspect, Weights
from ..report.numbers import count, seconds, size
from .base import winners
from .cross_validation import CrossValidation
from .kernel_svc import KernelSVC
from .linear_svc import LinearSVC

MOST_SUSPECTS = 16
_INFO = {  # what a trace knows: its name there, and the reader's
    "solver": "Method",
    "subproblem": "Solver of one sample's problem",
    "engine": "Engine",
    "n_threads": "Threads",
    "row_dtype": "Precision of kernel rows",
    "dtype": "Precision of weights while they changed",
    "kernel_form": "Kernel values computed as",
    "cache_rows": "Kernel rows that fit in the cache",
}


def subject_of(
    model: Any, X: Any, y: Any, title: str | None, image_shape: Any, scaling: Any = None
) -> Subject:
    """Everything that the page of a fitted model says."""
    check_is_fitted(model)
    _check_image_shape(image_shape, model.n_features_in_)
    machine = getattr(model, "best_estimator_", None) if isinstance(model, CrossValidation) else model
    if isinstance(machine, KernelSVC):
        machine._check_has_model()
    judged = _judge(model, machine, X, y, scaling)
    defaults = {name: p.default for name, p in signature(type(model)).parameters.items()}
    common: dict[str, Any] = {
        "name": type(model).__name__,
        "title": str(title) if title is not None else f"Report on a {type(model).__name__}",
        "params": model.get_params(deep=False),
        "defaults": defaults,
        "classes": model.classes_,
        "machine": model.machine if machine is None else machine.machine,
        "feature_names": _names(model),
        "judged": judged,
        "grid": _grid(model) if isinstance(model, CrossValidation) else None,
        "image_shape": image_shape,
    }
    parts = _linear(machine) if isinstance(machine, LinearSVC) else _kernel(machine, model)
    facts = _facts(model, machine, judged)
    if scaling is not None:
        before = scaling.undo(parts["samples"]) if parts.get("samples") is not None else None
        parts |= {} if before is None else {"samples": before}
        shown = "support vectors are shown after it" if scaling.kind == "unit" else "rows are shown before it"
        facts.insert(1, ("Scaling of the data", f"{scaling.kind}; {shown}"))
    missing = {"judged": "No data were given to judge the model on: pass X and y to report."} | parts.pop(
        "missing"
    )
    return Subject(**common, **parts, facts=facts, missing=missing)


def _names(model: Any) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


# -- kernel machines --------------------------------------------------------------------------------------
def _kernel(machine: KernelSVC | None, model: Any) -> dict[str, Any]:
    kernel = model.kernel if isinstance(model.kernel, str) else type(model.kernel).__name__
    kernel = getattr(model.kernel, "__name__", kernel)
    if machine is None:
        said = "The search was asked to fit no model to all rows (refit=False)."
        sections = ("certificate", "trace", "suspects", "support", "samples")
        return {"kernel": kernel, "missing": dict.fromkeys(sections, said)}
    at = np.searchsorted(machine._kept, machine.support_)
    labels, costs = machine._labels[at], machine._costs[at]
    m = len(machine.classes_)
    bounded = machine._problem.group(machine.dual_coef_, labels, costs) == 2
    alone = machine._processes == 1
    support = Support(
        machine.n_support_.astype(np.int64),
        np.bincount(labels[bounded], minlength=m),
        np.bincount(machine._labels, minlength=m) if alone else None,
    )
    missing = {
        "trace": "The model has no trace: it was stored without one.",
        "certificate": "The model has no certificate: it was stored without one.",
        "samples": "The rows themselves are not in the model, because it was given kernel values.",
    }
    return {
        "kernel": kernel,
        "certificate": _certificate(machine, _semidefinite(machine._kernel)),
        "trace": getattr(machine, "trace_", None),
        "support": support,
        "samples": None if machine._kernel.pairwise else machine._support,
        "suspects": _suspects(machine),
        "weights": _kernel_weights(machine),
        "missing": missing,
    }


def _semidefinite(kernel: Kernel) -> bool:
    if isinstance(kernel, Polynomial):
        return float(kernel.coef0) >= 0 and float(kernel.gamma) > 0
    return isinstance(kernel, Linear | RBF | Laplacian)


def _suspects(machine: KernelSVC) -> list[Suspect]:
    rows = machine.suspects(MOST_SUSPECTS)
    at = np.searchsorted(machine.support_, rows)
    labels = machine._labels[np.searchsorted(machine._kept, rows)]
    eta = machine.label_distribution(rows)
    return [
        Suspect(int(row), int(label), shares, float(machine._support_loss[k]), int(k))
        for row, label, shares, k in zip(rows, labels, eta, at, strict=True)
    ]


def _kernel_weights(machine: KernelSVC) -> Weights | None:
    return Weights(machine.coef_, machine.intercept_) if isinstance(machine._kernel, Linear) else None


# -- the linear machine -----------------------------------------------------------------------------------
def _linear(machine: LinearSVC) -> dict[str, Any]:
    stored = "They are not known: the model was stored without its dual, which warm_start or keep_dual keeps."
    streamed = getattr(machine, "_stream", None) is not None
    learnt = "It was trained by partial_fit, which does not keep what this needs."
    missing = {
        "trace": learnt if streamed else "The model has no trace: it was stored without one.",
        "certificate": "There is none: a model trained by partial_fit would need all rows again for it.",
        "support": learnt if streamed else stored,
        "bounded": "How many are bounded is not known: a LinearSVC does not keep the costs of rows.",
        "suspects": "A LinearSVC keeps neither its training rows nor their losses, so it cannot name "
        "suspects. Judge it on the training data instead: the worst mistakes are then the suspects.",
    }
    support = None
    if hasattr(machine, "dual_coef_"):
        own = machine.dual_coef_.tocsr()
        largest = own.max(axis=1).toarray().ravel()
        if own.shape[0] and (largest > 0).all():  # α is positive for the own class alone
            labels = np.asarray(own.argmax(axis=1)).ravel()
            support = Support(np.bincount(labels, minlength=len(machine.classes_)))
        else:
            missing["support"] = (
                f"The model has {count(own.shape[0])} support vectors. Their classes are not known: it does "
                "not keep the labels of its training rows."
            )
    return {
        "kernel": None,
        "certificate": _certificate(machine, True),
        "trace": getattr(machine, "trace_", None),
        "support": support,
        "weights": Weights(machine.coef_, machine.intercept_),
        "missing": missing,
    }


# -- what all have ----------------------------------------------------------------------------------------
def certificate_of(model: Any) -> Certificate | None:
    """The certificate of a model, of a search that of its best machine; None if there is none."""
    machine = getattr(model, "best_estimator_", None) if isinstance(model, CrossValidation) else model
    kernel = getattr(machine, "_kernel", None)
    return _certificate(machine, kernel is None or _semidefinite(kernel))


def _certificate(machine: Any, semidefinite: bool) -> Certificate | None:
    if not hasattr(machine, "duality_gap_"):
        return None
    return Certificate(
        machine.status_,
        float(machine.violation_),
        float(machine.tol),
        float(machine.primal_objective_),
        float(machine.dual_objective_),
        float(machine.duality_gap_),
        semidefinite,
    )


def _judge(model: Any, machine: Any, X: Any, y: Any, scaling: Any) -> Judged | None:
    """Scores of the data given; ``ValueError`` if they cannot be judged."""
    if X is None and y is None:
        return None
    if X is None or y is None:
        raise ValueError("X and y belong together: give both to judge the model on them, or none.")
    if machine is None:
        raise ValueError("The search was fitted with refit=False: it has no model to judge on X and y.")
    labels = column_or_1d(y, warn=True)
    check_consistent_length(X, labels)
    assert_all_finite(labels, input_name="y")
    text = [array.dtype.kind in "OSU" for array in (labels, model.classes_)]
    if text[0] != text[1]:
        kinds = ["text" if one else "numbers" for one in text]
        raise ValueError(f"The labels y are {kinds[0]}, but the model was trained on {kinds[1]}.")
    rows = X if scaling is None else scaling.apply(X if sp.issparse(X) else np.asarray(X))
    start = time.perf_counter()
    scores = model.decision_function(rows)
    spent = time.perf_counter() - start
    predicted = winners(scores, np.arange(len(model.classes_)))
    return Judged(sp.csr_array(X) if sp.issparse(X) else np.asarray(X), labels, scores, predicted, spent)


def _grid(search: CrossValidation) -> Grid:
    single = "mean_test_score" in search.cv_results_
    first = next(key for key in search.cv_results_ if key.startswith("mean_test_"))
    named = str(search.refit) if isinstance(search.refit, str) else first.removeprefix("mean_test_")
    metric = search.scoring if isinstance(search.scoring, str) else named
    return Grid(
        search.cv_results_,
        "score" if single else named,
        "accuracy" if search.scoring is None else metric.replace("_", " "),
        getattr(search, "best_index_", None),
        search.n_splits_,
        bool(search.interrupted_),
    )


def _facts(model: Any, machine: Any, judged: Judged | None) -> list[tuple[str, str]]:
    """Sizes and types of data and arrays, and what the trace knows of the fit."""
    facts = []
    rows = getattr(machine, "_rows_fitted", None)
    shape = f"{count(model.n_features_in_)} features, {count(len(model.classes_))} classes"
    facts += [("Training data", shape if rows is None else f"{count(rows)} rows, {shape}")]
    if isinstance(machine, KernelSVC):
        if not machine._kernel.pairwise:
            facts += [("Support vectors", _array(machine._support))]
        facts += [("Coefficients", _array(machine.dual_coef_))]
        facts += [("Kernel", _rounded(repr(machine._kernel))), ("Bias", machine.bias_)]
    elif machine is not None:
        facts += [("Weights", _array(machine.coef_))]
    facts += [("Labels", "text" if model.classes_.dtype.kind in "OSU" else model.classes_.dtype.name)]
    info = getattr(getattr(machine, "trace_", None), "info", {})
    for name, said in _INFO.items():
        if name in info:
            facts += [(said, count(info[name]) if isinstance(info[name], int) else str(info[name]))]
    if np.isfinite(getattr(model, "temperature_", np.nan)):
        facts += [("Temperature of probabilities", f"{model.temperature_:.4g}")]
    if judged is not None:
        facts += [("Data judged on", _array(judged.X)), ("Time of their scores", seconds(judged.seconds))]
    return facts


def _rounded(text: str) -> str:
    """A text whose long decimals have four significant digits."""
    return re.sub(r"\d+\.\d{4,}(e-?\d+)?", lambda match: f"{float(match[0]):.4g}", text)


def _array(array: Any) -> str:
    """Shape, type, form and memory."""
    shape = " × ".join(count(int(length)) for length in array.shape)
    if sp.issparse(array):
        nbytes = array.data.nbytes + array.indices.nbytes + array.indptr.nbytes
        filled = array.nnz / max(1, math.prod(array.shape))
        return f"{shape}, {array.dtype.name}, sparse ({100 * filled:.2g}% filled), {size(nbytes)}"
    return f"{shape}, {array.dtype.name}, {size(int(array.nbytes))}"


def _check_image_shape(shape: Any, features: int) -> None:
    if shape is None or (isinstance(shape, str) and shape == "auto"):
        return
    right = isinstance(shape, tuple) and all(isinstance(k, int | np.integer) and k > 0 for k in shape)
    right = right and (len(shape) == 2 or (len(shape) == 3 and shape[2] == 3))
    if not right or math.prod(shape) != features:
        raise ValueError(
            "image_shape must be 'auto', None, (height, width) or (height, width, 3) with as many values "
            "as there "
            f"are features ({features}), got {shape!r}."
        )
