"""Does an installed multimargin work here? One small fit, checked by its own certificate."""

from sklearn.datasets import load_iris

import multimargin

multimargin.show_versions()
X, y = load_iris(return_X_y=True)
model = multimargin.KernelSVC(C=1.0, tol=1e-3).fit(X, y)
relative_gap = model.duality_gap_ / model.primal_objective_
accuracy = model.score(X, y)
print(f"relative duality gap {relative_gap:.1e}, training accuracy {accuracy:.3f}")
if not (relative_gap < 1e-2 and accuracy > 0.9):
    raise SystemExit("smoke test failed")
