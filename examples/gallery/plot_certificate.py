"""
The optimum is in between
=========================

A fit knows two numbers at any time: the objective of its model, and a lower bound that no model can fall
below. The optimum is always in between. Here a fit is stopped early, later, and not at all.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from multimargin import KernelSVC

X, y = load_digits(return_X_y=True)
steps = [5, 10, 15, 20, 30, 40, 60, 1000]
fits = []
for step in steps:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # that is what is shown here
        options = {"solver": "dasmc", "working_set_size": 60, "max_iter": step}
        fits.append(KernelSVC(C=10, **options).fit(X[:1000], y[:1000]))
objective = [fit.primal_objective_ for fit in fits]
bound = [-fit.dual_objective_ for fit in fits]
taken = [fit.n_iter_ for fit in fits]

figure, axes = plt.subplots(layout="constrained")
axes.fill_between(taken, bound, objective, alpha=0.25, label="the optimum is in here")
axes.plot(taken, objective, "o-", label="objective of the model (primal)")
axes.plot(taken, bound, "o-", label="no model is below (dual)")
axes.set(xlabel="iterations", ylabel="objective", yscale="log")
axes.legend()

# %%
# The last fit, as a notebook shows it:

fits[-1]

# %%
# And one that was stopped:

fits[2]
