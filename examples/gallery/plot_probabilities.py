"""
Probabilities that mean what they say
=====================================

``KernelSVCCV`` divides the scores by one temperature, which it finds from scores of left-out rows. So a
probability of 0.8 should be right four times out of five. The classes here overlap, so that there is
something to be unsure about.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from multimargin import KernelSVCCV

X, y = make_classification(
    4000, 12, n_informative=6, n_classes=4, n_clusters_per_class=2, class_sep=0.9, flip_y=0.1, random_state=0
)
X, X_test, y, y_test = train_test_split(X, y, train_size=700, random_state=0)

figure, axes = plt.subplots(figsize=(5.6, 5.2), layout="constrained")
axes.plot([0, 1], [0, 1], "k:", label="perfect")
losses = {}
for calibration in ("temperature", "sigmoid", "isotonic"):
    search = KernelSVCCV(Cs=[0.3, 3], gammas=[0.03, 0.1], cv=4, calibration=calibration).fit(X, y)
    probabilities = search.predict_proba(X_test)
    losses[calibration] = log_loss(y_test, probabilities)
    right = search.classes_[probabilities.argmax(axis=1)] == y_test
    share, said = calibration_curve(right, probabilities.max(axis=1), n_bins=8, strategy="quantile")
    axes.plot(said, share, "o-", label=f"{calibration}: log loss {losses[calibration]:.3f}")
axes.set(xlabel="largest probability", ylabel="share of rows that are right", xlim=(0.2, 1), ylim=(0.2, 1))
axes.legend()
