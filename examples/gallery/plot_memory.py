"""
Less memory, same answer
========================

``cache_size`` is a hard limit of the memory for kernel values. What does not fit is computed again: the fit
computes more kernel rows and ends at the same optimum.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from multimargin import KernelSVC

X, y = load_digits(return_X_y=True)
X = X / 16
megabytes = [1, 1.5, 2, 4, 8, 16, 32]
models = [
    KernelSVC(C=10, gamma=1.0, solver="dasmc", working_set_size=60, cache_size=size).fit(X, y)
    for size in megabytes
]
rows = [model.trace_[-1].rows for model in models]
duals = [model.dual_objective_ for model in models]
print(f"dual objectives between {min(duals):.4f} and {max(duals):.4f}")

figure, axes = plt.subplots(layout="constrained")
axes.plot(megabytes, rows, "o-", label="kernel rows computed")
axes.axhline(len(X), color="grey", linestyle=":", label="rows of the kernel matrix")
axes.set(xlabel="cache_size in MB", ylabel="kernel rows", ylim=(0, None), xscale="log")
axes.set_xticks(megabytes, megabytes)
axes.minorticks_off()
axes.legend()
