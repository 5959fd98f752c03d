"""Fit while the time of day jumps by up to a day at every look: limits are kept, and results are the same.

    python tests/faults/clock.py                # time limits of half a second
    python tests/faults/clock.py --limit 0.2

A small library (jumping_clock.c) is compiled and loaded before Python's own, so that native code sees the
jumps too.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

SOURCE = Path(__file__).with_name("jumping_clock.c")
PROGRAM = textwrap.dedent(
    """
    import hashlib, json, sys, time, warnings
    from pathlib import Path
    import numpy as np
    from multimargin import KernelSVC, LinearSVC, KernelSVCCV

    warnings.simplefilter("ignore")
    folder, limit = Path(sys.argv[1]), float(sys.argv[2])
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1500, 40)), rng.integers(12, size=1500)
    facts, digest = {"days": abs(time.time() - time.time()) / 86400}, hashlib.sha256()

    def limited(name, model):
        begin = time.monotonic()
        model.fit(X, y)
        facts[name] = [model.status_.name, time.monotonic() - begin, model.trace_.info["seconds"]]

    hard = {"C": 1e5, "tol": 1e-9, "n_threads": 1, "time_limit": limit}
    for solver in ("auto", "dasmc", "msvmpack"):
        limited(solver, KernelSVC(gamma=0.001, solver=solver, **hard))
    limited("numpy", KernelSVC(gamma=0.001, engine="numpy", **hard))
    limited("linear", LinearSVC(**hard))
    small = X[:300], y[:300]
    for model in (KernelSVC(n_threads=1), LinearSVC(n_threads=1), KernelSVCCV(Cs=[1, 9], cv=2, n_threads=1)):
        digest.update(model.fit(*small).decision_function(X).tobytes())
    facts["digest"] = digest.hexdigest()
    path = folder / "fit.checkpoint"
    kept = KernelSVC(C=10.0, solver="dasmc", n_threads=1, checkpoint=(path, 1e-3), verbose=0).fit(*small)
    facts["checkpoint"] = kept.trace_.info["checkpoint"]["writes"]
    print(json.dumps(facts))
    """
)


def run(folder, limit, **variables):
    command = [sys.executable, "-c", PROGRAM, str(folder), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ | variables)
    assert done.returncode == 0, done.stderr
    for path in folder.glob("*.checkpoint"):
        path.unlink()
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--limit", type=float, default=0.5, help="seconds of a fit")
    limit = parser.parse_args().limit
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or sys.platform != "linux":
        print("left out: a clock that jumps needs Linux and a C compiler")
        return
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "clock.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", SOURCE, "-o", library, "-ldl"], check=True)
        usual = run(Path(folder), limit)
        jumping = run(Path(folder), limit, LD_PRELOAD=str(library))
    assert usual.pop("days") < 0.1 < jumping["days"], "the clock did not jump"
    assert usual.pop("digest") == jumping.pop("digest"), "another result"
    assert usual.pop("checkpoint") > 1 and jumping.pop("checkpoint") > 1, "no checkpoints were written"
    print(f"time of day: jumped by {jumping.pop('days'):.2f} days between two looks; the same bits")
    for name, (status, wall, said) in jumping.items():
        print(
            f"{name:<10} limit {limit} s: {status}, ended after {wall:.2f} s "
            f"({usual[name][1]:.2f} s by a steady clock)"
        )
        assert status == usual[name][0] == "TIME_LIMIT"
        assert 0.8 * limit < said <= wall + 0.1
        assert wall < usual[name][1] + 3.0


if __name__ == "__main__":
    main()
