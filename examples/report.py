"""Write a report for the browser: handwritten digits, a few spoiled labels, judged on held-out rows.

python examples/report.py [FILE]     # digits.html if no file is named
"""

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from multimargin import KernelSVC

N_SPOILED = 8


def main(path="digits.html"):
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, random_state=0)
    spoiled = np.random.default_rng(0).choice(len(y), N_SPOILED, replace=False)
    y[spoiled] = (y[spoiled] + 1) % 10
    model = KernelSVC().fit(X, y)
    written = model.report(path, X_test, y_test, title="Handwritten digits")
    found = np.isin(model.suspects(16), spoiled).sum()
    print(
        f"{written}: {found} of {N_SPOILED} spoiled labels are among its 16 suspects. Open it in a browser."
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
