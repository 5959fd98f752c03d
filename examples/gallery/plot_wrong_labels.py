"""
Finding wrong labels
====================

The dual solution says of every training row how much it had to be forced to its label. ``suspects`` lists the
rows that needed most. Here 60 of 1,200 labels are changed at random, and the list is compared with them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from multimargin import KernelSVC

X, y = load_digits(return_X_y=True)
X, y = X[:1200], y[:1200]
rng = np.random.default_rng(0)
changed = rng.choice(len(y), 60, replace=False)
labels = y.copy()
labels[changed] = (y[changed] + rng.integers(1, 10, len(changed))) % 10

model = KernelSVC(C=1.0).fit(X, labels)
listed = model.suspects(120)
found = np.isin(listed, changed).cumsum()
print(f"{found[59]} of the first 60 suspects were changed, and {found[-1]} of the first 120")

# %%
# The first suspects. Their label is followed by the likeliest other class, from ``label_distribution``.
# Those in red had been changed.

figure, grid = plt.subplots(4, 4, figsize=(5, 5.8), layout="constrained")
for axes, row in zip(grid.flat, listed, strict=False):
    shares = model.label_distribution(row)
    shares[labels[row]] = 0
    axes.imshow(X[row].reshape(8, 8), cmap="gray_r")
    axes.set_title(f"{labels[row]}, or {shares.argmax()}?", color="C3" if row in changed else "black")
    axes.axis("off")

# %%
# How many of the changed labels are among the first k suspects:

figure, axes = plt.subplots(layout="constrained")
axes.plot(np.arange(1, 121), found, label="suspects")
axes.plot([0, 60, 120], [0, 60, 60], "k--", label="nothing could be better")
axes.plot([0, 120], [0, 120 * 60 / 1200], "k:", label="rows at random")
axes.set(xlabel="rows looked at", ylabel="changed labels found")
axes.legend()
