"""Fit the same data again and again: the same bits for the same number of threads.

    python tests/faults/determinism.py               # 100 runs of each case: 10 processes, 10 fits in each
    python tests/faults/determinism.py --runs 10

The processes differ in the seeds of Python's hashes and in what they did before; half of them run beside busy
threads.
"""

import argparse
import json
import os
import subprocess
import sys
import textwrap

MACHINES = ("crammer-singer", "weston-watkins", "lee-lin-wahba", "msvm2", "one-vs-rest")
CASES = {
    f"{machine}, {threads} threads": ({"machine": machine}, threads)
    for machine in MACHINES
    for threads in (1, 2)
}
CASES |= {
    "c-svc, 2 threads": ({"machine": "c-svc"}, 2),
    "dasmc, 2 threads": ({"solver": "dasmc"}, 2),
    "msvmpack, 3 threads": ({"solver": "msvmpack"}, 3),
    "float32 rows, 3 threads": ({"dtype": "float32", "cache_size": 1}, 3),
    "free bias, 3 threads": ({"bias": "free"}, 3),
    "linear, 3 threads": ("linear", 3),
    "linear, weston-watkins, 2 threads": ("linear weston-watkins", 2),
}
PROGRAM = textwrap.dedent(
    """
    import hashlib, json, sys, threading, warnings
    import numpy as np
    from multimargin import KernelSVC, LinearSVC

    warnings.simplefilter("ignore")
    (params, threads), runs, busy = json.loads(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1"
    rng = np.random.default_rng(5)
    y = rng.integers(0, 5, 1200)
    X = rng.normal(size=(1200, 30)) + 0.7 * rng.normal(size=(5, 30))[y]
    y = y % 2 if "c-svc" in str(params) else y
    ended = threading.Event()

    def burn():
        A = np.ones((200, 200))
        while not ended.is_set():
            A @ A

    burner = threading.Thread(target=burn, daemon=True)
    if busy:
        burner.start()
    found = []
    for _ in range(runs):
        if isinstance(params, str):
            machine = params.split()[1] if " " in params else "crammer-singer"
            model = LinearSVC(machine, n_threads=threads, random_state=3).fit(X, y)
            parts = model.coef_, model.intercept_
        else:
            model = KernelSVC(C=2.0, gamma=0.03, n_threads=threads, random_state=3, **params)
            model.fit(X[:700], y[:700])
            parts = model.dual_coef_, model.support_, model.intercept_, np.float64(model.duality_gap_)
        parts = (*parts, model.decision_function(X))
        content = b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
        found.append(hashlib.sha256(content).hexdigest())
    ended.set()
    print(json.dumps(found))
    """
)


def bits(case, runs, number):
    """The digests of so many fits in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(case), str(runs), str(number % 2)]
    variables = os.environ | {"PYTHONHASHSEED": str(number)}
    done = subprocess.run(command, capture_output=True, text=True, env=variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("cases", nargs="*", help="which cases; all by default")
    args = parser.parse_args()
    processes = min(args.runs, 10)
    for name in args.cases or CASES:
        found = [
            bit for number in range(processes) for bit in bits(CASES[name], args.runs // processes, number)
        ]
        print(f"{name:<34} {len(found):4d} runs, {len(set(found))} different results", flush=True)
        assert len(set(found)) == 1, f"{name}: {len(set(found))} different results"


if __name__ == "__main__":
    main()
