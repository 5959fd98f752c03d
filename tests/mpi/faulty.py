"""A rank that fails in some way: ``python faulty.py WHAT TIMEOUT``. It stands for a fit."""

import importlib.util
import os
import sys
import time
import types
from pathlib import Path


def only_the_team():
    """MpiTeam without the rest of the package: a rank starts several times faster."""
    folder = Path(importlib.util.find_spec("multimargin").origin).parent
    for name, path in (("multimargin", folder), ("multimargin.engines", folder / "engines")):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [str(path)]
    return importlib.import_module("multimargin.engines.mpi.team").MpiTeam


def rounds(team, seconds):
    """What a fit does: a message, some work, and the question whether to go on."""
    limit = time.monotonic() + seconds
    while team.agree(time.monotonic() < limit):
        team.sum([1.0])
        time.sleep(0.01)


def say(team, *words):
    os.write(1, (" ".join(map(str, (f"rank{team.rank}", *words))) + "\n").encode())


def exception(team):
    with team.together():
        if team.rank == 1:
            raise ValueError("only rank 1 has bad data")
        team.sum([1.0])


def wait(team):
    with team.together():
        say(team, "pid", os.getpid())
        rounds(team, 40)


def stuck(team):
    """Rank 1 never comes to the message for which rank 0 waits."""
    with team.together():
        say(team, "pid", os.getpid())
        if team.rank == 1:
            time.sleep(40)
        team.sum([1.0])


def patient(team):
    """Rank 1 computes for longer than the timeout, then comes late to the next fit: neither is a fault."""
    with team.together():
        if team.rank == 1:
            time.sleep(2 * team.timeout)
        team.sum([1.0])
    say(team, "finished")
    if team.rank == 1:
        time.sleep(2 * team.timeout)
    with team.together():
        rounds(team, 0.1)
    say(team, "finished")


def keep(team):
    """Ctrl-C ends the fit on all ranks in the same round, and the program goes on."""
    for attempt in range(2):
        try:
            with team.together():
                say(team, "pid", os.getpid(), "attempt", attempt)
                rounds(team, 40)
        except KeyboardInterrupt:
            say(team, "interrupted", attempt)
    with team.together():
        say(team, "sum", int(team.sum([1.0])[0]))


if __name__ == "__main__":
    globals()[sys.argv[1]](only_the_team().assemble(timeout=float(sys.argv[2])))
