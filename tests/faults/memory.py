"""Give a job every tenth of the memory that it needs: the usual result, or MemoryError.

    python tests/faults/memory.py                    # RLIMIT_AS, and a control group if one can be made
    python tests/faults/memory.py "rbf" --limit address --tenths 2 5

A job runs in a process of its own, which first does a small one of the same kind, so that modules and threads
are there. Then its addresses are limited (RLIMIT_AS). A crash, a hang, another result and any other error are
faults. In a control group nothing fails when memory is asked for: the kernel ends a process that uses too
much. There the job must succeed or be ended by the kernel. A fit asks how much memory its group has left and
may take another course, so a result with other bits must be certified: its objective may differ by the gaps.
A reader asks too, and may refuse a file as too large.
"""

import argparse
import hashlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

TIME = 120.0  # seconds of one job


# -- jobs: (small, large), each a function that returns bytes, an objective and its duality gap ------------
def data(n, d=40, m=6):
    import numpy as np

    rng = np.random.default_rng(0)
    y = rng.integers(0, m, n)
    return rng.normal(size=(n, d)) + rng.normal(size=(m, d))[y], y


def certified(model, *parts):
    """What a fit found, if it converged."""
    assert model.status_.converged, model.status_
    return b"".join(part.tobytes() for part in parts), model.dual_objective_, model.duality_gap_


def exact(content):
    """What has no gap."""
    return content, 0.0, 0.0


def kernel_fit(threads=1, n=1500, **params):
    from multimargin import KernelSVC

    def job(n):
        def run():
            X, y = data(n)
            model = KernelSVC(**({"C": 10, "gamma": 0.05, "n_threads": threads} | params)).fit(X, y)
            return certified(model, model.dual_coef_, model.support_)

        return run

    return job(300), job(n)


def linear_fit():
    from scipy import sparse

    from multimargin import LinearSVC

    def job(n):
        def run():
            X, y = data(n, 400)
            X[abs(X) < 1] = 0
            model = LinearSVC(n_threads=1).fit(sparse.csr_array(X), y)
            return certified(model, model.coef_)

        return run

    return job(300), job(3000)


def search():
    from multimargin import KernelSVCCV

    def job(n):
        def run():
            X, y = data(n)
            found = KernelSVCCV(Cs=[1, 10], gammas=[0.05], cv=3, n_threads=1).fit(X, y)
            best = found.best_estimator_
            return certified(best, found.cv_results_["mean_test_score"], best.dual_coef_)

        return run

    return job(100), job(1200)


def prediction():
    from multimargin import KernelSVC

    X, y = data(400)
    model = KernelSVC(gamma=0.05, n_threads=1).fit(X, y)
    many, _ = data(40_000)

    def job(samples):
        return lambda: exact(model.decision_function(samples).tobytes())

    return job(X), job(many)


def reading(name):
    import io

    from multimargin.datasets import load, save

    def job(n):
        file = io.BytesIO()
        save(file, *data(n), format=name)

        def run():
            X, y = load(io.BytesIO(file.getvalue()), format=name, n_threads=1)
            return exact(X.tobytes() + y.tobytes())

        return run

    return job(100), job(20_000)


def model_file():
    from multimargin import KernelSVC, load

    folder = tempfile.mkdtemp()

    def job(n):
        X, y = data(n, 400)
        path = Path(folder) / f"{n}.mm"
        model = KernelSVC(n_threads=1, max_iter=1).fit(X, y)

        def run():
            model.save(path)
            return exact(load(path).decision_function(X[:10]).tobytes())

        return run

    return job(100), job(3000)


JOBS = {
    "rbf": lambda: kernel_fit(),
    "rbf, small cache": lambda: kernel_fit(cache_size=20, n=3000),
    "rbf, 2 threads": lambda: kernel_fit(threads=2, n=3000),
    "poly, lee-lin-wahba": lambda: kernel_fit(machine="lee-lin-wahba", kernel="poly", degree=2, n=800),
    "one-vs-rest, free bias": lambda: kernel_fit(machine="one-vs-rest", bias="free", n=800),
    "dasmc": lambda: kernel_fit(solver="dasmc"),
    "linear": linear_fit,
    "search": search,
    "prediction": prediction,
    "read libsvm": lambda: reading("libsvm"),
    "read csv": lambda: reading("csv"),
    "read npz": lambda: reading("npz"),
    "model file": model_file,
}


# -- in the process of a job -------------------------------------------------------------------------------
def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(name + ":"))


def limit_group(size):
    """Let the control group of this process grow by so many bytes."""
    folder = Path(os.environ["MULTIMARGIN_GROUP"])
    for limit, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
        if (folder / limit).exists():
            (folder / limit).write_text(str(int((folder / used).read_text()) + size))


def work(name, kind, limit):
    """Do a job within a limit; prints what became of it and what it needed."""
    import warnings

    from multimargin.datasets import MalformedFileError

    warnings.simplefilter("ignore")
    small, large = JOBS[name]()
    small()
    peak = {"address": "VmPeak", "group": "VmHWM"}[kind]
    before = status({"address": "VmSize", "group": "VmRSS"}[kind])
    if limit and kind == "address":
        resource.setrlimit(resource.RLIMIT_AS, (before + limit,) * 2)
    elif limit:
        limit_group(limit)
    try:
        content, *certificate = large()
    except MemoryError:
        print("MemoryError")
    except MalformedFileError as error:
        assert "free" in str(error), error
        print("refused")
    else:
        print("done", hashlib.sha256(content).hexdigest(), *certificate, status(peak) - before)


# -- the processes of jobs ---------------------------------------------------------------------------------
def run(name, kind, limit, group=None):
    """What became of a job in a process of its own, as words."""
    command = [sys.executable, __file__, "--work", name, "--limit", kind, "--bytes", str(limit)]
    if group is not None:  # made anew, without a limit; the shell enters it and becomes Python
        group.rmdir()
        group.mkdir()
        command = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group), *command]
    variables = os.environ | {"OPENBLAS_NUM_THREADS": "1", "MULTIMARGIN_GROUP": str(group)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIME, env=variables)
    if group is not None and limit and done.returncode == -signal.SIGKILL:
        return ["killed"]
    if done.returncode:
        return ["CRASH", str(done.returncode), done.stdout[-500:], done.stderr[-1500:]]
    # SciPy prints a line of its own if it has too little.
    return done.stdout.splitlines()[-1].split()


def same(said, free, kind):
    """Whether two jobs found the same."""
    if said[0] != "done" or kind == "address" or said[1] == free[1]:
        return said[:2] == free[:2]
    (one, gap), (other, slack) = ([float(word) for word in words[2:4]] for words in (said, free))
    return 0 < gap < 5 * slack and abs(one - other) <= gap + slack


def every_tenth(name, kind, tenths, group=None):
    """Words about a job, and whether all went well."""
    free = run(name, kind, 0, group)
    assert free[0] == "done", free
    need = int(free[-1])
    outcomes, good = [], True
    for tenth in tenths:
        said = run(name, kind, need * tenth // 10, group)
        right = said in (["MemoryError"], ["killed"], ["refused"]) or same(said, free, kind)
        good = good and right
        outcomes.append(said[0] if right else f"FAULT {said}")
    return f"needs {need >> 20:5d} MiB: " + " ".join(outcomes), good


def make_group():
    """A control group below this process's own, or why there is none."""
    from multimargin.system.memory import _cgroups

    own = _cgroups(Path("/"))
    if not own:
        return None, "this process is in no control group with a limit of memory"
    folder = own[0].folder / f"multimargin-{uuid.uuid4().hex[:8]}"
    try:
        folder.mkdir()
    except OSError as error:
        return None, str(error)
    if not (folder / own[0].limit).exists():
        folder.rmdir()
        return None, "its memory cannot be limited here"
    return folder, ""


def all_jobs(names, kind, tenths):
    """Whether all jobs went well under this kind of limit."""
    group, why = make_group() if kind == "group" else (None, "")
    if why:
        print(f"no control group can be made here: {why}")
        return True
    good = True
    try:
        for name in names:
            words, right = every_tenth(name, kind, tenths, group)
            print(f"{kind:<8} {name:<24} {words}", flush=True)
            good = good and right
    finally:
        if group is not None:
            group.rmdir()
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("jobs", nargs="*", help="which jobs; all by default")
    parser.add_argument("--limit", choices=["address", "group"], help="which kind of limit; both by default")
    parser.add_argument(
        "--tenths", type=int, nargs="+", default=range(1, 10), help="of what a job needs; all by default"
    )
    parser.add_argument("--work", choices=JOBS, help=argparse.SUPPRESS)
    parser.add_argument("--bytes", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work(args.work, args.limit, args.bytes)
        return 0
    kinds = [args.limit] if args.limit else ["address", "group"]
    good = [all_jobs(args.jobs or list(JOBS), kind, args.tenths) for kind in kinds]
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
