"""A checkpointed fit is killed at random moments, again and again: nothing is torn, and nothing is lost.

A process that has imported everything forks one child per kill, because a new interpreter would take most of
the time. The children write after every round, so that many of them die while they write.
"""

import json
import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the fits are forked")

SCRIPT = textwrap.dedent(
    """
    import json, os, random, select, signal, sys, time, warnings
    from pathlib import Path
    import numpy as np
    from sklearn.datasets import load_digits
    from multimargin import KernelSVC
    from multimargin.run.checkpoint_file import read

    warnings.simplefilter("error")
    path, kills, machine, bias = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    X, y = load_digits(return_X_y=True)
    X, y = X[:150] / 16.0, y[:150]
    if machine == "c-svc":
        y = y % 2

    def model(**params):
        solver = {"solver": "svm-light"} if machine == "c-svc" else {"solver": "dasmc", "working_set_size": 4}
        return KernelSVC(machine, C=10.0, tol=1e-4, bias=bias, n_threads=1, **(solver | params))

    def child(pipe):
        def say(row):
            os.write(pipe, b".")

        model(checkpoint=(path, 0.0), callback=say).fit(X, y)

    chance, facts = random.Random(1), {"loads": [], "torn": 0, "left": 0, "failed": 0}
    for kill in range(kills):
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(ours)
            try:
                child(theirs)
            except BaseException as error:
                os.write(theirs, b"!")
                sys.stderr.write(f"{error!r}")
            os._exit(0)
        os.close(theirs)
        if kill % 5:  # else at any moment of the start
            select.select([ours], [], [], 30.0)  # until the first round
        time.sleep(chance.random() * 0.02)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        facts["failed"] += b"!" in os.read(ours, 65536)
        os.close(ours)
        facts["left"] = max(facts["left"], len(os.listdir(path.parent)) - path.exists())
        facts["torn"] += len(os.listdir(path.parent)) > path.exists()
        facts["loads"].append(read(path).facts["iterations"] if path.exists() else 0)
    fastest = {"solver": "auto", "working_set_size": "auto"}
    end = model(checkpoint=path, **fastest).fit(X, y)
    whole = model(**fastest).fit(X, y)
    facts |= {"files": os.listdir(path.parent), "status": end.status_.name, "n_iter": end.n_iter_}
    facts |= {"gap": end.duality_gap_, "duals": [end.dual_objective_, whole.dual_objective_]}
    print(json.dumps(facts))
    """
)


def killed(path, kills, machine="crammer-singer", bias="none"):
    """What a fit that was killed so many times says in the end."""
    command = [sys.executable, "-c", SCRIPT, str(path), str(kills), machine, bias]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    result = subprocess.run(command, capture_output=True, text=True, timeout=110, env=environment)
    assert result.returncode == 0, result.stderr
    assert not result.stderr
    return json.loads(result.stdout)


def check(facts, path, kills):
    at = facts["loads"]
    assert len(at) == kills
    assert at == sorted(at)  # every child went on where the last one was, or later
    assert at[-1] >= 5  # few on a busy machine, on which most are killed before their first write
    assert not facts["failed"]
    assert facts["torn"] > 0  # some were killed while they wrote
    assert facts["left"] == 1  # the next one removed what they left
    assert facts["files"] == [path.name]
    assert facts["status"] == "CONVERGED"
    assert facts["n_iter"] >= at[-1]
    one, other = facts["duals"]
    assert abs(one - other) <= 1e-2 * abs(other)


def test_a_hundred_kills_tear_and_lose_nothing(tmp_path):
    path = tmp_path / "fit.checkpoint"
    check(killed(path, 100), path, 100)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "bias"), [("crammer-singer", "free"), ("c-svc", "auto"), ("msvm2", "none")]
)
def test_other_machines_survive_kills(machine, bias, tmp_path):
    path = tmp_path / "fit.checkpoint"
    check(killed(path, 20, machine, bias), path, 20)
