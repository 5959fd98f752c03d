"""Some seconds of the fuzzers, in processes of their own: a crash, a hang or too much memory would end them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("script", "inputs"), [("fuzz.py", 50_000), ("fuzz_stored.py", 1500)])
def test_damaged_files_are_refused_or_read_correctly(script, inputs):
    driver = Path(__file__).with_name(script)
    command = [sys.executable, str(driver), "--inputs", str(inputs), "--seconds", "20"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    inputs, accepted, refused = (
        int(n.replace(",", "")) for n in re.findall(r"([\d,]+) (?:inputs,|acc|ref)", done.stdout)
    )
    assert inputs == accepted + refused and inputs > 100
    assert 0.05 * inputs < accepted < 0.95 * inputs  # it makes right and wrong files
