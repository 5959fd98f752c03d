"""
Kernels, and one of your own
============================

A kernel is named, or an object from :mod:`multimargin.kernels`, or any function of two arrays of samples. The
last one here is a function: an RBF kernel of the angles only, so that a point's distance from the origin
plays no part.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel

from multimargin import KernelSVC
from multimargin.kernels import Polynomial

X, y = make_moons(200, noise=0.18, random_state=0)


def of_angles(A, B):
    """An RBF kernel of directions."""
    return rbf_kernel(
        A / np.linalg.norm(A, axis=1, keepdims=True), B / np.linalg.norm(B, axis=1, keepdims=True), gamma=4.0
    )


kernels = {
    "linear": "linear",
    "poly, degree 4": Polynomial(gamma=1.0, degree=4, coef0=1.0),
    "rbf": "rbf",
    "laplacian": "laplacian",
    "sigmoid": "sigmoid",
    "your own": of_angles,
}
models = {name: KernelSVC(C=5, kernel=kernel).fit(X, y) for name, kernel in kernels.items()}

across, up = np.meshgrid(np.linspace(-1.6, 2.6, 150), np.linspace(-1.2, 1.7, 120))
places = np.column_stack([across.ravel(), up.ravel()])
figure, grid = plt.subplots(2, 3, figsize=(9, 5.6), layout="constrained", sharex=True, sharey=True)
for axes, (name, model) in zip(grid.flat, models.items(), strict=True):
    scores = model.decision_function(places).reshape(across.shape)
    axes.contourf(across, up, np.clip(scores, -2, 2), levels=np.linspace(-2, 2, 9), cmap="RdBu", alpha=0.6)
    axes.contour(across, up, scores, levels=[0], colors="black")
    axes.scatter(*X.T, c=y, s=9, cmap="RdBu", edgecolors="black", linewidths=0.4)
    axes.set_title(f"{name}: {model.score(X, y):.0%} of the rows right", fontsize=10)
