import numpy as np
import pytest
from sklearn.datasets import load_digits

from multimargin import datasets
from multimargin.cli.main import main


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command in an empty directory: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:
            code = end.code
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def digits(run):
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.uint8)
    datasets.save("train.libsvm", X[:600], y[:600])
    datasets.save("test.libsvm", X[600:900], y[600:900])
    return X, y
