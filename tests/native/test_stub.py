"""The stub of the native module says what the module has: names, order, defaults of every parameter."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import multimargin

pytest.importorskip("mypy")
pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("stubtest.py")


def check(**environment):
    command = [sys.executable, str(SCRIPT), "--concise"]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)


def test_the_stub_is_right():
    done = check()
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("def set_scale(self, scale: _F64)", "def set_scale(self, factor: _F64)", "Samples.set_scale"),
        ("def binary(X: NDArray[np.uint8], scale", "def binary(X: NDArray[np.uint8], factor", "binary"),
        (
            "n_threads: int,\n        parts: int = 1,",
            "n_threads: int,\n        parts: int,",
            "LinearProblem.__init__",
        ),
    ],
)
def test_a_wrong_stub_is_noticed(old, new, said, tmp_path):
    copy = tmp_path / "multimargin"
    shutil.copytree(Path(multimargin.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    text = (copy / "_core.pyi").read_text(encoding="utf-8")
    assert old in text
    (copy / "_core.pyi").write_text(text.replace(old, new), encoding="utf-8")
    done = check(PYTHONPATH=str(tmp_path))
    assert done.returncode == 1, done.stdout + done.stderr
    assert said in done.stdout
