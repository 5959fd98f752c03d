"""What a page is about: the facts of a model, gathered by its estimator. None is what is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..solution import Status, Trace
from ..system.typing import FloatArray, IntArray


@dataclass(frozen=True)
class Certificate:
    """How far from the optimum a fit ended."""

    status: Status
    violation: float
    tol: float
    primal: float
    dual: float
    gap: float
    semidefinite: bool  # whether the kernel is positive semidefinite by its form, which the proof needs
    unit: float = 1.0  # cost of the objective per unit of loss: C


@dataclass(frozen=True)
class Support:
    """The support vectors of every class."""

    total: IntArray  # (m,)
    bounded: IntArray | None = None  # (m,): those with a dual variable on its bound
    rows: IntArray | None = None  # (m,): training rows of positive weight


@dataclass(frozen=True)
class Suspect:
    """A training row whose label is in doubt."""

    row: int  # its number in the training data
    label: int  # number of its class
    distribution: FloatArray  # (m,) of the classes, by the dual
    loss: float  # for unit cost
    at: int  # its place among the support vectors


@dataclass(frozen=True)
class Weights:
    """Weights of a linear machine."""

    coef: Any  # (m, d), or (1, d) for two classes; dense or sparse
    intercept: FloatArray


@dataclass(frozen=True)
class Judged:
    """Data that the model was judged on."""

    X: Any
    y: np.ndarray  # labels as given
    scores: FloatArray  # (n, m), or (n,) for two classes
    predicted: np.ndarray  # numbers of classes
    seconds: float  # that the scores took


@dataclass(frozen=True)
class Grid:
    """A search over C and gamma."""

    results: Mapping[str, Any]  # ``cv_results_``
    score: str  # the name of the score that decides, as in the keys of ``results``
    metric: str  # what a reader calls it
    best: int | None
    folds: int
    interrupted: bool


@dataclass(frozen=True)
class Subject:
    """A model and everything that a page says about it."""

    name: str  # of the estimator
    title: str
    params: Mapping[str, Any]
    defaults: Mapping[str, Any]
    classes: np.ndarray
    machine: str
    kernel: str | None  # in words; None for a linear machine
    facts: Sequence[tuple[str, str]] = ()  # about data and types
    feature_names: Sequence[str] | None = None
    certificate: Certificate | None = None
    trace: Trace | None = None
    support: Support | None = None
    samples: Any = None  # the support vectors, in any form
    suspects: Sequence[Suspect] | None = None
    weights: Weights | None = None
    grid: Grid | None = None
    judged: Judged | None = None
    image_shape: tuple[int, ...] | str | None = "auto"
    missing: Mapping[str, str] = field(default_factory=dict)  # why something is not known, by section
