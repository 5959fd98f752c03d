"""The engine seam: all that a method or a working-set rule may ask of the machine that does the work.

An engine holds the state of one fit (alpha, the gradient G, kernel rows) and does all work that grows with n.
The arguments and results of its verbs are sample ids, single numbers, and at most one row of alpha for each
sample of a working set or each support vector. So methods and rules run unchanged wherever the arrays live.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from ..inner.base import InnerSolver
from ..inner.block import Aim
from ..kernels import Kernel
from ..problems import Problem
from ..run.profile import Profile
from ..solution import relative_gap
from ..system.team import SOLO, Team
from ..system.typing import Data, FloatArray, IntArray, LabelArray
from .budget import Budget

Value = TypeVar("Value")


class Selection(NamedTuple):
    """The worst samples by some measure."""

    ids: IntArray  # at most k, worst first; only samples above the threshold
    violation: float  # largest stopping measure among the samples examined
    gap: float  # Σ g_i if all samples were examined, else NaN
    above: int  # how many of the samples examined are above the threshold


class Improvement(NamedTuple):
    """What was done for a working set."""

    steps: int  # inner iterations
    moved: bool  # whether any sample moved


class Certificate(NamedTuple):
    """Quality of the current point, in float64."""

    violation: float  # largest psi, relative to the margin
    gain: float  # largest g_i / c_i
    primal: float
    dual: float
    gap: float

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the primal."""
        return relative_gap(self.gap, self.primal)


class Found(NamedTuple):
    """The current point as a model keeps it."""

    ids: IntArray  # the support vectors, ascending
    coef: FloatArray  # (n_SV, m), their rows of alpha
    loss: FloatArray  # (n_SV,), their primal losses for unit cost
    intercept: FloatArray  # (m,), what a model adds to its scores


class Counts(NamedTuple):
    """Work done so far, and the support vectors there are."""

    rows: int  # kernel rows computed (n values each)
    hits: int
    evictions: int
    support: int


@dataclass(frozen=True)
class EngineOptions:
    """How an engine may use the machine."""

    n_threads: int = 1
    cache_bytes: int = 200 << 20
    block_share: float = 0.0  # of cache_bytes, kept free for blocks K_WW
    dtype: str = "auto"  # of kernel rows: "auto", "float32" or "float64"
    shrinking: bool = True
    seed: int = 0
    lazy_blocks: bool = False  # whether the inner solver may ask for rows of growing blocks one by one
    working_set: int | None = None  # samples of the largest working set; None if the rule asks what fits
    inner: InnerSolver | None = None  # whose work space is part of the memory budget
    leap: bool = False  # whether the method asks for leaps
    free_bias: bool = False  # whether a bias is found from the scores of all samples
    tol: float = 1e-3  # that the fit is to reach

    def budget(self, n: int, itemsize: int, temporary_bytes: int, row: int = 0) -> Budget:
        """How the memory of a fit to ``n`` samples is divided; ``ValueError`` if there is too little.

        A kernel row has ``row`` values in this process, or n.
        """
        solver_bytes = 0 if self.inner is None else self.inner.block_bytes(itemsize)
        shares = self.block_share, self.working_set, solver_bytes
        return Budget(self.cache_bytes, n, itemsize, *shares, temporary_bytes, row)


@dataclass
class Task:
    """What is to be solved: data, labels 0..m-1, one cost per sample, a kernel with an ``offset``.

    Each process of the team has a task with the samples that it holds; row numbers are its own.

    A sample that is left out has no weight, is in no working set, and counts nothing in any measure. But its
    row of G is kept, and so are its scores. Engines in one process can leave samples out, but not
    ``ReferenceEngine``.
    """

    problem: Problem
    kernel: Kernel
    X: Data
    y: LabelArray
    C: FloatArray
    offset: float = 0.0
    start: tuple[IntArray, FloatArray] | None = None  # row numbers and feasible rows of alpha; None is zero
    bias: FloatArray | None = None  # start of a free bias; None is zero
    team: Team = SOLO  # who holds the samples
    left_out: np.ndarray | None = None  # mask of samples that take no part; None if there are none

    @property
    def m(self) -> int:
        """Width of alpha."""
        return self.problem.columns

    def alpha(self) -> FloatArray:
        """The start as an array with a row per sample held here, for engines."""
        alpha = np.zeros((len(self.y), self.m))
        if self.start is not None:
            ids, alpha[ids] = self.start
        return alpha


def needs_all(task: Task, engine: str) -> None:
    """Raise ``ValueError`` if the task leaves samples out: for engines that cannot do that."""
    if task.left_out is not None:
        raise ValueError(
            f"The engine {engine!r} cannot leave samples out; use 'cpu' or 'cuda' in one process."
        )


def is_late(deadline: float, team: Team) -> bool:
    """Whether time.perf_counter() has passed the deadline, by the clock of the team's first process."""
    return not math.isinf(deadline) and team.agree(time.perf_counter() >= deadline)


class Engine(ABC):
    """The state of one fit, and the verbs that read and change it."""

    name: ClassVar[str]
    n: int  # samples, of all processes
    m: int  # width of alpha
    problem: Problem
    offset: float  # what is added to every kernel value
    profile: Profile
    team: Team
    deadline: float = math.inf  # time.perf_counter() at which inner solvers should end

    @abstractmethod
    def __init__(self, task: Task, options: EngineOptions) -> None: ...

    @staticmethod
    def memory() -> int | None:
        """Bytes for ``cache_size="auto"`` if the engine has memory of its own; else None."""
        return None

    @property
    @abstractmethod
    def bias(self) -> FloatArray:
        """(m,) added to every row of G."""

    @property
    @abstractmethod
    def dual(self) -> float:
        """Dual objective of the current point."""

    @property
    @abstractmethod
    def total_cost(self) -> float:
        """Σ_i C_i of the costs that are solved with; see ``solved_costs.py``."""

    def agree(self, value: Value) -> Value:
        """What the first process of the team says: of its clock, its callbacks, its random numbers."""
        return self.team.agree(value)

    @abstractmethod
    def running(self) -> AbstractContextManager[Any]:
        """Context in which the verbs run: thread limits and the like."""

    # -- look ------------------------------------------------------------------------------------
    @abstractmethod
    def select(
        self,
        k: int,
        *,
        rank: str = "psi",
        stop: str = "psi",
        above: float = 0.0,
        among: str = "all",
        even: bool = False,
        seen: bool = False,
    ) -> Selection:
        """The ``k`` samples with the largest ``rank`` whose ``stop`` measure exceeds ``above``.

        Measures are "psi" (violation) and "gain" (gap). ``among`` is "all", "support", "rest" or "near". With
        "near" an engine may examine fewer than all samples, as long as those show a violation above
        ``above``. With ``even``, as many samples of every class as there are, up to its share of ``k``.
        ``seen`` says that nothing has changed since all samples were examined.
        """

    @abstractmethod
    def support(self, reach: float = math.inf) -> IntArray:
        """Ids of the samples with alpha ≠ 0, ascending.

        With ``reach``, without those at their bounds that stay there however G changes, up to ``reach``.
        """

    @abstractmethod
    def groups(self, ids: IntArray) -> np.ndarray:
        """0 free, 1 zero, 2 bounded, for each of ``ids``."""

    @abstractmethod
    def pairs(self, most: int, second_order: bool = False) -> tuple[IntArray, IntArray]:
        """Samples of a balanced problem to move up and down: its steepest feasible direction.

        With ``second_order`` the steepest pair, and those that gain most in a pair with one of the two.
        """

    def everyone(self) -> IntArray:
        """Ids of the samples that take part, ascending: all that were not left out."""
        return np.arange(self.n)

    def draw(self, k: int, rng: np.random.Generator) -> IntArray:
        """``k`` different samples (all, if there are fewer) in random order."""
        return rng.permutation(self.everyone())[:k]

    @abstractmethod
    def largest_block(self) -> int:
        """The largest working set whose kernel block fits the memory budget."""

    @property
    def keeps_rows(self) -> bool:
        """Whether a new sample of a working set costs a kernel row, which is kept."""
        return True

    @abstractmethod
    def counts(self) -> Counts:
        """Work done so far."""

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """Facts for the trace: precision, threads, cache rows."""

    # -- move ------------------------------------------------------------------------------------
    @abstractmethod
    def improve(self, W: IntArray, inner: InnerSolver, aim: Aim, keep: bool = False) -> Improvement:
        """Solve the block of ``W`` and take the result over: alpha, G, dual.

        With ``keep`` the next working set will have most of these samples again: the engine may then keep the
        kernel block, and may add samples of the blocks before. If Ctrl-C interrupts it, alpha is what the
        inner solver has reached. G does not belong to it then: ``prove`` or ``zero_sums`` must come next.
        """

    @abstractmethod
    def leap(self, tol: float) -> bool:
        """Solve for all samples at once with an approximate kernel, if that pays now; whether anything moved.

        An engine that has no such method returns False.
        """

    def promote(self, drift: float = 0.0) -> bool:
        """Go on with kernel rows of higher precision, if there is one and ``dtype`` leaves it open.

        Only if the dual, as it was updated step by step, is off by more than the share ``drift``. Returns
        whether rows changed; then G is exact. Called when rounding seems to stop the descent.
        """
        return False

    @abstractmethod
    def raise_costs(self) -> bool:
        """Raise costs that were capped if a sample comes near the cap; whether there is more to solve now."""

    # -- the bias --------------------------------------------------------------------------------
    @abstractmethod
    def sums(self) -> FloatArray:
        """Σ_i α_i, one number per class."""

    @abstractmethod
    def shift(self, change: FloatArray) -> None:
        """Add ``change`` (m,) to the bias, and so to every row of G."""

    @abstractmethod
    def centre(self) -> None:
        """Give a balanced problem the bias at which its largest violation is the smallest."""

    @abstractmethod
    def best_bias(self, most: float = math.inf) -> None:
        """Take the bias of the smallest primal at the current scores, or go ``most`` towards it."""

    @abstractmethod
    def balance(self) -> bool:
        """Make Σ_i α_i = 0 by moving variables off their bounds; False if these have no room for that."""

    @abstractmethod
    def zero_sums(self) -> None:
        """Make Σ_i α_i = 0 from anywhere, G and dual in float64, and take the bias of the smallest primal."""

    # -- certify ---------------------------------------------------------------------------------
    @abstractmethod
    def prove(self) -> Certificate:
        """Recompute G and the dual from alpha alone, in float64, and measure all samples."""

    @abstractmethod
    def certificate(self) -> Certificate:
        """Measure all samples with G as it is."""

    @abstractmethod
    def found(self) -> Found:
        """The support vectors and their coefficients."""

    def retire(self) -> None:  # noqa: B027  (most engines are dropped right away)
        """Give memory back: the fit is over, and nothing but ``samples`` will be asked for."""

    @abstractmethod
    def samples(self, ids: IntArray) -> Data:
        """The rows of X of some samples, whoever holds them; not for matrices of kernel values."""
