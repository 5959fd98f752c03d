"""One rank of a fit under mpiexec: loads a problem, makes a small fit, then the one that counts.

    mpiexec -n RANKS python -m benchmarks.workers.mpi_worker FOLDER

FOLDER has ``job``, a pickled ``Job``, and gets ``rank0``, ``rank1``, … : what each rank counted, as a pickled
dict. Every rank reads all rows, and the engine takes its slice of them. Reading is not timed.
"""

from __future__ import annotations

import pickle
import resource
import sys
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpi4py import MPI
from sklearn.exceptions import ConvergenceWarning

from benchmarks.workers.storage import few_rows, read_split
from benchmarks.workers.tally import tallied
from multimargin import KernelSVC

WARM_UP_ROWS = 60


@dataclass
class Job:
    """A fit that all ranks make together; ``parameters`` are those of KernelSVC."""

    problem: Path
    parameters: dict[str, Any]
    repeats: int = 1
    call: Any = None  # a function of a module, to be called instead of fitting
    more: dict[str, Any] = field(default_factory=dict)  # its arguments


def fitted(parameters: dict[str, Any], X: Any, y: Any) -> KernelSVC:
    with warnings.catch_warnings():  # whether it converged is said in the record
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KernelSVC(**parameters).fit(X, y)


def measured(parameters: dict[str, Any], X: Any, y: Any) -> dict[str, Any]:
    """One fit: seconds, CPU seconds, counts, and the model's coefficients."""
    MPI.COMM_WORLD.Barrier()
    with tallied() as tally:
        start, cpu = time.perf_counter(), time.process_time()
        model = fitted(parameters, X, y)
        times = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
    last = model.trace_[-1]
    coefficients = {
        "support": model.support_,
        "dual_coef": model.dual_coef_,
        "classes": model.classes_,
        "intercept": model._class_bias,
        "machine": model.machine,
        "bias": model.bias_,
    }
    return (
        times
        | tally.record()
        | {
            "info": dict(model.trace_.info),
            "profile": dict(model.trace_.info["profile"]),
            "converged": bool(model.status_.converged),
            "iterations": int(model.n_iter_),
            "rows": int(last.rows),
            "inner": int(sum(model.trace_["inner"])),
            "dual": float(model.dual_objective_),
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "coefficients": coefficients,
        }
    )


def main() -> None:
    folder, rank = Path(sys.argv[1]), MPI.COMM_WORLD.Get_rank()
    job = pickle.loads((folder / "job").read_bytes())
    if job.call is not None:
        found = [job.call(**job.more)]
    else:
        split = read_split(job.problem)
        small = few_rows(split, WARM_UP_ROWS)
        fitted(job.parameters, small.X_train, small.y_train)
        found = [measured(job.parameters, split.X_train, split.y_train) for _ in range(job.repeats)]
    if rank:
        for record in found:
            record.pop("coefficients", None)  # rank 0 has them
    (folder / f"rank{rank}").write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main()
