"""Small fits with engine="cuda" under compute-sanitizer: wrong addresses, races, wrong barriers.

    python .ci/sanitize_gpu.py                # memcheck, racecheck and synccheck
    python .ci/sanitize_gpu.py racecheck

Needs a GPU and CUDA's compute-sanitizer on PATH. Each tool runs all machines, in float32 and float64, and a
prediction. ROWS=number is how many samples a fit has: eight rows make a block of threads. Under racecheck a
kernel is some thousand times slower, so that its fits have 16 samples and end early.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import replace

TOOLS = ("memcheck", "racecheck", "synccheck")
MACHINES = ("crammer-singer", "weston-watkins", "lee-lin-wahba", "msvm2", "one-vs-rest", "c-svc")
CLASSES, ENTRIES = 3, 5
SECONDS = int(os.environ.get("SECONDS", "500"))  # of a tool


def fit_all(rows, tol):
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning

    from multimargin import KernelSVC
    from multimargin.methods import find_method

    warnings.simplefilter("ignore", ConvergenceWarning)
    rng = np.random.default_rng(0)
    for machine in MACHINES:
        m = 2 if machine == "c-svc" else CLASSES
        y = np.arange(rows) % m
        X = rng.normal(size=(rows, ENTRIES)) + rng.normal(size=(m, ENTRIES))[y]
        for dtype in ("float32", "float64"):
            begin = time.perf_counter()
            solver = replace(find_method("auto", "auto", machine, place="cuda"), polish=0)
            model = KernelSVC(machine, solver=solver, engine="cuda", dtype=dtype, tol=tol).fit(X, y)
            model.predict(X)
            facts = model.trace_.info["iterations"], model.violation_
            print(machine, dtype, *facts, f"{time.perf_counter() - begin:.1f} s", flush=True)


def under(tool):
    """Whether the fits end, and the tool has nothing to report."""
    print(f"== {tool}", flush=True)
    few = tool == "racecheck"
    rows, tol = os.environ.get("ROWS", "16" if few else "64"), "0.5" if few else "0.01"
    fits = sys.executable, __file__, "--fits", rows, tol
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", *fits]
    with tempfile.TemporaryFile("w+") as output:
        try:
            done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, timeout=SECONDS)
            code = done.returncode
        except subprocess.TimeoutExpired:
            code = f"none, it did not end in {SECONDS} s"
        output.seek(0)
        said = output.read()
    print(said)
    summary = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", said)
    print(f"{tool}: {summary[1] if summary else 'no summary'}; exit code {code}", flush=True)
    return code == 0 and summary is not None and summary[1].startswith("0 ")


def main():
    if sys.argv[1:2] == ["--fits"]:
        fit_all(int(sys.argv[2]), float(sys.argv[3]))
        return 0
    if shutil.which("compute-sanitizer") is None:
        raise SystemExit("compute-sanitizer is not on PATH: it comes with the CUDA toolkit")
    reports = [under(tool) for tool in sys.argv[1:] or TOOLS]
    return 0 if all(reports) else 1


if __name__ == "__main__":
    sys.exit(main())
