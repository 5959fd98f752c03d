"""
Five machines, two features
===========================

The machines differ in how they count the classes that a sample is confused with. Here they draw the borders
of four overlapping classes. The multiclass machines agree where one class is clearly the best;
``one-vs-rest`` asks of each class alone whether it beats all others together.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from multimargin import KernelSVC

centers = [(0, 0), (3, 0), (1.5, 2.2), (1.5, 0.8)]
X, y = make_blobs(240, centers=centers, cluster_std=0.75, random_state=1)
machines = ["crammer-singer", "weston-watkins", "lee-lin-wahba", "msvm2", "one-vs-rest"]
models = {machine: KernelSVC(machine, C=1.0, gamma=0.5).fit(X, y) for machine in machines}

side = np.linspace(-2.5, 5.5, 160)
across, up = np.meshgrid(side, side)
places = np.column_stack([across.ravel(), up.ravel()])

figure, grid = plt.subplots(2, 3, figsize=(9, 6), layout="constrained", sharex=True, sharey=True)
for axes, (machine, model) in zip(grid.flat, models.items(), strict=False):
    axes.contourf(across, up, model.predict(places).reshape(across.shape), levels=3, cmap="Pastel1")
    axes.scatter(*X.T, c=y, s=8, cmap="Set1")
    axes.set_title(f"{machine}\n{len(model.support_)} support vectors", fontsize=10)
    axes.set(xlim=(-2.5, 5.5), ylim=(-2.5, 5))
grid.flat[-1].axis("off")
grid.flat[-1].text(0, 0.5, f"{len(X)} samples of 4 classes,\nRBF kernel, C = 1", fontsize=11)
