import tempfile
import warnings

import numpy as np
import pytest
from browser import Browser, start
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import train_test_split

from multimargin import KernelSVC, KernelSVCCV, LinearSVC, LinearSVCCV


@pytest.fixture(scope="session")
def browser():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        driver = start(profile)
        yield Browser(driver)
        driver.quit()


@pytest.fixture(scope="session")
def digit_data():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / 16, y, random_state=0)


@pytest.fixture(scope="session")
def digit_model(digit_data):
    X, _, y, _ = digit_data
    return KernelSVC().fit(X, y)


@pytest.fixture(scope="session")
def pages(tmp_path_factory, digit_data, digit_model):
    """Pages of several kinds: name → (path, model, X, y)."""
    folder = tmp_path_factory.mktemp("pages")
    X, X_test, y, y_test = digit_data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one fit is meant not to converge
        stopped = KernelSVC(solver="dasmc", working_set_size=60, max_iter=1).fit(X, y)
    search = KernelSVCCV(Cs=[0.1, 1, 10], gammas=[0.001, 0.1], cv=3).fit(X[:500], y[:500])
    machines = ["crammer-singer", "one-vs-rest"]
    lists = KernelSVCCV(machines, Cs=[1, 10], gammas=[0.001, 0.01], cv=3).fit(X[:300], y[:300])
    linear = LinearSVCCV(Cs=[0.1, 1], cv=3, calibration="sigmoid").fit(X[:300], y[:300])
    flowers = load_iris(as_frame=True)
    names = flowers.target_names[flowers.target]
    made = {
        "digits": (digit_model, X_test, y_test),
        "alone": (digit_model, None, None),
        "stopped": (stopped, X_test, y_test),
        "search": (search, X_test, y_test),
        "machines": (lists, X_test, y_test),
        "linear search": (linear, X_test, y_test),
        "iris": (LinearSVC(C=10).fit(flowers.data[::2], names[::2]), flowers.data[1::2], names[1::2]),
        "many": many_classes(),
    }
    return {name: (of[0].report(folder / f"{name}.html", *of[1:]), *of) for name, of in made.items()}


def many_classes():
    """120 classes, of which some are confused."""
    rng = np.random.default_rng(0)
    centres, y = rng.normal(size=(120, 12)), np.repeat(np.arange(120), 8)
    X = centres[y] + 0.7 * rng.normal(size=(len(y), 12))
    return KernelSVC(gamma=0.1).fit(X[::2], y[::2]), X[1::2], y[1::2]
