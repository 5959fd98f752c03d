"""One case in a process of its own: fitted, judged, and killed if it takes too long."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import traceback
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import psutil
import refusals
from cases import case
from judge import judge
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

PATIENCE = 90.0  # seconds of the processor for a fit without a time limit, and for the judge
BEYOND, NOISE = 1.1, 0.1  # a fit may take this share of its limit, and seconds to begin and to end
KNOWN = (
    "not positive semidefinite",
    "number of unique classes is greater",
)  # warnings beside ConvergenceWarning


def fitted(model, rows):
    """The model or the error, warnings, and the seconds that the fit took: those of the clock or of the
    processor, whichever are fewer, so that a busy machine does not count."""
    clocks = time.perf_counter, time.process_time
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = [clock() for clock in clocks]
        try:
            weighted = {} if rows.weight is None else {"sample_weight": rows.weight}
            outcome = model.fit(rows.X, rows.y, **weighted)
        except Exception as error:
            outcome = error
        took = min(clock() - begun for clock, begun in zip(clocks, start, strict=True))
    return outcome, caught, took


def verdict(number):
    """A word, as in the head of ``run.py``, and what was found."""
    given = case(number)
    outcome, caught, took = fitted(given.estimator(), given.rows)
    caught = [w for w in caught if not _is_of_the_check(w, given.rows.X)]
    said = [
        f"a {w.category.__name__}: {w.message} ({Path(w.filename).name}:{w.lineno})"
        for w in caught
        if not _is_known(w)
    ]
    if given.limit is not None and took > BEYOND * given.limit + NOISE:
        said.append(f"took {took:.2f} s for a limit of {given.limit:g} s")
    if isinstance(outcome, Exception):
        if not refusals.is_true(given, outcome):
            place = traceback.extract_tb(outcome.__traceback__)[-1]
            at = f"{Path(place.filename).name}:{place.lineno}"
            said.append(f"raised without a reason: {type(outcome).__name__}: {outcome} ({at})")
        return ("WRONG" if said else "refused"), "; ".join(said) or str(outcome)
    texts = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    try:
        said += faults(given, outcome, texts)
    except ValueError as error:  # of a function that fails when it predicts
        return ("refused", str(error)) if refusals.is_true(given, error) else ("WRONG", str(error))
    if said:
        return "WRONG", "; ".join(said)
    return ("honest", texts[0]) if texts else ("right", outcome.status_.name)


def faults(given, model, texts):
    """What is wrong with a fitted model that warned of these texts."""
    steady = given.lie is None or getattr(given.params["kernel"], "steady", True)
    if not steady or any("cannot prove" in text for text in texts):
        return [] if np.isfinite(model.decision_function(given.rows.X)).all() else ["scores are not finite"]
    with np.errstate(all="ignore"):
        said = judge(model, given).faults_of(model, given)
    if bool(texts) == model.status_.converged:
        said.append("warned though converged" if texts else "did not warn")
    return said


def _is_of_the_check(warning, X):
    """Whether it comes from scikit-learn's look at infinite values, which are then refused."""
    values = X.data if sparse.issparse(X) else np.asarray(X)
    return "in reduce" in str(warning.message) and values.dtype.kind == "f" and not np.isfinite(values).all()


def _is_known(warning):
    return issubclass(warning.category, ConvergenceWarning) or any(
        text in str(warning.message) for text in KNOWN
    )


# -- a process for it -------------------------------------------------------------------------------------
def _serve(number, pipe):
    try:
        pipe.send(verdict(number))
    except BaseException as error:  # whatever it is, it is a finding
        pipe.send(("WRONG", "".join(traceback.format_exception(error)[-3:])))
    pipe.close()


def _seconds_of(child):
    """Seconds of the processor that a process has taken: on a busy machine those of the clock say nothing."""
    try:
        times = psutil.Process(child.pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return times.user + times.system


def context():
    """Processes that begin with everything imported and no thread running."""
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])  # the server that makes them imports this module
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["trial"])
    return found


def tried(number, processes, patience=PATIENCE):
    """``verdict`` in a process of its own; "CRASH" if that dies and "HANG" if it is not done in time."""
    ours, theirs = processes.Pipe(duplex=False)
    child = processes.Process(target=_serve, args=(number, theirs), daemon=True)
    child.start()
    theirs.close()
    try:
        while not ours.poll(5.0) and _seconds_of(child) < patience:
            pass
        found = ours.recv() if ours.poll() else ("HANG", f"not done after {patience:g} s")
    except EOFError:
        child.join()
        found = "CRASH", f"the process ended with {child.exitcode}"
    child.kill()
    child.join()
    ours.close()
    return found
