"""
Rare classes and sample weights
===============================

``class_weight`` and ``sample_weight`` multiply C. With "balanced" the rare class gets as much cost in total
as the others, and its region grows. Sample weights do the same row by row: here the rows on the left count
little.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from multimargin import KernelSVC

X, y = make_blobs([200, 200, 15], centers=[(0, 0), (3, 0), (1.5, 1.4)], cluster_std=0.8, random_state=3)
weights = np.where(X[:, 0] < 1.5, 0.05, 1.0)
models = {
    "all rows alike": KernelSVC(C=1.0, gamma=0.5).fit(X, y),
    'class_weight="balanced"': KernelSVC(C=1.0, gamma=0.5, class_weight="balanced").fit(X, y),
    "rows on the left count 0.05": KernelSVC(C=1.0, gamma=0.5).fit(X, y, weights),
}

across, up = np.meshgrid(np.linspace(-2.5, 5.5, 160), np.linspace(-2.5, 3.8, 130))
places = np.column_stack([across.ravel(), up.ravel()])
figure, grid = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", sharey=True)
for axes, (name, model) in zip(grid, models.items(), strict=True):
    axes.contourf(across, up, model.predict(places).reshape(across.shape), levels=2, cmap="Pastel1")
    axes.scatter(*X.T, c=y, s=8, cmap="Set1")
    recall = (model.predict(X[y == 2]) == 2).mean()
    axes.set_title(f"{name}\n{recall:.0%} of the rare class found", fontsize=10)
