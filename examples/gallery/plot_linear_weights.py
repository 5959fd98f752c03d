"""
What a linear machine looks at
==============================

The weights of ``LinearSVC`` have the shape of the data: here, of images. Blue pixels speak for the digit, red
ones against it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from multimargin import LinearSVC

X, y = load_digits(return_X_y=True)
model = LinearSVC(C=0.05).fit(X[:1300] / 16, y[:1300])
accuracy = model.score(X[1300:] / 16, y[1300:])
print(
    f"accuracy {accuracy:.3f}; at most {model.duality_gap_ / model.primal_objective_:.1e} above the optimum"
)

most = np.abs(model.coef_).max()
figure, grid = plt.subplots(2, 5, figsize=(8, 3.6), layout="constrained")
for axes, digit, weights in zip(grid.flat, model.classes_, model.coef_, strict=True):
    image = axes.imshow(weights.reshape(8, 8), cmap="RdBu", vmin=-most, vmax=most)
    axes.set_title(digit)
    axes.axis("off")
figure.colorbar(image, ax=grid, label="weight")
