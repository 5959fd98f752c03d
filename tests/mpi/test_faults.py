"""If one rank fails, all end, soon and with a message; if all fail alike, the program can go on."""

import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest
from faulty import only_the_team
from launch import on_ranks, start

FAULTY = str(Path(__file__).with_name("faulty.py"))
STOPPED = "rank 1 on host .* has given no sign of life for 2 s"


def faulty(P, what, timeout=60.0, env=None):
    return start(P, FAULTY, what, timeout, env=env)


def pids(job, P):
    """Process ids of the ranks, once all of them fit."""
    job.until(*(f"rank{rank} pid" for rank in range(P)))
    return [int(re.search(rf"rank{rank} pid (\d+)", job.text()).group(1)) for rank in range(P)]


def ended(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


def after(job, ranks, limit):
    """The end of the job and the seconds until all of the ranks have ended."""
    begin = time.monotonic()
    result = job.finish(limit + 10)
    while not all(map(ended, ranks)) and time.monotonic() < begin + limit + 10:
        time.sleep(0.02)
    return result, time.monotonic() - begin


def test_an_exception_on_one_rank_ends_all_of_them_with_its_message():
    result = faulty(2, "exception").finish(30)
    assert result.code not in (0, None)
    assert "rank 1 of 2 on host" in result.err
    assert "ValueError: only rank 1 has bad data" in result.err


def test_a_killed_rank_ends_all_of_them_within_five_seconds():
    job = faulty(2, "wait")
    ranks = pids(job, 2)
    os.kill(ranks[1], signal.SIGKILL)
    result, seconds = after(job, ranks, 5)
    assert result.code not in (0, None)
    assert seconds < 5


def test_a_silent_rank_is_noticed_within_the_timeout():
    job = faulty(3, "wait", timeout=2.0)
    ranks = pids(job, 3)
    time.sleep(0.5)
    os.kill(ranks[1], signal.SIGSTOP)
    result, seconds = after(job, ranks, 10)
    assert result.code not in (0, None)
    assert re.search(STOPPED, result.err)
    assert 1.5 < seconds < 5


@pytest.mark.parametrize("whom", ["a rank", "the terminal"])
def test_ctrl_c_ends_the_fit_on_all_ranks_in_the_same_round_and_the_program_goes_on(whom):
    job = faulty(2, "keep")
    ranks = pids(job, 2)
    time.sleep(0.2)
    if whom == "a rank":
        os.kill(ranks[1], signal.SIGINT)
    else:
        job.interrupt()
    job.until(*(f"rank{rank} pid {pid} attempt 1" for rank, pid in enumerate(ranks)))
    time.sleep(0.2)
    os.kill(ranks[0], signal.SIGINT)  # mpiexec would take a second Ctrl-C for its own end
    result = job.finish(20)
    words = [f"rank{rank} interrupted {attempt}" for rank in range(2) for attempt in range(2)]
    words += [f"rank{rank} sum 2" for rank in range(2)]
    assert not [word for word in words if word not in result.out], result.out + result.err
    assert result.code == 0


def test_a_second_ctrl_c_on_a_rank_that_waits_ends_all_ranks():
    job = faulty(2, "stuck")
    ranks = pids(job, 2)
    os.kill(ranks[0], signal.SIGINT)
    time.sleep(0.8)
    os.kill(ranks[0], signal.SIGINT)
    result, seconds = after(job, ranks, 8)
    assert result.code not in (0, None)
    assert "KeyboardInterrupt" in result.err
    assert seconds < 5


def on_every_rank():
    """Failures on all ranks at once, one after the other, in one start."""
    team, found = only_the_team().assemble(), []
    for attempt in range(3):
        try:
            with team.together():
                team.sum([1.0])
                if attempt == 1:
                    interrupted_wait(team)
                raise ValueError(f"C must be positive on rank {team.rank}")
        except (ValueError, ZeroDivisionError) as error:
            found.append(str(error))
    with team.together():
        found.append(float(team.sum([1.0])[0]))
        found.append(in_another_thread(team))
        with team.together():  # a fit within a fit is part of it
            found.append(float(team.sum([2.0])[0]))
    return found


def in_another_thread(team):
    """The error of a second fit at the same time."""
    errors = []

    def fit():
        try:
            with team.together():
                team.sum([1.0])
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=fit)
    thread.start()
    thread.join()
    return errors[0]


def interrupted_wait(team):
    """All ranks give up in the middle of a message."""

    def give_up(verb, seconds):
        raise ZeroDivisionError(verb)

    team._messages.patience = give_up
    try:
        if team.rank == 0:
            time.sleep(0.5)
            raise ZeroDivisionError("max")
        team.max(5.0)
    finally:
        team._messages.patience = None


def test_the_same_failure_on_all_ranks_can_be_caught_and_the_next_fit_works():
    for rank, found in enumerate(on_ranks(2, on_every_rank)):
        message = f"C must be positive on rank {rank}"
        assert found[:4] == [message, "max", message, 2.0]
        assert "Two threads fit with the same ranks" in found[4]
        assert found[5] == 4.0


def test_a_rank_that_computes_for_longer_than_the_timeout_or_comes_late_is_no_fault():
    result = faulty(2, "patient", timeout=1.5).finish(60)
    assert result.code == 0, result.err
    assert result.out.count("finished") == 4
    assert re.search("rank 0 has waited 1.5 s for rank 1 on host .* to call fit", result.err)


def test_without_threads_in_mpi_a_rank_that_waits_too_long_ends_all():
    env = {"MPI4PY_RC_THREAD_LEVEL": "serialized"}
    job = faulty(2, "wait", timeout=1.0, env=env)
    ranks = pids(job, 2)
    os.kill(ranks[1], signal.SIGSTOP)
    result, seconds = after(job, ranks, 10)
    assert result.code not in (0, None)
    assert "MPI_THREAD_MULTIPLE" in result.err
    assert "rank 0 of 2 on host" in result.err
    assert re.search("has waited 1 s .* for the other ranks in '(agree|sum)'", result.err)
    assert seconds < 5
