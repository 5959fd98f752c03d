"""An independent float64 judge of solutions of all machines; nothing here imports multimargin.

Kernels are written out by direct differences, machines by their primal losses; optima come from a dense
interior-point QP solver of its own. Symbols follow the project: alpha (n, m), C (n,), y in 0..m-1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse

ZERO_SHARE = 1e-8  # a multiplier within ZERO_SHARE * C_i of its bound counts as on it


def dense(X):
    """X as a float64 array, whatever it was."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def base_kernel(name, A, B, gamma, coef0, degree):
    if name == "linear":
        return A @ B.T
    if name == "poly":
        return (gamma * (A @ B.T) + coef0) ** degree
    if name == "sigmoid":
        return np.tanh(gamma * (A @ B.T) + coef0)
    if name in ("rbf", "laplacian"):
        power = 2 if name == "rbf" else 1  # row by row: all differences at once are gigabytes
        rows = [np.exp(-gamma * (np.abs(a - B) ** power).sum(axis=1)) for a in A]
        return np.reshape(rows, (len(A), len(B)))
    raise KeyError(name)


def kernel_matrix(name, A, B=None, *, gamma=1.0, coef0=0.0, degree=3, normalize=False, offset=0.0):
    """k(A_i, B_j), over sqrt(k(A_i, A_i) k(B_j, B_j)) if normalize, plus offset (1: regularised bias)."""
    A = dense(A)
    B = A if B is None else dense(B)
    K = base_kernel(name, A, B, gamma, coef0, degree)
    if normalize:
        diagonals = [
            np.array([base_kernel(name, row[None], row[None], gamma, coef0, degree)[0, 0] for row in side])
            for side in (A, B)
        ]
        K = K / np.sqrt(np.outer(*diagonals))
    return K + offset


def full_alpha(model, n):
    """The alpha behind a fitted model's support_ and dual_coef_: (n, m), of c-svc (n, 1)."""
    alpha = np.zeros((n, model.dual_coef_.shape[1]))
    alpha[model.support_] = dense(model.dual_coef_)
    return alpha


def has_free_bias(model):
    """What the model says was used; of a model that only names its parameter, that, or c-svc's own."""
    used = getattr(model, "bias_", getattr(model, "bias", None))
    return model.machine == "c-svc" or used == "free"


def class_biases(model):
    """One bias per class; of two classes ``intercept_`` is only the difference."""
    return getattr(model, "_class_bias", model.intercept_)


def codes(model, y):
    """y as 0..m-1 in the order of model.classes_."""
    return np.searchsorted(model.classes_, np.asarray(y))


def one_hot(y, m):
    return np.eye(m)[y]


def signs(y, columns):
    """+1 at the sample's class and -1 elsewhere; of one column, +1 for class 1 and -1 for class 0."""
    return 2 * (np.asarray(y)[:, None] if columns == 1 else one_hot(y, columns)) - 1.0


# -- what a machine asks of the scores ------------------------------------------------------------------
# A pair is a (sample, class) that has a margin to meet; arrays over pairs are (n, columns), zero where there
# is none. The multipliers beta >= 0 of "shortfall <= slack" give alpha = -beta d(shortfall)/d(scores).


class Relative:
    """s_y - s_r >= 1 for every other class r."""

    kappa = staticmethod(lambda m: 1.0)
    sums_to_zero = True  # rows of alpha
    centred = False  # scores sum to zero by definition of the machine

    @staticmethod
    def pairs(y, m):
        return one_hot(y, m) == 0

    @staticmethod
    def shortfall(s, y):
        return 1 - one_hot(y, s.shape[1]) + s - np.take_along_axis(s, y[:, None], axis=1)

    @classmethod
    def lower(cls, alpha, y):
        """beta of alpha."""
        return np.where(cls.pairs(y, alpha.shape[1]), -alpha, 0.0)

    @staticmethod
    def lift(beta, y):
        """alpha of beta."""
        return beta.sum(axis=1, keepdims=True) * one_hot(y, beta.shape[1]) - beta


class Absolute(Relative):
    """-s_r >= kappa for every other class r, where the scores of all classes sum to zero."""

    kappa = staticmethod(lambda m: 1.0 / (m - 1))
    centred = True

    @classmethod
    def shortfall(cls, s, y):
        m = s.shape[1]
        return np.where(cls.pairs(y, m), s + cls.kappa(m), 0.0)

    @staticmethod
    def lower(alpha, y):
        return np.take_along_axis(alpha, y[:, None], axis=1) - alpha

    @staticmethod
    def lift(beta, y):
        return beta.mean(axis=1, keepdims=True) - beta


class Signed(Relative):
    """s_y >= 1 and -s_r >= 1 for every other class r; of one column, s >= 1 for class 1 and -s >= 1 for 0."""

    sums_to_zero = False

    @staticmethod
    def pairs(y, m):
        return np.ones((len(y), m), dtype=bool)

    @staticmethod
    def shortfall(s, y):
        return 1 - signs(y, s.shape[1]) * s

    @staticmethod
    def lower(alpha, y):
        return signs(y, alpha.shape[1]) * alpha

    lift = lower


# -- what a shortfall costs -----------------------------------------------------------------------------
# loss: of each sample. load (n, any): the sums of multipliers that may not exceed C_i. ridge: the dual has
# ridge sum_i |alpha_i|^2 / (4 C_i). gain: loss + conjugate + <alpha, scores>, the sample's share of the
# duality gap. violation: of its optimality conditions, in score units.


class Largest:
    """C_i max_r [shortfall_r]_+; the multipliers sum to at most C_i, and z has the rest on the own class."""

    ridge = 0.0

    @staticmethod
    def loss(short, pair, C):
        return C * np.maximum(short, 0).max(axis=1)

    @staticmethod
    def load(beta):
        return beta.sum(axis=1, keepdims=True)

    @staticmethod
    def spread(short, beta, pair, C):
        """z, and how far each class is below the top; the own class has a shortfall of zero."""
        rest = C[:, None] - beta.sum(axis=1, keepdims=True)
        return np.where(pair, beta, rest), short.max(axis=1, keepdims=True) - short

    @classmethod
    def gain(cls, short, beta, pair, C):
        z, below = cls.spread(short, beta, pair, C)
        return (z * below).sum(axis=1)

    @classmethod
    def violation(cls, short, beta, pair, C):
        z, below = cls.spread(short, beta, pair, C)
        return np.where(z > ZERO_SHARE * C[:, None], below, 0).max(axis=1)


class Sum:
    """C_i sum_r [shortfall_r]_+; every multiplier is at most C_i."""

    ridge = 0.0

    @staticmethod
    def loss(short, pair, C):
        return C * np.maximum(short, 0).sum(axis=1)

    @staticmethod
    def load(beta):
        return beta

    @staticmethod
    def gain(short, beta, pair, C):
        return ((C[:, None] - beta) * np.maximum(short, 0) + beta * np.maximum(-short, 0)).sum(axis=1)

    @staticmethod
    def violation(short, beta, pair, C):
        may_grow, may_shrink = beta < C[:, None] * (1 - ZERO_SHARE), beta > C[:, None] * ZERO_SHARE
        return np.maximum(may_grow * short, may_shrink * -short).max(axis=1, initial=0)


class Squares:
    """C_i min sum_r xi_r^2 + (sum_r xi_r)^2 over slacks xi_r >= shortfall_r of any sign; multipliers are not
    bounded above, and at the best slacks beta_r = 2 C_i (xi_r + sum_q xi_q)."""

    ridge = 1.0

    @staticmethod
    def loss(short, pair, C):
        """The best slacks are xi_r = max(shortfall_r, -sigma), sigma being their sum: Newton on that.

        sigma - sum_r max(shortfall_r, -sigma) is increasing, concave and piecewise linear in sigma, so that
        after one step all come from below and each is on a later piece.
        """
        sigma = np.zeros((len(short), 1))
        for _ in range(short.shape[1] + 1):
            xi = pair * np.maximum(short, -sigma)
            slope = 1 + (pair & (short < -sigma)).sum(axis=1, keepdims=True)
            sigma = sigma - (sigma - xi.sum(axis=1, keepdims=True)) / slope
        xi = pair * np.maximum(short, -sigma)
        return C * ((xi**2).sum(axis=1) + xi.sum(axis=1) ** 2)

    @staticmethod
    def load(beta):
        return beta[:, :0]

    @classmethod
    def gain(cls, short, beta, pair, C):
        squares = (beta**2).sum(axis=1) - beta.sum(axis=1) ** 2 / beta.shape[1]  # |alpha|^2
        return cls.loss(short, pair, C) + squares / (4 * C) - (beta * short).sum(axis=1)

    @staticmethod
    def violation(short, beta, pair, C):
        xi = (beta - beta.mean(axis=1, keepdims=True)) / (2 * C[:, None])
        missing = pair * (short - xi)
        return np.maximum(missing, -missing * (beta > C[:, None] * ZERO_SHARE)).max(axis=1)


class SeparateSquares(Squares):
    """C_i sum_r [shortfall_r]_+^2; multipliers are not bounded above, and beta_r = 2 C_i [shortfall_r]_+."""

    @staticmethod
    def loss(short, pair, C):
        return C * (np.maximum(short, 0) ** 2).sum(axis=1)

    @classmethod
    def gain(cls, short, beta, pair, C):
        return cls.loss(short, pair, C) + (beta**2).sum(axis=1) / (4 * C) - (beta * short).sum(axis=1)

    @staticmethod
    def violation(short, beta, pair, C):
        missing = short - beta / (2 * C[:, None])
        return np.maximum(missing, -missing * (beta > C[:, None] * ZERO_SHARE)).max(axis=1)


class Machine(NamedTuple):
    """A machine: its margins, what missing them costs, and c_i / C_i as a function of the number of classes
    (g_i / c_i is the gap in units of the margin)."""

    margin: type[Relative]
    cost: type[Largest | Sum | Squares]
    gap_scale: Callable[[int], float]


MACHINES = {
    "crammer-singer": Machine(Relative, Largest, lambda m: 1),
    "weston-watkins": Machine(Relative, Sum, lambda m: m - 1),
    "lee-lin-wahba": Machine(Absolute, Sum, lambda m: m - 1),
    "msvm2": Machine(Absolute, Squares, lambda m: m / (m - 1)),
    "one-vs-rest": Machine(Signed, Sum, lambda m: m),
    "c-svc": Machine(Signed, Sum, lambda m: 1),  # one column of scores
}
LINEAR_ONLY = {"squared-one-vs-rest": Machine(Signed, SeparateSquares, lambda m: m)}
ALL_MACHINES = MACHINES | LINEAR_ONLY


# -- the judge ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Certificate:
    """What can be said of alpha: of each sample the violation psi (score units), its share of the gap and
    what to measure that by (c_i); primal and (minimised) dual value, their sum; the margin."""

    psi: np.ndarray
    gain: np.ndarray
    scale: np.ndarray
    primal: float
    dual: float
    kappa: float

    @property
    def gap(self):
        return self.primal + self.dual


def best_bias(S, y, C):
    """The b of c-svc that minimises the primal at scores S: as much of sum C is below it as class 1 has.

    sum_i C_i [1 - Y_i (S_i + b)]_+ has kinks at Y_i - S_i, and slope -sum_{y_i=1} C_i on the far left; each
    kink adds C_i. The middle where the slope is zero between two.
    """
    kinks = (signs(y, 1) - S)[:, 0]
    order = np.argsort(kinks, kind="stable")
    slope = np.cumsum(C[order]) - C[np.asarray(y) == 1].sum()
    at = np.searchsorted(slope, -1e-12 * C.sum())
    flat = slope[at] <= 1e-12 * C.sum() and at + 1 < len(kinks)
    return np.array([kinks[order[at : at + 1 + flat]].mean()])


def least_violation(S, y, alpha, C):
    """min over b of the largest violation of c-svc: half of max_up(-G) - min_low(-G), G = S - Y."""
    w, high = (signs(y, 1) - S)[:, 0], C * (np.asarray(y) == 1)
    up, low = alpha[:, 0] < high - ZERO_SHARE * C, alpha[:, 0] > high - C + ZERO_SHARE * C
    return max(0.0, 0.5 * (w[up].max(initial=-np.inf) - w[low].min(initial=np.inf)))


def certify(K, y, alpha, C, machine="crammer-singer", bias=None):
    """Score alpha, with the bias if one is given (a free one: columns of alpha sum to zero).

    "free" is the bias of the smallest primal, for c-svc. The sum of the gains is checked against the
    primal, which comes from the losses alone.
    """
    n, m = alpha.shape
    margin, cost, gap_scale = ALL_MACHINES[machine]
    C, y = np.broadcast_to(np.asarray(C, dtype=float), (n,)), np.asarray(y)
    S = K @ alpha
    if isinstance(bias, str):
        assert (machine, bias) == ("c-svc", "free")
        bias = best_bias(S, y, C)
    bias = np.zeros(m) if bias is None else np.asarray(bias, dtype=float)
    if margin.centred:  # other biases are none of this machine
        assert abs(bias.sum()) <= 1e-9 * (1 + np.abs(bias).sum())
    short, pair, beta = margin.shortfall(S + bias, y), margin.pairs(y, m), margin.lower(alpha, y)
    norm = (alpha * S).sum()
    primal = 0.5 * norm + cost.loss(short, pair, C).sum()
    ridge = cost.ridge * ((alpha**2).sum(axis=1) / (4 * C)).sum()
    dual = 0.5 * norm + ridge - margin.kappa(m) * beta.sum()
    gain = cost.gain(short, beta, pair, C)
    np.testing.assert_allclose(
        primal + dual + bias @ alpha.sum(axis=0), gain.sum(), atol=1e-9 * (1 + abs(primal)), rtol=1e-9
    )
    psi = cost.violation(short, beta, pair, C)
    return Certificate(psi, gain, C * gap_scale(m), float(primal), float(dual), margin.kappa(m))


def assert_feasible(alpha, y, C, atol=1e-9, machine="crammer-singer", free=False):
    """alpha is a point of the dual to rounding: rows relative to C_i, with a free bias columns to all C_i."""
    n = len(alpha)
    margin, cost, _ = ALL_MACHINES[machine]
    C, y = np.broadcast_to(np.asarray(C, dtype=float), (n,)), np.asarray(y)
    assert np.isfinite(alpha).all()
    beta = margin.lower(alpha, y)
    size = np.maximum(C, np.abs(alpha).max(axis=1))
    assert (beta.min(axis=1) >= -atol * size).all()
    assert (np.abs(alpha - margin.lift(beta, y)).max(axis=1) <= atol * size).all()
    assert (cost.load(beta) <= (1 + atol) * C[:, None]).all()
    if free:
        assert np.abs(alpha.sum(axis=0)).max() <= atol * size.sum()


def bounded_samples(alpha, y, C, machine="crammer-singer"):
    """Which samples have a multiplier, or a sum of multipliers, at its bound: the "BSV" of publications."""
    margin, cost, _ = ALL_MACHINES[machine]
    load, C = cost.load(margin.lower(alpha, np.asarray(y))), np.broadcast_to(C, len(alpha))
    return (load >= (1 - ZERO_SHARE) * C[:, None]).any(axis=1)


def random_point(machine, y, m, C, rng, most=3.0):
    """A feasible alpha without a free bias, a third of the pairs at zero; where each has a bound a third
    is there, where there is none they are at most ``most`` times C_i."""
    margin, cost, _ = ALL_MACHINES[machine]
    share = np.clip(rng.uniform(-1, 2, (len(y), m)), 0, 1) * margin.pairs(y, m)
    load = cost.load(share)
    share *= most if load.shape[1] == 0 else 1 / np.maximum(load, 1).max(axis=1, keepdims=True)
    return margin.lift(share * np.broadcast_to(C, len(y))[:, None], y)


def interior_point(H, c, A, b, iterations=60, accuracy=1e-13):
    """x and multipliers lam of min 1/2 x'Hx + c'x with Ax = b, x >= 0, dense, Mehrotra's predictor-corrector.

    Hx + c - A'lam >= 0 at the end. Wants b of order one.
    """
    N, M = len(c), len(b)
    x, lam, s = np.ones(N), np.zeros(M), np.full(N, 1 + np.abs(c).max())
    for _ in range(iterations):
        stationarity = H @ x + c - A.T @ lam - s
        infeasibility = A @ x - b
        mu = s @ x / N
        if (s * x).max() < accuracy * (1 + np.abs(c).max()) and np.abs(infeasibility).max(
            initial=0
        ) < accuracy:
            break
        system = np.block([[H + np.diag(s / x), -A.T], [A, np.zeros((M, M))]])
        factors = linalg.lu_factor(system)

        def newton(target, factors=factors, r=stationarity, p=infeasibility, x=x, s=s):
            step = linalg.lu_solve(factors, np.concatenate([-r + target / x - s, -p]))
            return step[:N], step[N:], (target - s * step[:N]) / x - s

        dx, _, ds = newton(np.zeros(N))
        reach = longest(x, dx, s, ds)
        after = (s + reach * ds) @ (x + reach * dx) / N
        dx, dlam, ds = newton(mu * (after / mu) ** 3 - dx * ds)
        reach = 0.995 * longest(x, dx, s, ds)
        x, lam, s = x + reach * dx, lam + reach * dlam, s + reach * ds
    return x, lam


def longest(x, dx, s, ds):
    """The longest step in [0, 1] that keeps x and its multiplier nonnegative."""
    ratios = [-value[change < 0] / change[change < 0] for value, change in ((x, dx), (s, ds))]
    return min(1.0, *(ratio.min(initial=1.0) for ratio in ratios))


def solve(K, y, C, machine="crammer-singer", free=False, m=None):
    """The optimal (alpha, b) by the dual in beta; a free b (else zeros) multiplies the columns' sums.

    min 1/2 <alpha, (K + R) alpha> - kappa sum beta, with beta >= 0, load(beta) + slack = C and, if free, the
    columns of alpha = lift(beta) summing to zero: all but one where its rows do. R = ridge / (2 C_i).
    """
    y = np.asarray(y)
    n, m = len(y), 1 if machine == "c-svc" else int(np.max(y)) + 1 if m is None else m
    margin, cost, _ = ALL_MACHINES[machine]
    C = np.broadcast_to(np.asarray(C, dtype=float), (n,))
    rows, classes = np.nonzero(margin.pairs(y, m))
    pairs = len(rows)
    units = np.zeros((pairs, n, m))
    units[np.arange(pairs), rows, classes] = 1
    lifts = np.array([margin.lift(unit, y) for unit in units])
    loads = np.array([cost.load(unit).ravel() for unit in units]).T
    used = loads.any(axis=1)
    loads, limits = loads[used], np.repeat(C, len(used) // n)[used]
    sums = lifts.sum(axis=1).T[: m - margin.sums_to_zero if free else 0]

    scale, slacks = C.max(), len(limits)
    H, c, A = (
        np.zeros((pairs + slacks,) * 2),
        np.zeros(pairs + slacks),
        np.zeros((slacks + len(sums), pairs + slacks)),
    )
    products = np.einsum("ij,pjr->pir", K + cost.ridge * np.diag(0.5 / C), lifts)
    H[:pairs, :pairs] = scale * lifts.reshape(pairs, -1) @ products.reshape(pairs, -1).T
    c[:pairs] = -margin.kappa(m)
    A[:slacks, :pairs], A[:slacks, pairs:], A[slacks:, :pairs] = loads, np.eye(slacks), sums
    x, multipliers = interior_point(H, c, A, np.concatenate([limits / scale, np.zeros(len(sums))]))

    beta = np.zeros((n, m))
    beta[rows, classes] = scale * x[:pairs]
    beta[beta < 1e-10 * C[:, None]] = 0
    beta *= (C / np.hstack([C[:, None], cost.load(beta)]).max(axis=1))[:, None]
    bias = np.zeros(m)
    bias[: len(sums)] = -multipliers[slacks:]
    return margin.lift(beta, y), bias - bias.mean() * (free and margin.sums_to_zero)


def solve_crammer_singer(K, y, C, m=None):
    """The optimal alpha (n, m) of the Crammer-Singer dual without a free bias."""
    return solve(K, y, C, m=m)[0]


def solve_binary(K, sign, C):
    """Minimum of the C-SVC dual without a free bias, sign in {-1, +1}."""
    y = (np.asarray(sign) > 0).astype(int)
    return certify(K, y, solve(K, y, C, "c-svc")[0], C, "c-svc").dual


def project_simplex(D, C):
    """The z >= 0 with sum C nearest to D, by exact search over the breakpoints in extended precision."""
    D = np.asarray(D, dtype=np.longdouble)
    D = D - D.max()
    order = np.sort(D)[::-1]
    count = np.arange(1, len(D) + 1)
    thetas = (np.cumsum(order) - np.longdouble(C)) / count
    theta = thetas[np.nonzero(order > thetas)[0][-1]]
    return np.maximum(D - theta, 0)
