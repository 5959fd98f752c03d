"""How many instructions an action takes: a count that does not depend on what else the machine does.

Linux's perf counts at full speed, if the processor's counters can be read (virtual machines often hide
them). Valgrind's callgrind counts everywhere, about fifty times slower: a process that was started by
``under_callgrind`` runs uninstrumented until the action.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

ATTACHING = 0.3  # seconds until perf certainly counts; this process sleeps meanwhile, which adds nothing
DUMP = "MULTIMARGIN_CALLGRIND"  # environment variable: where callgrind writes its counts


def count_instructions(action: Callable[[], object]) -> int | None:
    """Run the action and count; None if nothing here can count."""
    return count_by_callgrind(action) if DUMP in os.environ else count_events(action)


def count_events(action: Callable[[], object], event: str = "instructions:u") -> int | None:
    """Run the action and count by perf; None if perf is missing or the machine has no such counter."""
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


# -- callgrind -------------------------------------------------------------------------------------------
def missing_callgrind() -> str | None:
    """Why callgrind cannot be used here, if so."""
    absent = [name for name in ("valgrind", "callgrind_control") if shutil.which(name) is None]
    return f"no {' and no '.join(absent)}" if absent else None


def under_callgrind(folder: Path, name: str) -> tuple[list[str], dict[str, str]]:
    """What to put before a command, and into its environment, to count its instructions on demand."""
    dump = folder / f"{name}.callgrind"
    options = ["--tool=callgrind", "--instr-atstart=no", "--vgdb-poll=100", f"--callgrind-out-file={dump}"]
    return ["valgrind", "-q", *options], {DUMP: str(dump), "PYTHONHASHSEED": "0"}


def count_by_callgrind(action: Callable[[], object]) -> int:
    """Run the action and count; this process was started by ``under_callgrind``."""
    _control("-i", "on")
    action()
    _control("-i", "off")
    _control("-d")
    dump = Path(os.environ[DUMP])
    newest = max(dump.parent.glob(f"{dump.name}.*"), key=lambda path: int(path.suffix[1:]))
    return next(
        int(line.split()[1]) for line in newest.read_text().splitlines() if line.startswith("totals:")
    )


def _control(*words: str) -> None:
    """Tell callgrind, and wait in short sleeps: it listens only while this process executes something."""
    command = ["callgrind_control", *words, str(os.getpid())]
    control = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while control.poll() is None:
        time.sleep(0.02)
    if control.returncode:
        raise RuntimeError(f"{' '.join(command)}: {control.stderr.read().decode()}")
    control.stderr.close()
