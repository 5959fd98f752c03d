"""Types of the native module.

Arrays must be C-contiguous and have the dtype shown: nothing is converted, a wrong one is a TypeError.
"""

from collections.abc import Callable
from typing import Any, TypeAlias, final, overload

import numpy as np
from numpy.typing import NDArray

_F64: TypeAlias = NDArray[np.float64]
_Floats: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
_SmallInts: TypeAlias = NDArray[np.uint8] | NDArray[np.int8] | NDArray[np.int16]
_I32: TypeAlias = NDArray[np.int32]
_I64: TypeAlias = NDArray[np.int64]
_Indices: TypeAlias = NDArray[np.int32] | NDArray[np.int64]

# Platform.
def set_blas(sgemm: Any, dgemm: Any) -> None: ...
def set_lapack(dsyrk: Any, dpotrf: Any, dpotri: Any, dpotrs: Any) -> None: ...
def openmp() -> bool: ...
def max_threads() -> int: ...
def end_threads() -> bool: ...
def instruction_set() -> str: ...
def checksum(bytes: NDArray[np.uint8]) -> int: ...

SUMMED_ROWS: int  # at most so many products are summed in single precision
SQUARE_TILE: int  # samples of a tile of square_scores

def integer_simd() -> str: ...
def set_integer_simd(name: str) -> None: ...

# Kernels.
@final
class KernelSpec:
    def __init__(self, kind: str, gamma: float, coef0: float, degree: int, offset: float) -> None: ...

@final
class Samples:
    @property
    def n(self) -> int: ...
    def set_scale(self, scale: _F64) -> None: ...
    def take(self, ids: _I64) -> Samples: ...

def dense_product(X: _Floats) -> Samples: ...
def dense_direct(Xt: _Floats) -> Samples: ...
def integers(X: _SmallInts, scale: float) -> Samples: ...
@overload
def binary(X: NDArray[np.uint8], scale: float) -> Samples: ...
@overload
def binary(indices: _Indices, indptr: _Indices, n: int, d: int, scale: float) -> Samples: ...
def grid_scale(x: _Floats) -> float | None: ...
def grid_range(x: _Floats, scale: float) -> tuple[float, float] | None: ...
def to_grid(x: _Floats, scale: float, out: _SmallInts) -> None: ...
def from_grid(whole: _SmallInts, by: float, divides: bool, out: _Floats) -> None: ...
def sparse(data: _Floats, indices: _Indices, indptr: _Indices, n: int, d: int) -> Samples: ...
def sparse_direct(data: _Floats, indices: _Indices, indptr: _Indices, n: int, d: int) -> Samples: ...
def kernel_block(
    spec: KernelSpec,
    a: Samples,
    a_ids: _I64,
    b: Samples,
    b_begin: int,
    b_end: int,
    out: _Floats,
    out_rows: _I64,
    n_threads: int,
) -> None: ...
def kernel_scores(
    spec: KernelSpec,
    sv: Samples,
    coef: _F64,
    x: Samples,
    x_begin: int,
    x_end: int,
    scores: _F64,
    n_threads: int,
) -> None: ...
def square_scores(
    spec: KernelSpec, x: Samples, coef: _F64, begin: int, end: int, scores: _F64, n_threads: int
) -> None: ...
def kernel_gradient(
    spec: KernelSpec,
    sv: Samples,
    coef: _F64,
    x: Samples,
    ids: _I64,
    base: _F64,
    G: _F64,
    steady: bool,
    n_threads: int,
) -> None: ...
def pair_gradient(
    spec: KernelSpec,
    samples: Samples,
    alpha: _F64,
    start: _F64,
    due: NDArray[np.bool_],
    begin: int,
    end: int,
    base: _F64,
    G: _F64,
    steady: bool,
    n_threads: int,
) -> None: ...

# A machine, by name: violation, gradient, block solvers.
def measure(
    machine: str,
    G: _F64,
    alpha: _F64,
    y: _I32,
    C: _F64,
    ids: _I64 | None,
    psi: _F64,
    gain: _F64,
    n_threads: int,
) -> None: ...
def slack(machine: str, G: _F64, y: _I32, ids: _I64, slack: _F64, n_threads: int) -> None: ...

@final
class PairTable:
    def __init__(
        self,
        slack: _F64,
        due_at: _F64,
        due: NDArray[np.bool_],
        has_due: NDArray[np.bool_],
        has_moved: NDArray[np.bool_],
    ) -> None: ...
    def find_due(
        self, alpha: _F64, start: _F64, takes_part: NDArray[np.bool_] | None, drift: float, worst: float
    ) -> tuple[int, int, float]: ...
    def measure(self, G: _F64, y: _I32, solved: NDArray[np.bool_], drift: float, rest: float) -> float: ...

def update_gradient(G: _F64, rows: _Floats, slots: _I64, delta: _F64, n_threads: int) -> None: ...
def widen_block(
    values: np.ndarray, rows: int, columns: int, old_stride: int, new_stride: int, n_threads: int
) -> None: ...
def rows_not_zero(A: _F64, found: np.ndarray) -> None: ...
def retain_block(K: np.ndarray, kept: _I64) -> None: ...
def extend_block(
    K: np.ndarray, old: int, rows: np.ndarray, slots: _I64, members: _I64, n_threads: int
) -> None: ...

@final
class DescentOptions:
    def __init__(
        self,
        *,
        eps: float,
        max_sweeps: int,
        most_work: int = ...,
        update: str = "sort",
        seed: int = 0,
        staged: bool = True,
        relax: float = 1.0,
        width: float = ...,
        faces: bool = False,
        spans: bool = False,
        partners: bool = False,
        whole: bool = False,
        n_threads: int = 1,
        seconds: float = ...,
    ) -> None: ...

def coordinate_descent(
    machine: str,
    K: _Floats,
    diag: _F64,
    G: _F64,
    alpha: _F64,
    y: _I32,
    C: _F64,
    options: DescentOptions,
    room: np.ndarray | None = None,
) -> tuple[int, int, float, int]: ...
def descent_from_samples(
    machine: str,
    kernel: WorkingSetKernel,
    diag: _F64,
    G: _F64,
    alpha: _F64,
    y: _I32,
    C: _F64,
    options: DescentOptions,
    room: np.ndarray,
) -> tuple[int, int, float, int]: ...

@final
class SharedArguments:
    def __init__(self, *, batch: int, rank: int, ranks: int, exchange: Callable[[_F64], _F64]) -> None: ...

@final
class RowSource:
    def __init__(
        self,
        *,
        K: np.ndarray,
        known: _I64,
        store: _Floats,
        slots: _I64,
        columns: _I64,
        places: _I64,
        diag: _F64,
    ) -> None: ...
    def complete(self, ids: _I64) -> None: ...

def shared_descent(
    machine: str,
    rows: RowSource,
    G: _F64,
    alpha: _F64,
    y: _I32,
    C: _F64,
    options: DescentOptions,
    others: SharedArguments,
    room: np.ndarray | None = None,
) -> tuple[int, int, float, int]: ...

@final
class KeptClasses:
    def __init__(self, m: int, most_values: int) -> None: ...

def class_descent(
    kept: KeptClasses,
    rows: _Floats,
    slots: _I64,
    ids: _I64,
    diag: _F64,
    G: _F64,
    alpha: _F64,
    y: _I32,
    C: _F64,
    options: DescentOptions,
) -> tuple[int, int, float, int]: ...
def class_descent_from_samples(
    kernel: WorkingSetKernel,
    diag: _F64,
    G: _F64,
    alpha: _F64,
    y: _I32,
    C: _F64,
    options: DescentOptions,
    dtype: str,
) -> tuple[int, int, float, int]: ...

@final
class WorkingSetKernel:
    def __init__(self, spec: KernelSpec, samples: Samples, n_threads: int) -> None: ...

def pair_descent(
    K: _Floats,
    diag: _F64,
    G: _F64,
    alpha: _F64,
    low: _F64,
    high: _F64,
    eps: float,
    max_iter: int,
    most_work: int = ...,
    seconds: float = ...,
    kernel: WorkingSetKernel | None = None,
    store: _Floats | None = None,
    slots: _I64 | None = None,
    columns: _I64 | None = None,
) -> tuple[int, float, int]: ...

@final
class GradientOptions:
    def __init__(
        self,
        *,
        eps: float,
        max_iter: int,
        rho_min: float,
        rho_max: float,
        memory: int,
        patience: int,
        initial_step: str,
        seconds: float = ...,
    ) -> None: ...

@final
class ProjectionOptions:
    def __init__(
        self, *, eps: float, max_iter: int, rho: float, period: int, flat: float, seconds: float = ...
    ) -> None: ...

def projected_gradient(
    machine: str,
    K: _Floats,
    G: _F64,
    alpha: _F64,
    y: _I32,
    C: _F64,
    options: GradientOptions,
    n_threads: int,
    exchange: Callable[[_F64], _F64] | None = None,
) -> tuple[int, float]: ...
def update_samples(
    machine: str, update: str, alpha: _F64, G: _F64, y: _I32, C: _F64, kii: _F64, seed: int
) -> None: ...

# Proximal models and their Newton steps.
def face_sizes(face: NDArray[np.bool_], coupled: bool, sizes: _F64) -> None: ...

@final
class NewtonPairs:
    def __init__(self) -> None: ...
    def solve(
        self, F: _F64, face: NDArray[np.bool_], sigma: _F64, g: _F64, coupled: bool, direction: _F64
    ) -> bool: ...

def newton_columns(F: _F64, face: NDArray[np.bool_], sigma: _F64, A: _F64) -> None: ...
def find_pivots(A: _F64, least: float, pivots: _I64, factor: _F64) -> int: ...
def face(machine: str, alpha: _F64, y: _I32, C: _F64, face: NDArray[np.bool_]) -> None: ...
def model_search(
    machine: str,
    alpha: _F64,
    G: _F64,
    sigma: _F64,
    y: _I32,
    C: _F64,
    FU: _F64,
    dFU: _F64,
    first: float,
    along: float,
    squared: float,
    sum: Callable[[float], float] | None,
    out: _F64,
) -> float: ...
def model_back(F: _F64, alpha: _F64, before: _F64, out: _F64) -> None: ...

# Blocks whose samples are coupled by their sum: low ≤ alpha ≤ high, the sum of alpha kept.
def project_balanced(w: _F64, low: _F64, high: _F64, total: float, method: str, out: _F64) -> None: ...
def variable_projection(
    K: _Floats,
    G: _F64,
    alpha: _F64,
    low: _F64,
    high: _F64,
    options: ProjectionOptions,
    projection: str,
    n_threads: int,
    exchange: Callable[[_F64], _F64] | None = None,
) -> tuple[int, float]: ...
def balanced_gradient(
    K: _Floats,
    G: _F64,
    alpha: _F64,
    low: _F64,
    high: _F64,
    options: GradientOptions,
    projection: str,
    n_threads: int,
    exchange: Callable[[_F64], _F64] | None = None,
) -> tuple[int, float]: ...

# The linear machine. Weights are (features with the constant one, classes padded to a multiple of 8).
@final
class LinearProblem:
    @overload
    def __init__(
        self,
        machine: str,
        X: _Floats,
        y: _I32,
        C: _F64,
        m: int,
        constant: float,
        n_threads: int,
        parts: int = 1,
    ) -> None: ...
    @overload
    def __init__(
        self,
        machine: str,
        data: _Floats,
        indices: _Indices,
        indptr: _Indices,
        d: int,
        y: _I32,
        C: _F64,
        m: int,
        constant: float,
        n_threads: int,
        parts: int = 1,
    ) -> None: ...
    def measure(self, weights: _Floats, step: int = 1) -> tuple[float, float, float, float]: ...
    def rebuild(self, weights: _Floats) -> None: ...
    def dual(self) -> tuple[_I64, _I32, _F64]: ...
    def set_dense_dual(self, alpha: _F64) -> None: ...
    def proximal_point(self, weights: _F64, centre: _F64, t: _F64, alpha: _F64, product: _F64) -> None: ...
    def set_dual(self, indptr: _I64, classes: _I32, values: _F64) -> None: ...
    def norms(self) -> _F64: ...
    def conjugate(self) -> float: ...
    def support(self) -> int: ...

def squared_norm(weights: _Floats, n_threads: int = 1) -> float: ...

@final
class PassRunner:
    def __init__(
        self, problem: LinearProblem, weights: _Floats, update: str, tau: float, seed: int, together: bool
    ) -> None: ...
    def part(self) -> None: ...
    def begin(
        self,
        all: bool,
        threshold: float,
        relax: float,
        margin: float,
        shuffle: bool,
        stretch: float = 1.0,
    ) -> None: ...
    def go_on(self, pieces: int = 1) -> tuple[int, int, int, float, float, float, float]: ...
    def share(self) -> None: ...
    def steps(self, stretch: float) -> _I64: ...
    def make(self, message: _I64, factor: float) -> None: ...

# Data files in text. Lines and columns count from 1.
class _TextReader:
    def feed(self, block: NDArray[np.uint8], n_threads: int) -> tuple[int, int, bytes] | None: ...
    def words(self, column: int) -> tuple[list[bytes], list[int]]: ...
    def codes(self, column: int, out: _I64) -> None: ...
    @property
    def lines(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def entries(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def range(self) -> tuple[float, float, bool]: ...

@final
class LibsvmReader(_TextReader):
    def __init__(self, labelled: bool, least_index: int, most_index: int) -> None: ...
    @property
    def indices(self) -> tuple[int, int]: ...
    @property
    def places(self) -> tuple[tuple[int, int], tuple[int, int]]: ...
    def dense(self, out: np.ndarray, base: int, n_threads: int) -> None: ...
    def csr(
        self, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, base: int, n_threads: int
    ) -> None: ...

@final
class TableReader(_TextReader):
    def __init__(self, delimiter: int, quotes: str, comment: int, columns: NDArray[np.uint8]) -> None: ...
    def values(self, out: np.ndarray, n_threads: int) -> None: ...

@final
class TextStyle:
    def __init__(
        self, before: list[bytes], after: list[bytes], separator: bytes, pair: bytes, leading: bool
    ) -> None: ...

def write_dense(X: np.ndarray, codes: _I64, style: TextStyle) -> bytes: ...
def write_sparse(
    data: np.ndarray, indices: _I64, indptr: _I64, base: int, codes: _I64, style: TextStyle
) -> bytes: ...
