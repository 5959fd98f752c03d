"""The verbs of an engine.

An engine holds the state of one fit (alpha, the gradient G, kernel rows) and does all work that grows
with n. The outer loop and the working-set rules only use the verbs below, so they run unchanged wherever
the arrays live: they see sample ids and single numbers, never an array of n × m.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..inner.base import InnerSolver
from ..inner.block import Block
from ..kernels import Kernel
from ..problems import Problem
from ..run.profile import Profile
from ..system.typing import Data, FloatArray, IntArray, LabelArray


class Worst(NamedTuple):
    """The worst samples by some measure."""

    ids: IntArray  # at most k, worst first; only samples above the threshold
    violation: float  # largest stopping measure among the samples examined
    gap: float  # Σ g_i where all samples were examined, else NaN


class Certificate(NamedTuple):
    """Quality of the current point, in float64."""

    violation: float  # largest psi, relative to the margin
    gain: float  # largest g_i / c_i
    primal: float
    dual: float
    gap: float


@dataclass(frozen=True)
class EngineOptions:
    """How an engine may use the machine."""

    n_threads: int = 1
    cache_bytes: int = 200 << 20
    block_share: float = 0.0  # of cache_bytes, kept free for blocks K_WW
    dtype: str = "auto"  # of kernel rows: "auto", "float32" or "float64"
    shrinking: bool = True
    seed: int = 0
    lazy_blocks: bool = False  # whether rows of kept blocks may be left to be computed by ``solve``


@dataclass
class Task:
    """What is to be solved: data, labels 0..m-1, one cost a sample, a kernel whose values get ``offset``."""

    problem: Problem
    kernel: Kernel
    X: Data
    y: LabelArray
    C: FloatArray
    offset: float = 0.0
    alpha: FloatArray | None = None  # feasible start; None is zero
    bias: FloatArray | None = None  # where a free bias starts; None is zero

    @property
    def m(self) -> int:
        """Width of alpha."""
        return self.problem.columns


@dataclass
class Counts:
    """Work done so far."""

    rows: int = 0  # kernel rows computed (n values each)
    hits: int = 0
    evictions: int = 0


class Engine(ABC):
    """The state of one fit, and the verbs that read and change it."""

    name: ClassVar[str]
    n: int
    m: int
    task: Task
    problem: Problem
    diagonal: FloatArray  # K_ii and the machine's ridge, in float64
    bias: FloatArray  # (m,) added to every row of G
    profile: Profile
    dual: float  # dual objective of the current point
    work: int  # of inner solvers so far, in the time of a multiply-add
    until: float = math.inf  # time.perf_counter() at which inner solvers should end
    violators: int  # samples above the threshold in the last call of ``worst``

    @abstractmethod
    def __init__(self, task: Task, options: EngineOptions) -> None: ...

    @abstractmethod
    def running(self) -> AbstractContextManager[Any]:
        """Context in which the verbs run: thread limits and the like."""

    # -- look ------------------------------------------------------------------------------------
    @abstractmethod
    def worst(
        self,
        k: int,
        *,
        rank: str = "psi",
        stop: str = "psi",
        above: float = 0.0,
        among: str = "all",
        even: bool = False,
    ) -> Worst:
        """The ``k`` samples with the largest ``rank`` whose ``stop`` measure exceeds ``above``.

        Measures are "psi" (violation) and "gain" (gap). ``among`` is "all", "support", "rest" or "near":
        with shrinking an engine may then examine fewer than all samples, as long as those show a violation
        above ``above``. With ``even``, as many samples of every class as there are, up to its share of ``k``.
        """

    @property
    @abstractmethod
    def support(self) -> IntArray:
        """Ids of the samples with alpha ≠ 0, ascending."""

    @abstractmethod
    def unsettled(self, ids: IntArray, reach: float) -> IntArray:
        """Those of ``ids`` that are off their bounds, or less than ``reach`` from leaving them."""

    @abstractmethod
    def groups(self, ids: IntArray) -> np.ndarray:
        """0 free, 1 zero, 2 bounded, for each of ``ids``."""

    @abstractmethod
    def largest_block(self) -> int:
        """The largest working set whose kernel block fits the memory budget."""

    @abstractmethod
    def workspace_bytes(self) -> int:
        """Memory for what a solver needs beside the kernel."""

    @abstractmethod
    def column(self, i: int) -> FloatArray:
        """Kernel values of sample ``i`` against all, in float64."""

    @abstractmethod
    def counts(self) -> Counts:
        """Work done so far."""

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """Facts for the trace: precision, threads, cache rows."""

    # -- move ------------------------------------------------------------------------------------
    @abstractmethod
    def block(self, W: IntArray, keep: bool = False) -> Block:
        """The subproblem of ``W``: copies of its rows and its kernel block.

        With ``keep`` the next working set will have most of these samples again: the engine may then keep the
        kernel block, and may add samples of the blocks before.
        """

    @abstractmethod
    def solve(self, inner: InnerSolver, block: Block, eps: float) -> int:
        """Solve the block in place; return the inner iterations."""

    @abstractmethod
    def update(self, block: Block) -> bool:
        """Take over a solved block: alpha, G, dual. Returns whether any sample moved.

        Kernel rows are computed only of samples that did.
        """

    @abstractmethod
    def place(self, alpha: FloatArray) -> None:
        """Take over ``alpha`` of all samples; G and the dual in float64."""

    @abstractmethod
    def sums(self) -> FloatArray:
        """Σ_i α_i, one number a class."""

    @property
    def intercept(self) -> FloatArray:
        """What a model adds to its scores: the bias, and what the constant in the kernel stands for."""
        return self.bias + self.task.offset * self.sums()

    @abstractmethod
    def shift(self, change: FloatArray) -> None:
        """Add ``change`` (m,) to the bias, and so to every row of G."""

    @abstractmethod
    def centre(self) -> None:
        """Give a balanced problem the bias at which its largest violation is the smallest."""

    @abstractmethod
    def pairs(self, most: int, second_order: bool = False) -> tuple[IntArray, IntArray]:
        """Samples of a balanced problem to move up and down: its steepest feasible direction.

        With ``second_order`` the steepest pair, and those that gain most in a pair with one of the two.
        """

    @abstractmethod
    def move(self, alpha: FloatArray) -> bool:
        """Take over ``alpha`` of all samples if its dual, in float64, is lower. Returns whether it was."""

    # -- certify ---------------------------------------------------------------------------------
    @abstractmethod
    def prove(self) -> Certificate:
        """Recompute G and the dual from alpha alone, in float64, and measure all samples."""

    @abstractmethod
    def certificate(self) -> Certificate:
        """Measure all samples with G as it is."""

    @abstractmethod
    def result(self) -> tuple[FloatArray, FloatArray]:
        """The coefficients alpha and the scores S, both (n, m)."""

    # -- predict ---------------------------------------------------------------------------------
    @classmethod
    @abstractmethod
    def scores(cls, kernel: Kernel, support: Any, coef: FloatArray, X: Data, *, n_threads: int) -> FloatArray:
        """Σ_i K(x, sv_i) coef_i for every row of ``X``, in blocks of bounded memory."""
