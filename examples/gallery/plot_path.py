"""
Along C, with bounds of the leave-one-out error
===============================================

Every fit bounds its own leave-one-out error, without another fit. Rows that are no support vectors count as
they are, and for each of the others the margin without it is bounded. Here the classes overlap.
"""

import numpy as np
from sklearn.datasets import make_classification

from multimargin import regularization_path

X, y = make_classification(500, 8, n_informative=5, n_classes=3, flip_y=0.05, class_sep=1.3, random_state=0)
path = regularization_path(X, y, Cs=np.logspace(-2, 2, 9), gamma=0.05)
axes = path.plot()
axes.set_title("500 rows, RBF kernel, gamma = 0.05")
