"""What the documents show, runs."""

import doctest
import importlib
import pkgutil
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import multimargin

ROOT = Path(__file__).resolve().parents[2]
MODULES = ["multimargin"] + [
    module.name
    for module in pkgutil.walk_packages(multimargin.__path__, "multimargin.")
    if "_core" not in module.name
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    module = importlib.import_module(name)
    failures, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert failures == 0


def test_some_docstrings_have_examples():
    finder = doctest.DocTestFinder()
    found = [
        test.name for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples
    ]
    assert any("KernelSVC" in name for name in found)
    assert any("LinearSVC" in name for name in found)


def snippets(path):
    """The Python blocks of a document, each with the output that is shown under it."""
    block = r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?"
    return re.findall(block, path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


DOCUMENTS = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if path.exists() and snippets(path)
]


@pytest.mark.skipif(not DOCUMENTS, reason="the package was installed without its documents")
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_code_of_documents_prints_what_they_show(path, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # it writes files
    names = {"__name__": path.stem}
    for block, shown in snippets(path):
        exec(compile(block, path.name, "exec"), names)
        assert capsys.readouterr().out == shown, f"{path.name} shows another output of\n{block}"


def test_these_documents_have_code():
    if DOCUMENTS:
        assert {"README.md", "tour.md", "wrong-labels.md"} <= {path.name for path in DOCUMENTS}


@pytest.mark.skipif(not (ROOT / "Makefile").exists() or not shutil.which("make"), reason="there is no make")
@pytest.mark.parametrize(
    ("target", "last"),
    [("demo", "Training"), ("test", "Running all tests"), ("test-fast", "Running the fast")],
)
def test_make_says_what_it_is_doing(target, last, tmp_path):
    """In an empty environment: every step that takes seconds is announced before it runs."""
    command = ["make", "--dry-run", "--silent", target, f"VENV={tmp_path / 'none'}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    lines = done.stdout.splitlines()
    said = [line.split('"')[1] for line in lines if line.startswith("echo ")]
    starts = (
        "Making a virtual environment in ",
        "Installing the build tools",
        "Compiling the native module",
        last,
    )
    assert len(said) == len(starts)
    assert all(text.startswith(start) for text, start in zip(said, starts, strict=True))
    slow = [
        at
        for at, line in enumerate(lines)
        if " -m venv" in line or " install " in line or " -m pytest" in line
    ]
    assert all(any(line.startswith("echo ") for line in lines[max(0, at - 2) : at]) for at in slow)


def test_public_names():
    assert set(multimargin.__all__) >= {"KernelSVC", "LinearSVC", "kernels", "show_versions"}
    for name in multimargin.__all__:
        assert hasattr(multimargin, name)


def test_version_is_the_packages():
    from importlib.metadata import version

    assert multimargin.__version__ == version("multimargin")


def test_show_versions(capsys):
    multimargin.show_versions()
    text = capsys.readouterr().out
    assert "scikit-learn" in text and "threads" in text and multimargin.__version__ in text
