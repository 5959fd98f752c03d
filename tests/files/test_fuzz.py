"""A minute of the fuzzers, in processes of their own: a crash, a hang or too much memory would end them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

CASES = [  # the script, the number of its first input, the most inputs, and seconds
    ("fuzz.py", 0, 200_000, 20),
    pytest.param("fuzz.py", 500_000, 200_000, 40, marks=pytest.mark.slow),
    ("fuzz_stored.py", 0, 1500, 20),
]


@pytest.mark.parametrize(("script", "first", "inputs", "seconds"), CASES)
def test_damaged_files_are_refused_or_read_correctly(script, first, inputs, seconds):
    command = [sys.executable, str(Path(__file__).with_name(script)), "--first", str(first)]
    command += ["--inputs", str(inputs), "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    inputs, accepted, refused = (
        int(n.replace(",", "")) for n in re.findall(r"([\d,]+) (?:inputs,|acc|ref)", done.stdout)
    )
    assert inputs == accepted + refused and inputs > 100
    assert 0.05 * inputs < accepted < 0.95 * inputs  # it makes right and wrong files
