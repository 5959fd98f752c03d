"""A model as plain data: dictionaries, lists, strings, numbers and arrays.

Estimators hold objects of this package: a kernel, a status, a trace, a solver. Their states hold plain data
instead, so that programs that store only such data can store a model. skops, for example, then needs trust in
the class of the estimator alone. An object of a class that is not in the table below, such as a kernel of
one's own, stays as it is.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import scipy.sparse as sp

from .. import kernels
from ..engines import Mpi
from ..inner import SOLVERS, InteriorPoint
from ..linear.stream import Stream
from ..methods.decomposition import Decomposition
from ..methods.working_sets import RULES
from ..problems import PROBLEMS
from ..selection.calibration import METHODS as CALIBRATORS
from ..solution import Status, Trace

_KIND = "<multimargin object>"  # the key that tells the state of an object from other dictionaries
_KERNELS = (
    kernels.Linear,
    kernels.RBF,
    kernels.Laplacian,
    kernels.Polynomial,
    kernels.Sigmoid,
    kernels.Precomputed,
    kernels.CallableKernel,
)
_OTHERS = (Decomposition, InteriorPoint, Mpi, Stream, Trace)
_ALL: tuple[type[Any], ...] = (
    *_KERNELS,
    *PROBLEMS.values(),
    *RULES,
    *SOLVERS,
    *CALIBRATORS.values(),
    *_OTHERS,
)
_NAMES = {cls: cls.__name__ for cls in _ALL} | {kernels.Sigmoid: "SigmoidKernel"}  # a calibrator is Sigmoid
CLASSES = {name: cls for cls, name in _NAMES.items()}
_SPARSE = (sp.csr_array, sp.csr_matrix)


def to_plain(value: Any) -> Any:
    """Return an object of this package as a dictionary of plain data, and anything else as it is."""
    cls = type(value)
    if cls is list:
        return [to_plain(part) for part in value]
    if cls is Status:
        return {_KIND: "Status", "name": value.name}
    if cls in _SPARSE:
        parts = value.data, value.indices, value.indptr
        return {_KIND: cls.__name__, "parts": parts, "shape": value.shape}
    if cls not in _NAMES:
        return value
    named = is_dataclass(cls)
    stored = [f.name for f in fields(value) if f.metadata.get("stored", True)] if named else []
    state = {name: getattr(value, name) for name in stored} if named else value.__getstate__()
    return {_KIND: _NAMES[cls]} | {name: to_plain(part) for name, part in state.items()}


def from_plain(value: Any) -> Any:
    """Return the object that ``to_plain`` was given."""
    if type(value) is list:
        return [from_plain(part) for part in value]
    if not isinstance(value, dict) or _KIND not in value:
        return value
    state = {name: from_plain(part) for name, part in value.items() if name != _KIND}
    kind = value[_KIND]
    if kind == "Status":
        return Status[state["name"]]
    for cls in _SPARSE:
        if kind == cls.__name__:
            return cls(state["parts"], shape=state["shape"])
    if kind not in CLASSES:
        raise ValueError(
            f"The stored model has an object of kind {kind!r}, which this version of multimargin does not "
            "know. Load it with the version that stored it."
        )
    cls = CLASSES[kind]
    if is_dataclass(cls):
        return cls(**state)
    made = object.__new__(cls)
    vars(made).update(state)
    return made
