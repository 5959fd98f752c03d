"""Some of what `make faults` does: fewer faults, the same checks, each script in a process of its own.

The scripts say what they look for, and end with an error if they find it.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LINUX = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
POSIX = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a POSIX system")


def lines(script, *options):
    """What a script prints; a fault fails the test, and what the machine lacks skips it."""
    command = [sys.executable, str(HERE / f"{script}.py"), *map(str, options)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    for said in ("left out: ", "no control group can be made here: "):
        if said in done.stdout:
            pytest.skip(done.stdout[done.stdout.index(said) :].strip())
    return done.stdout.splitlines()


def counts(script, *options, pattern):
    """The numbers in each line that a script prints."""
    found = [re.search(pattern, line) for line in lines(script, *options)]
    assert found and all(found)
    return [tuple(map(int, each.groups())) for each in found]


@POSIX
def test_files_that_do_not_fit_leave_the_old_ones():
    failed = counts("disk", "--only", "sizes", "--steps", 3, pattern=r"(\d+) writes failed")
    assert len(failed) == 16 and all(count > 0 for (count,) in failed)


@POSIX
def test_a_full_disk_leaves_the_old_files():
    ((writers, failed),) = counts("disk", "--only", "full", pattern=r"(\d+) writers: (\d+) writes failed")
    assert failed >= writers


@POSIX
@pytest.mark.slow
@pytest.mark.parametrize(
    ("writers", "kills"),
    [
        (["save", "report"], 60),
        (["checkpoint of a fit"], 60),
        (["checkpoint, free bias", "checkpoint, c-svc", "checkpoint, msvm2"], 60),
        (["checkpoint of a search"], 16),
    ],
    ids=["files", "fit", "other fits", "search"],
)
def test_kills_tear_and_lose_nothing(writers, kills):
    found = counts("kills", *writers, "--kills", kills, pattern=r"(\d+) kills, +(\d+) of them")
    assert sum(count for count, _ in found) == kills
    assert sum(hit for _, hit in found) > 0 or kills < 60  # some were writing; of a few kills perhaps none


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "job"), [("address", "rbf"), ("group", "prediction")])
def test_too_little_memory_is_an_error_or_enough(kind, job):
    """An error, or what the job finds with enough memory; a few of the tenths that `make faults` tries."""
    (told,) = lines("memory", job, "--limit", kind, "--tenths", 1, 5, 9)
    assert re.search("MemoryError|killed", told)  # some of the limits were too low


@LINUX
def test_the_threads_of_a_fit_need_memory_too():
    told = lines("memory", "rbf, 2 threads", "--limit", "address", "--tenths", 1)
    assert told[-1].endswith("MemoryError")


@POSIX
@pytest.mark.slow
def test_signals_leave_nothing_half_done():
    heard = counts("signals", "--signals", 3, pattern=r"(\d+) of 3 interrupts heard, (\d+) others")
    assert len(heard) == 10
    assert sum(interrupts for interrupts, _ in heard) > 5


@POSIX
@pytest.mark.slow
@pytest.mark.parametrize(
    "cases",
    [
        ["spawn", "forkserver"],
        ["forks while others fit", "threads of threads", "a fit within a kernel", "levels of OpenMP"],
    ],
    ids=["started", "nested"],
)
def test_fits_in_other_processes_and_within_fits(cases):
    """tests/system/test_threads.py has a plain fork, joblib and Python's threads."""
    fits = counts("processes", *cases, "--forks", 4, pattern=r"(\d+) fits")
    assert len(fits) == len(cases)


@LINUX
@pytest.mark.slow
def test_a_clock_that_jumps_changes_nothing():
    told = lines("clock", "--limit", 0.2)
    assert sum("TIME_LIMIT" in line for line in told) == 5


@pytest.mark.slow
def test_other_processes_find_the_same_bits():
    """tests/system/test_threads.py fits again in one process; here seeds of hashes and the load differ."""
    cases = ["crammer-singer, 2 threads", "linear, 3 threads"]
    found = counts("determinism", *cases, "--runs", 2, pattern=r"(\d+) runs, (\d+) different")
    assert found == [(2, 1), (2, 1)]
