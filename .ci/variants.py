"""Build with other compilers and without OpenMP, and run the result on emulated processors.

Every build is a wheel in an environment of its own, in which the smoke test runs. The processors are those of
qemu-user (Debian: qemu-user), which runs the Python of the build: Nehalem has SSE4.2 and no AVX, the oldest
that NumPy's wheels run on; Haswell has AVX2 and no AVX-512. What is not installed is named and left out.

    python .ci/variants.py                        # all
    python .ci/variants.py "clang, OpenMP" emulated
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMOKE = ROOT / ".ci" / "smoke.py"
BUILDS = {  # name: (compiler, whether OpenMP)
    "g++, no OpenMP": ("g++", False),
    "clang++, OpenMP": ("clang++", True),
    "clang++, no OpenMP": ("clang++", False),
    "g++, OpenMP": ("g++", True),  # the last one is what the emulated processors run
}
PROCESSORS = {"Nehalem": "baseline", "Haswell": "x86-64-v3"}  # and the instruction set that must be picked
# NumPy's OpenBLAS is told the processor: by itself that of NumPy 2.4.6 ends with an illegal
# instruction on an emulated Nehalem when NumPy is imported. multimargin's own code does not look at it.


def main(wanted):
    done = {}
    with tempfile.TemporaryDirectory() as scratch:
        python = None
        for name, (compiler, openmp) in BUILDS.items():
            if not chosen(name, wanted) and not (name == "g++, OpenMP" and chosen("emulated", wanted)):
                continue
            if shutil.which(compiler) is None:
                done[name] = f"left out: no {compiler}"
                continue
            try:
                python = built(compiler, openmp, Path(scratch) / str(len(done)))
            except subprocess.CalledProcessError:
                done[name] = "FAILED: it does not build"
                continue
            text = smoke([python])
            said = "OpenMP, at most" if openmp else "built without OpenMP: one thread"
            done[name] = "passed" if said in text else f"FAILED: show_versions does not say {said!r}"
        for cpu, level in PROCESSORS.items():
            if not chosen("emulated", wanted):
                continue
            if shutil.which("qemu-x86_64") is None or python is None:
                done[cpu] = "left out: no qemu-x86_64, or no build"
                continue
            text = smoke(["qemu-x86_64", "-cpu", cpu, python], OMP_NUM_THREADS="1", OPENBLAS_CORETYPE=cpu)
            right = f"instruction set: {level}\n" in text
            done[cpu] = "passed" if right else f"FAILED: not the instruction set {level}: {text[-300:]}"
    print(*(f"{name:<20} {said}" for name, said in done.items()), sep="\n")
    return int(any(said.startswith("FAILED") for said in done.values()))


def chosen(name, wanted):
    return not wanted or name in wanted


def built(compiler, openmp, folder):
    """The Python of an environment with a build by that compiler."""
    print(f"Building with {compiler}, OpenMP {'on' if openmp else 'off'} ...", flush=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    setting = f"-Ccmake.define.MULTIMARGIN_OPENMP={'ON' if openmp else 'OFF'}"
    install = [python, "-m", "pip", "install", "--quiet", setting, ROOT]
    subprocess.run(install, check=True, env=os.environ | {"CXX": compiler})
    return python


def smoke(command, **variables):
    """What the smoke test printed; it fails if the test does."""
    done = subprocess.run(
        [*map(str, command), str(SMOKE)],
        env=os.environ | variables,
        cwd="/",
        capture_output=True,
        text=True,
    )
    print(done.stdout, flush=True)
    if done.returncode:
        return f"exit code {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
