"""An independent float64 judge of Crammer-Singer solutions; nothing here imports multimargin.

Kernels are written out by direct differences, optima come from a dense interior-point QP solver of its own.
Symbols follow the project: alpha (n, m), C (n,), y in 0..m-1, z = C e_y - alpha, G = K alpha - e_y.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

ZERO_SHARE = 1e-8  # z_ir <= ZERO_SHARE * C_i counts as zero


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
    differences = A[:, None, :] - B[None, :, :]
    if name == "rbf":
        return np.exp(-gamma * (differences**2).sum(axis=2))
    if name == "laplacian":
        return np.exp(-gamma * np.abs(differences).sum(axis=2))
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
    """The (n, m) alpha behind a fitted model's support_ and dual_coef_."""
    alpha = np.zeros((n, len(model.classes_)))
    alpha[model.support_] = dense(model.dual_coef_)
    return alpha


def codes(model, y):
    """y as 0..m-1 in the order of model.classes_."""
    return np.searchsorted(model.classes_, np.asarray(y))


@dataclass(frozen=True)
class Certificate:
    """What can be said of alpha: per-sample psi and gain, primal and (minimised) dual value, their sum."""

    psi: np.ndarray
    gain: np.ndarray
    primal: float
    dual: float

    @property
    def gap(self):
        return self.primal + self.dual


def one_hot(y, m):
    return np.eye(m)[y]


def certify(K, y, alpha, C):
    """Score alpha. The gap of the certificate is checked against the sum of the gains."""
    n, m = alpha.shape
    C = np.broadcast_to(np.asarray(C, dtype=float), (n,))
    E = one_hot(y, m)
    S = K @ alpha
    G = S - E
    z = C[:, None] * E - alpha
    top = G.max(axis=1)
    in_play = z > ZERO_SHARE * C[:, None]
    psi = top - np.where(in_play, G, np.inf).min(axis=1)
    gain = (z * (top[:, None] - G)).sum(axis=1)
    own = S[np.arange(n), y]
    loss = C * ((S + 1 - E).max(axis=1) - own)
    norm = (alpha * S).sum()
    primal = 0.5 * norm + loss.sum()
    dual = 0.5 * norm - alpha[np.arange(n), y].sum()
    np.testing.assert_allclose(primal + dual, gain.sum(), atol=1e-9 * (1 + abs(primal)), rtol=1e-9)
    return Certificate(psi, gain, float(primal), float(dual))


def assert_feasible(alpha, y, C, atol=1e-9):
    """alpha_i <= C_i e_y and rows summing to zero, relative to C_i."""
    n, m = alpha.shape
    C = np.broadcast_to(np.asarray(C, dtype=float), (n,))
    assert np.isfinite(alpha).all()
    assert ((alpha - C[:, None] * one_hot(y, m)).max(axis=1) <= atol * C).all()
    assert (np.abs(alpha.sum(axis=1)) <= atol * C).all()


def interior_point(H, c, A, b, iterations=60, accuracy=1e-13):
    """min 1/2 x'Hx + c'x with Ax = b, x >= 0, dense, Mehrotra's predictor-corrector. Wants b of order one."""
    N, M = len(c), len(b)
    x, lam, s = np.ones(N), np.zeros(M), np.full(N, 1 + np.abs(c).max())
    for _ in range(iterations):
        stationarity = H @ x + c - A.T @ lam - s
        infeasibility = A @ x - b
        mu = s @ x / N
        if mu < accuracy * (1 + np.abs(c).max()) and np.abs(infeasibility).max() < accuracy:
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
    return x


def longest(x, dx, s, ds):
    """The longest step in [0, 1] that keeps x and its multiplier nonnegative."""
    ratios = [-value[change < 0] / change[change < 0] for value, change in ((x, dx), (s, ds))]
    return min(1.0, *(ratio.min(initial=1.0) for ratio in ratios))


def solve_crammer_singer(K, y, C, m=None):
    """The optimal alpha (n, m) of the Crammer-Singer dual, from z >= 0 with row sums C."""
    n = len(y)
    m = int(np.max(y)) + 1 if m is None else m
    C = np.broadcast_to(np.asarray(C, dtype=float), (n,))
    E = one_hot(y, m)
    linear = E - K @ (C[:, None] * E)  # D in z: 1/2 <z, Kz> + <E - K(C E), z> + const
    scale = C.max()
    z = scale * interior_point(
        scale * np.kron(K, np.eye(m)), linear.ravel(), np.kron(np.eye(n), np.ones(m)), C / scale
    ).reshape(n, m)
    z[z < 1e-10 * C[:, None]] = 0
    z *= (C / z.sum(axis=1))[:, None]
    return C[:, None] * E - z


def solve_binary(K, sign, C):
    """Minimum of the C-SVC dual without bias, 1/2 b'Qb - sum b over 0 <= b <= C, sign in {-1, +1}."""
    n = len(sign)
    C = np.broadcast_to(np.asarray(C, dtype=float), (n,))
    scale = C.max()
    Q = K * np.outer(sign, sign)
    H = np.zeros((2 * n, 2 * n))
    H[:n, :n] = scale * Q  # variables (b, C - b) / scale
    c = np.concatenate([-np.ones(n), np.zeros(n)])
    b = scale * interior_point(H, c, np.hstack([np.eye(n), np.eye(n)]), C / scale)[:n]
    return float(0.5 * b @ Q @ b - b.sum())


def project_simplex(D, C):
    """The z >= 0 with sum C nearest to D, by exact search over the breakpoints in extended precision."""
    D = np.asarray(D, dtype=np.longdouble)
    D = D - D.max()
    order = np.sort(D)[::-1]
    count = np.arange(1, len(D) + 1)
    thetas = (np.cumsum(order) - np.longdouble(C)) / count
    theta = thetas[np.nonzero(order > thetas)[0][-1]]
    return np.maximum(D - theta, 0)
