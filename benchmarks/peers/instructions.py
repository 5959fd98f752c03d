"""How many instructions an action takes, by Linux's perf: the same whatever else the machine does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable

ATTACHING = 0.3  # seconds until perf certainly counts; this process sleeps meanwhile, which adds nothing


def count_events(action: Callable[[], object], event: str = "instructions:u") -> int | None:
    """Run the action and count; None where perf is missing or the machine has no such counter."""
    program = shutil.which("perf")
    if program is None:
        action()
        return None
    command = [program, "stat", "-x", ",", "-e", event, "-p", str(os.getpid())]
    perf = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    time.sleep(ATTACHING)
    try:
        action()
    finally:
        perf.send_signal(signal.SIGINT)
        _, said = perf.communicate()
    counts = [line.split(",")[0] for line in said.splitlines() if event.split(":")[0] in line]
    return int(counts[0]) if counts and counts[0].isdigit() else None
