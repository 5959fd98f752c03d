"""The table of named methods: each is one tuple of the design's parts."""

from __future__ import annotations

from dataclasses import replace

from ..inner.coordinate_descent import CoordinateDescent
from ..inner.frank_wolfe import FrankWolfe
from ..inner.pair_descent import PairDescent
from ..inner.projected_gradient import ProjectedGradient
from ..inner.undecided_interior_point import InteriorPoint
from ..inner.variable_projection import VariableProjection
from ..problems import PROBLEMS
from .decomposition import Decomposition
from .working_sets import Gain, Growing, MaxViolator, Practical, Random, SvmLight

# Niu & Yuan's DASMC: Algorithm 4 with Algorithm 3, stopped on ℓ; then its support vectors are settled.
_DASMC = Decomposition(Practical(q=400, n_new=200), ProjectedGradient(), stop="gain", settle=True)

# What "auto" descends by, with some changes for some machines.
_DESCENT = CoordinateDescent("sort", relax=1.2, reach=0.1, faces=True)

METHODS: dict[str, Decomposition] = {
    # Crammer & Singer (2001): one sample per step, active set, cooling, fixed-point update.
    "mcsvm": Decomposition(
        MaxViolator(q=1, active_set=True, cooling="logarithmic"), CoordinateDescent("fixed-point")
    ),
    # Niu & Yuan's ℓ-based variant of the same program.
    "ell-based": Decomposition(
        Gain(q=1, active_set=True, cooling="logarithmic"), CoordinateDescent("fixed-point")
    ),
    "dasmc": _DASMC,
    "pdasmc": _DASMC,  # their parallel program: the same method on several processes
    # Didiot & Lauer's MSVMpack: one step of Frank-Wolfe on a random chunk, until the duality gap is at most
    # tol of the primal (theirs is tol=0.02).
    "msvmpack": Decomposition(Random(q=10), FrankWolfe(), stop="gap"),
    # Serafini, Zanghirati & Zanni's VPDT for c-svc: few large blocks. The authors recommend blocks about as
    # large as the number of support vectors: set ``working_set_size``.
    "vpdt": Decomposition(SvmLight(n_sp=2000, n_c=800), VariableProjection()),
    # Joachims' SVM-light for c-svc: many small blocks.
    "svm-light": Decomposition(SvmLight(n_sp=10, n_c=4), PairDescent()),
    # The fastest we know: all support vectors at once, exact coordinate descent in stages.
    "auto": Decomposition(
        Growing(share=0.5, share_anew=1.0),
        replace(_DESCENT, spans=True, partners=True, finish=InteriorPoint()),
        inner_share=0.1,
        inner_share_anew=0.2,
        inner_floor=0.7,
        polish=100,
        leap=True,
    ),
}

PARALLEL = frozenset({"pdasmc"})  # names that are for several processes only

# Machines that need other parts under the same name: those with a box instead of a simplex; Crammer-Singer,
# whose samples MSVMpack ranks.
_BOX = Decomposition(
    Growing(share=0.5, share_anew=1.0), _DESCENT, inner_share_anew=0.2, inner_floor=0.7, polish=100
)
# More or most samples become support vectors: fewer, larger rounds. If nothing couples the classes, pairs
# (sample, class) that do not violate cannot affect the others.
_MORE = replace(
    _BOX,
    working_set=Growing(start=512, share=0.5, share_anew=1.0, least=256),
    inner=replace(_DESCENT, reach=0.0),
)
_MOST = replace(_BOX, working_set=Growing(start=1024, share=1.0, least=512, everyone=0.95), inner_floor=0.8)
VARIANTS: dict[tuple[str, str], Decomposition] = {
    ("auto", "weston-watkins"): replace(_BOX, inner=replace(_DESCENT, spans=True, partners=True), leap=True),
    ("auto", "lee-lin-wahba"): _MOST,
    ("auto", "msvm2"): _MOST,
    # Its coefficients do not cancel in the scores, where fixed-point kernel rows hide some tenths of tol.
    ("auto", "one-vs-rest"): replace(_MORE, leap=True, inner_floor=0.5),
    # Only the kernel rows of samples that move are computed, so samples that do not move cost little.
    ("auto", "c-svc"): Decomposition(
        Growing(start=512, share=1.0, least=512, reach=0.7, even=True),
        PairDescent(),
        inner_floor=0.7,
        polish=100,
    ),
    # MSVMpack ranks by ψ. Frank-Wolfe hardly ever brings a weight to zero, and ψ counts the smallest in
    # full, so that it chooses the wrong samples (docs/decisions/decomposition.md). The gain weighs the same
    # conditions by what they contribute to the gap.
    ("msvmpack", "crammer-singer"): Decomposition(Gain(q=10), FrankWolfe(), stop="gap"),
}
# Engines that compute whole blocks in no time: all samples at once if their block fits, else a set that grows
# in few rounds. The options of a descent are for other engines.
_WHOLE = Decomposition(
    Growing(start=1 << 16, whole=1 << 62, share=1.0, least=4096),
    CoordinateDescent(),
    inner_share=0.1,
    inner_floor=0.9,
    polish=100,
)
PLACES: dict[tuple[str, str, str], Decomposition] = {
    ("auto", "cuda", "crammer-singer"): replace(_WHOLE, leap=True),
    ("auto", "cuda", "weston-watkins"): replace(_WHOLE, leap=True),
    ("auto", "cuda", "lee-lin-wahba"): _WHOLE,
    ("auto", "cuda", "msvm2"): _WHOLE,
    ("auto", "cuda", "one-vs-rest"): replace(_WHOLE, leap=True),
    ("auto", "cuda", "c-svc"): replace(_WHOLE, inner=PairDescent()),
}

# The same for a free bias, if a method has steps of its own for it instead of the proximal scheme. Its
# linear programs cost little more for 50 samples than for 10.
FREE_BIAS: dict[str, Decomposition] = {
    "msvmpack": Decomposition(Random(q=50), FrankWolfe(balanced=True), stop="gap")
}


def find_method(
    solver: str | Decomposition,
    working_set_size: int | str,
    machine: str,
    free_bias: bool = False,
    place: str = "cpu",
) -> Decomposition:
    """The decomposition of that name, with its working-set size replaced if one is given."""
    if isinstance(solver, Decomposition):
        method = solver
    elif solver in METHODS:
        variant = VARIANTS.get((solver, machine), METHODS[solver])
        method = PLACES.get((solver, place, machine), variant)
        method = FREE_BIAS.get(solver, method) if free_bias else method
    else:
        raise ValueError(
            f"Unknown solver {solver!r}. Use one of {', '.join(map(repr, METHODS))}, or a Decomposition."
        )
    if working_set_size == "auto":
        return method
    if PROBLEMS[machine].balanced and int(working_set_size) < 2:
        raise ValueError(
            f"machine={machine!r} moves its samples in pairs: working_set_size must be at least 2, got "
            f"{working_set_size!r}."
        )
    return replace(method, working_set=method.working_set.resized(int(working_set_size)))
