"""Our end of a contender's process (the other end is workers/worker.py)."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

from benchmarks.lib.contenders import Contender
from benchmarks.lib.data import ROOT
from benchmarks.lib.turns import WithdrawnError
from benchmarks.workers.instructions import under_callgrind

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
SLEEPING = {"OMP_WAIT_POLICY": "passive"}  # threads that spin while they wait stand still on shared cores


class TooSlowError(WithdrawnError):
    """A contender that was stopped at its limit."""

    def __init__(self, limit: float) -> None:
        super().__init__(f"> {limit:g} s")
        self.limit = limit


class Worker:
    """A process that holds one contender and one problem, and does what it is asked."""

    def __init__(self, contender: Contender, problem: Path, threads: int, callgrind: bool = False) -> None:
        threads = 1 if contender.one_thread else threads
        before, variables = under_callgrind(problem.parent, contender.name) if callgrind else ([], {})
        self._log = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            [
                *before,
                contender.python,
                "-m",
                "benchmarks.workers.worker",
                contender.adapter,
                problem,
                str(threads),
            ],
            cwd=ROOT,
            env=os.environ
            | SLEEPING
            | dict.fromkeys(THREAD_VARIABLES, str(threads))
            | {"PYTHONPATH": contender.search_path}
            | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,  # a contender may have started processes of its own
        )
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def ask(self, command: str, *, limit: float | None = None, **arguments: Any) -> dict[str, Any]:
        """The answer to a command.

        WithdrawnError if there was an error; TooSlowError after ``limit`` seconds, and the process is ended.
        """
        try:
            self._process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WithdrawnError(f"its process ended: {self._last_words()}") from None
        try:
            line = self._answers.get(timeout=limit)
        except queue.Empty:
            self.close()
            raise TooSlowError(limit) from None
        if not line:
            raise WithdrawnError(f"its process ended: {self._last_words()}")
        answer = json.loads(line)
        if "error" in answer:
            raise WithdrawnError(answer["error"])
        return answer

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        """End the process and all that it started."""
        if self._log.closed:
            return
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # the session's leader: the group has its id
        else:
            self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._log.close()

    def _listen(self) -> None:
        with self._process.stdout as lines:
            for line in lines:
                self._answers.put(line)
        self._answers.put("")

    def _last_words(self) -> str:
        self._process.wait()
        self._log.seek(0)
        lines = self._log.read().strip().splitlines()
        return lines[-1] if lines else f"status {self._process.returncode}"
