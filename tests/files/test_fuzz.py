"""Some seconds of the fuzzer, in a process of its own: a crash, a hang or too much memory would end it."""

import re
import subprocess
import sys
from pathlib import Path

DRIVER = Path(__file__).with_name("fuzz.py")


def test_damaged_files_are_refused_or_read_correctly():
    command = [sys.executable, str(DRIVER), "--inputs", "50000", "--seconds", "20"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    inputs, accepted, refused = (
        int(n.replace(",", "")) for n in re.findall(r"([\d,]+) (?:inputs,|acc|ref)", done.stdout)
    )
    assert inputs == accepted + refused and inputs > 1000
    assert 0.05 * inputs < accepted < 0.95 * inputs  # it makes right and wrong files
