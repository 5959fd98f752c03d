"""Commits of this repository, each built and installed in an environment of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

from benchmarks.lib.data import ROOT

FOLDER = Path(sys.prefix) / "regression"


def commit_of(name: str) -> str:
    """The full id of a commit."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--verify", f"{name}^{{commit}}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name!r} is no commit of this repository: {done.stderr.strip()}")
    return done.stdout.strip()


def installed(commit: str) -> Path:
    """The Python of an environment that has the package at that commit; it is made only once.

    The environment lies in ``regression`` of this environment's folder, and shares this environment's NumPy,
    SciPy and scikit-learn, so that two commits differ in nothing else.
    """
    folder = FOLDER / commit[:12]
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if (folder / ".ready").exists():
        return python
    print(f"building {commit[:12]}", flush=True)
    venv.EnvBuilder(clear=True).create(folder)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    # A path added this way brings modules, but not the .pth files there: not our own editable package.
    shared = [path for path in sys.path if Path(path).name == "site-packages"]
    (Path(site) / "shared.pth").write_text("".join(f"{path}\n" for path in shared))
    install = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--ignore-installed"]
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # cmake, ninja
    with tempfile.TemporaryDirectory(prefix="multimargin-commit-") as source:
        archive = subprocess.run(["git", "-C", ROOT, "archive", commit], capture_output=True, check=True)
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(source, filter="data")
        command = [sys.executable, "-m", "pip", "--python", python, *install, source]
        subprocess.run(command, env=os.environ | {"PATH": paths, "PYTHONPATH": ""}, check=True)
    (folder / ".ready").touch()
    return python
