"""A minute of the fuzzer, in processes of its own: a crash, a hang or too much memory would end it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DRIVER = Path(__file__).with_name("fuzz.py")


@pytest.mark.parametrize(
    ("first", "seconds"), [("0", "20"), pytest.param("500000", "40", marks=pytest.mark.slow)]
)
def test_damaged_files_are_refused_or_read_correctly(first, seconds):
    command = [sys.executable, str(DRIVER), "--first", first, "--inputs", "200000", "--seconds", seconds]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    inputs, accepted, refused = (
        int(n.replace(",", "")) for n in re.findall(r"([\d,]+) (?:inputs,|acc|ref)", done.stdout)
    )
    assert inputs == accepted + refused and inputs > 1000
    assert 0.05 * inputs < accepted < 0.95 * inputs  # it makes right and wrong files
