"""Some seconds of libFuzzer on the native readers of text; `make fuzz` takes a million inputs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("fuzz_readers.py")


def test_readers_survive_every_input():
    done = subprocess.run([sys.executable, str(SCRIPT), "--inputs", "30000"], capture_output=True, text=True)
    if "left out" in done.stdout:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    units = re.search(r"stat::number_of_executed_units: (\d+)", done.stdout)
    assert int(units[1]) >= 30000
