"""
The papers' methods side by side
================================

Each method is a rule that chooses samples and a solver for them. All reach the same optimum.
There is room for half of the kernel matrix here. Crammer and Singer's ``mcsvm`` and Niu and Yuan's
``ell-based`` take one sample per step: few kernel rows, and thousands of steps. ``dasmc`` takes blocks, and
``auto`` one set that grows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from multimargin import KernelSVC

X, y = load_digits(return_X_y=True)
X, y = X[:1000] / 16, y[:1000]
solvers = ("auto", "dasmc", "mcsvm", "ell-based")
models = {solver: KernelSVC(C=10, gamma=1.0, solver=solver, cache_size=2).fit(X, y) for solver in solvers}

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for solver, model in models.items():
    left.plot(model.trace_["rows"], model.trace_["violation"], label=solver, linewidth=1)
left.axhline(1e-3, color="grey", linestyle="--")
left.set(yscale="log", xlabel="kernel rows computed", ylabel="largest violation seen")
left.legend()
bars = right.bar(list(models), [model.n_iter_ for model in models.values()], color=["C0", "C1", "C2", "C3"])
right.bar_label(bars)
right.set(yscale="log", ylabel="steps")
