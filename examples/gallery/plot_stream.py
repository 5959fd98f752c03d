"""
Learning from a stream
======================

``LinearSVC.partial_fit`` sees every batch once and forgets it. Its accuracy on rows that are still to come is
compared with a fit to all rows seen so far.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from multimargin import LinearSVC

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
X, y = X[order] / 16, y[order]
X_test, y_test = X[1400:], y[1400:]

seen = np.arange(50, 1401, 50)
stream = LinearSVC(C=0.1)
by_batches, by_fits = [], []
for last in seen:
    stream.partial_fit(X[last - 50 : last], y[last - 50 : last], classes=range(10))
    by_batches.append(stream.score(X_test, y_test))
    by_fits.append(LinearSVC(C=0.1).fit(X[:last], y[:last]).score(X_test, y_test))

figure, axes = plt.subplots(layout="constrained")
axes.plot(seen, by_fits, label="fit to all rows so far")
axes.plot(seen, by_batches, label="partial_fit, each row once")
axes.set(xlabel="rows seen", ylabel="accuracy on 397 other rows", ylim=(0.6, 1))
axes.legend()
