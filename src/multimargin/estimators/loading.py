"""Models from files: ``multimargin.load``. What a file says is checked before it becomes a model."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import model_selection

from ..files import archive
from ..files.scaling import KINDS, Scaling
from ..files.tree import decode
from ..kernels import CallableKernel, Kernel
from ..run.sealed_file import MADE_UP_ERRORS
from ..selection.calibration import Isotonic, Sigmoid, Temperature
from .cross_validation import CrossValidation
from .fold_model import find_scorers
from .kernel_svc import KernelSVC
from .kernel_svc_cv import KernelSVCCV
from .linear_svc import LinearSVC
from .linear_svc_cv import LinearSVCCV
from .scaled import scaled_pipeline
from .states import from_plain
from .storing import SPLITTER, SPLITTERS
from .validation import check_integer

_SEARCHES: dict[type[Any], str] = {KernelSVCCV: KernelSVC.__name__, LinearSVCCV: LinearSVC.__name__}
_ESTIMATORS: dict[str, type[Any]] = {cls.__name__: cls for cls in (KernelSVC, LinearSVC, *_SEARCHES)}
_EXPANSION = 64  # how many times larger than the file its short forms of arrays may become
_ROOM = 1 << 20  # bytes, beside that


class _MalformedError(Exception):
    """Parts of a model that do not fit each other."""


def load(path: str | os.PathLike[str], *, mmap: bool = False, check: bool = True) -> Any:
    """Read a model that ``save`` has written.

    Nothing in the file is executed, so a file of unknown origin can be read.

    Parameters
    ----------
    path : path
        The file.
    mmap : bool, default=False
        Whether support vectors and coefficients stay in the file, which is mapped into memory. Then a large
        model is there at once, processes that use the same file share its memory, and arrays are read-only.
    check : bool, default=True
        Whether the checksums of all arrays are compared with their content, which reads the whole file.

    Returns
    -------
    model : KernelSVC, LinearSVC, KernelSVCCV, LinearSVCCV or Pipeline
        The fitted estimator. If a scaling was stored, a pipeline of the steps "scaling" and "model".

    Raises
    ------
    ValueError
        If the file is damaged, incomplete, of a later version, or no model file.

    Examples
    --------
    >>> import os, tempfile
    >>> import multimargin
    >>> path = os.path.join(tempfile.mkdtemp(), "up.mm")
    >>> multimargin.LinearSVC().fit([[0.0], [1.0]], ["down", "up"]).save(path)
    >>> multimargin.load(path, mmap=True).predict([[2.0]])
    array(['up'], dtype='<U4')
    """
    document, arrays, size = archive.read(path, mmap=mmap, check=check)
    try:
        tree = {name: document[name] for name in ("estimator", "state")}
        tree["scaling"] = document.get("scaling")
        found = decode(tree, arrays, _EXPANSION * size + _ROOM)
        model = _restored(found["estimator"], found["state"])
        _check(model)
        scaling = _scaling(found["scaling"], model)
    except RecursionError:
        archive.refuse(path, "its content is not that of a model (it is nested too deeply)")
    except (_MalformedError, *MADE_UP_ERRORS) as error:
        archive.refuse(path, f"its content is not that of a model ({str(error).rstrip('.')})")
    return model if scaling is None else scaled_pipeline(scaling, model)


def _restored(name: str, state: dict[str, Any]) -> Any:
    if name not in _ESTIMATORS:
        raise _MalformedError(f"an estimator {name!r} is not known here")
    cls = _ESTIMATORS[name]
    model: Any = object.__new__(cls)
    if cls not in _SEARCHES:
        model.__setstate__(state)
        return model
    if "best_estimator_" in state:
        state["best_estimator_"] = _restored(_SEARCHES[cls], state["best_estimator_"])
    if "calibrator_" in state:
        state["calibrator_"] = from_plain(state["calibrator_"])
    if isinstance(state.get("cv"), dict):
        state["cv"] = _splitter(state["cv"])
    model.__setstate__(state)
    scorers = find_scorers(model, model.scoring)
    model.scorer_ = scorers["score"] if list(scorers) == ["score"] else scorers
    return model


def _scaling(stored: dict[str, Any] | None, model: Any) -> Scaling | None:
    if stored is None:
        return None
    kind, offset, factor = (stored[name] for name in ("kind", "offset", "factor"))
    _demand(kind in KINDS and (kind == "unit") == (factor is None), "the scaling")
    for part in (offset, factor):
        _demand(part is None or _is_finite(part, (model.n_features_in_,)), "the scaling")
    return Scaling(kind, offset, factor)


def _splitter(stored: dict[str, Any]) -> Any:
    name = stored.get(SPLITTER)
    if name not in SPLITTERS:
        raise _MalformedError(f"a splitter {name!r} is not known here")
    return getattr(model_selection, name)(**stored["parameters"])


# -- what a model must be ----------------------------------------------------------------------------------
def _check(model: Any) -> None:
    """Raise unless the parts of a model fit each other, so that prediction stays within its arrays."""
    model.get_params(deep=False)  # AttributeError if a parameter is missing
    if model.n_threads is not None:
        check_integer("n_threads", model.n_threads, 1)
    classes, d = model.classes_, int(model.n_features_in_)
    _demand(isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) >= 2, "classes_")
    if isinstance(model, CrossValidation):
        if not hasattr(model, "best_estimator_"):
            return
        best = model.best_estimator_
        _demand(len(best.classes_) == len(classes) and best.n_features_in_ == d, "best_estimator_")
        _demand(_is_calibrator(model.calibrator_, len(classes)), "calibrator_")
        _check(best)
        return
    outputs = 1 if len(classes) == 2 else len(classes)
    _demand(_is_finite(model.intercept_, (outputs,)), "intercept_")
    if isinstance(model, LinearSVC):
        coef = model.coef_
        if sp.issparse(coef):
            coef.check_format(full_check=True)
            _demand(coef.shape == (outputs, d) and np.isfinite(coef.data).all(), "coef_")
        else:
            _demand(_is_finite(coef, (outputs, d)), "coef_")
        return
    _check_kernel_machine(model, len(classes), d)


def _check_kernel_machine(model: Any, m: int, d: int) -> None:
    kernel, support, count = model._kernel, model._support, len(model.support_)
    _demand(isinstance(kernel, Kernel) and not isinstance(kernel, CallableKernel), "the kernel")
    _demand(not isinstance(getattr(kernel, "gamma", 1.0), str), "gamma")
    columns = 1 if model.machine == "c-svc" else m
    _demand(_is_finite(model.dual_coef_, (count, columns)), "dual_coef_")
    _demand(_are_row_numbers(model.support_, model._rows_fitted), "support_")
    if kernel.pairwise:
        _demand(_are_row_numbers(support, d) and len(support) == count, "the support vectors")
    elif sp.issparse(support):
        support.check_format(full_check=True)
        _demand(support.shape == (count, d) and np.isfinite(support.data).all(), "the support vectors")
    else:
        _demand(isinstance(support, np.ndarray) and support.shape == (count, d), "the support vectors")
        _demand(support.dtype.kind in "biuf" and np.isfinite(support).all(), "the support vectors")
    rows = len(model._kept)
    _demand(_are_row_numbers(model._kept, model._rows_fitted), "the training rows")
    _demand(model._labels.shape == model._costs.shape == (rows,), "the training rows")
    _demand(model._support_loss.shape == (count,), "the losses")
    _demand(np.isin(model.support_, model._kept).all(), "support_")
    _demand(rows == 0 or 0 <= model._labels.min() <= model._labels.max() < m, "the labels")


def _is_calibrator(found: Any, m: int) -> bool:
    if isinstance(found, Temperature):
        return isinstance(found.temperature, float) and found.temperature > 0
    if isinstance(found, Sigmoid):
        return _is_finite(found.slope, (m,)) and _is_finite(found.shift, (m,))
    if not isinstance(found, Isotonic) or len(found.places) != m or len(found.values) != m:
        return False
    pairs = zip(found.places, found.values, strict=True)
    return all(_is_finite(x, (len(x),)) and _is_finite(y, (len(x),)) and len(x) for x, y in pairs)


def _demand(right: Any, what: str) -> None:
    if not right:
        raise _MalformedError(f"{what} does not fit the rest")


def _is_finite(array: Any, shape: tuple[int, ...]) -> bool:
    """Whether it is an array of finite float64 numbers of this shape."""
    right = isinstance(array, np.ndarray) and array.dtype == np.float64 and array.shape == shape
    return right and bool(np.isfinite(array).all())


def _are_row_numbers(array: Any, rows: int) -> bool:
    """Whether it is an array of different numbers of rows, ascending."""
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "iu":
        return False
    return bool(len(array) == 0 or (array[0] >= 0 and array[-1] < rows and (np.diff(array) > 0).all()))
