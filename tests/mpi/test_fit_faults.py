"""Fits under MPI that end before their time: all ranks end them alike. One start of two ranks plays them."""

import os
import re
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from launch import start

RANKS = range(2)
WORDS = ("limit", "nan", "parameter", "kept", "again")
pytestmark = pytest.mark.slow


def line(job, rank, word):
    return re.search(rf"rank{rank} {word} (.*)", job.text()).group(1)


def interrupt(job, word, rank, answer):
    """Send Ctrl-C to a rank in the middle of a fit; seconds until all ranks answer."""
    job.until(*(f"rank{k} {word} " for k in RANKS))
    time.sleep(0.5)
    begin = time.monotonic()
    os.kill(int(line(job, rank, word)), signal.SIGINT)
    job.until(*(f"rank{k} {answer}" for k in RANKS), timeout=30)
    return time.monotonic() - begin


@pytest.fixture(scope="module")
def played():
    job = start(2, str(Path(__file__).with_name("fitting.py")))
    try:
        seconds = interrupt(job, "keep", 1, "kept"), interrupt(job, "raise", 0, "raised")
    finally:
        result = job.finish(40)
    said = {
        word: [line(job, rank, word) for rank in RANKS]
        for word in ("limit", "nan", "parameter", "kept", "again")
    }
    return SimpleNamespace(seconds=seconds, code=result.code, err=result.err, **said)


@pytest.mark.parametrize(("word", "status"), [("limit", "TIME_LIMIT"), ("kept", "INTERRUPTED")])
def test_a_time_limit_or_ctrl_c_leaves_the_same_model_on_all_ranks(played, word, status):
    first, second = getattr(played, word)
    assert first == second
    assert first.startswith(status)


def test_ctrl_c_on_any_rank_is_heard_by_all_within_seconds(played):
    assert max(played.seconds) < 5  # a round of these fits takes less than one


def test_bad_data_on_one_rank_and_bad_parameters_raise_on_all(played):
    assert all("Input X contains NaN" in message for message in played.nan)
    assert all("C must be a finite number > 0" in message for message in played.parameter)


def test_the_next_fit_works(played):
    assert played.again[0] == played.again[1]
    assert played.again[0].startswith("CONVERGED")


def test_a_callback_that_raises_ends_all_ranks_with_its_message(played):
    assert played.code not in (0, None)
    assert "rank 0 of 2 on host" in played.err
    assert "RuntimeError: the callback does not like it" in played.err
