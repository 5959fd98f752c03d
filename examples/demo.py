"""Train on handwritten digits, read the certificate of optimality, find mislabelled rows."""

from time import perf_counter

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from multimargin import KernelSVC

METHODS = ("auto", "dasmc", "mcsvm")
C, TOL = 1.0, 1e-3
N_FLIPPED = 10
COLUMNS = ("accuracy", "seconds", "SVs", "dual", "gap", "gap/P", "max psi", "max g/C")
NOTES = """
C and gamma are both libraries' defaults, not tuned; accuracy is on the held-out rows of one split.
gap      the primal objective P is at most this far above its optimum; gap/P is relative to P
max psi  largest violation of the optimality conditions: auto and mcsvm stop when it is below tol
max g/C  largest share of one sample in the gap, over its cost: dasmc stops when it is below tol
Both maxima are recomputed here with NumPy in float64. SVC solves another problem (one machine per
pair of classes), so its C means something else and it has no such columns.
"""


def main():
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.3, stratify=y, random_state=0)
    gamma = 1 / (X_train.shape[1] * X_train.var())  # what gamma="scale" stands for
    print(f"digits: {len(X_train)} images to train on, {len(X_test)} held out, {len(np.unique(y))} classes")
    print(f"RBF kernel, gamma = {gamma:.4g}, C = {C}, tol = {TOL}\n")
    header = f"{'':<18}" + "".join(f"{name:>9}" for name in COLUMNS)
    print(header + "\n" + "-" * len(header))
    for method in METHODS:
        model, seconds = timed_fit(KernelSVC(C=C, gamma=gamma, tol=TOL, solver=method), X_train, y_train)
        psi, gain = optimality(model, X_train, y_train, gamma)
        accuracy, n_sv = model.score(X_test, y_test), len(model.support_)
        relative = model.duality_gap_ / model.primal_objective_
        print(
            f"{'KernelSVC, ' + method:<18}{accuracy:9.2%}{seconds:9.3f}{n_sv:9d}"
            f"{model.dual_objective_:9.3f}{model.duality_gap_:9.1e}{relative:9.1e}{psi:9.1e}{gain:9.1e}"
        )
    peer, seconds = timed_fit(SVC(C=C, gamma=gamma, tol=TOL), X_train, y_train)
    print(f"{'scikit-learn SVC':<18}{peer.score(X_test, y_test):9.2%}{seconds:9.3f}{len(peer.support_):9d}")
    print(NOTES)
    show_suspects(X_train, y_train, gamma)


def timed_fit(model, X, y):
    start = perf_counter()
    model.fit(X, y)
    return model, perf_counter() - start


def optimality(model, X, y, gamma):
    """Recompute max psi_i and max g_i / C from the fitted coefficients.

    With G = K alpha - e_y and z_i = C e_y - alpha_i:
    psi_i = max_r G_ir - min of G_ir over z_ir > 0, and g_i = sum_r z_ir (max_q G_iq - G_ir).
    """
    own = y[:, None] == model.classes_
    alpha = np.zeros(own.shape)
    alpha[model.support_] = model.dual_coef_
    G = rbf_kernel(X, gamma=gamma) @ alpha - own
    z = C * own - alpha
    slack = G.max(axis=1, keepdims=True) - G
    return slack[z > 1e-8 * C].max(), (z * slack).sum(axis=1).max() / C


def show_suspects(X, y, gamma):
    """Spoil a few labels: the training rows with the least plausible labels should be those."""
    rng = np.random.default_rng(0)
    flipped = rng.choice(len(y), N_FLIPPED, replace=False)
    spoiled = y.copy()
    spoiled[flipped] = (y[flipped] + rng.integers(1, 10, N_FLIPPED)) % 10
    model = KernelSVC(C=C, gamma=gamma, tol=TOL).fit(X, spoiled)
    found = np.intersect1d(model.suspects(N_FLIPPED), flipped)
    print(f"{N_FLIPPED} training labels changed at random; suspects({N_FLIPPED}) finds {len(found)} of them.")


if __name__ == "__main__":
    main()
