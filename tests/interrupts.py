"""Ctrl-C for fits in a process of their own."""

import json
import signal
import subprocess
import sys
import threading
import time

import psutil

# Runs scripts in a process of its own, one after another: what they import is imported once.
_SERVER = """
import json, signal, sys
import multimargin

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
for line in sys.stdin:
    script, *sys.argv[1:] = json.loads(line)
    exec(compile(script, "interrupted", "exec"), {"__name__": "__main__"})
"""
_LIMIT = 60  # seconds after which a process that says nothing is ended
_PATIENCE = 5.0  # seconds for which a busy machine may keep a process waiting


class _Interruptible:
    """A process that runs scripts and can be interrupted again and again."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.usage = psutil.Process(self.process.pid).cpu_times

    def cpu_seconds(self):
        times = self.usage()
        return times.user + times.system

    def words(self):
        """The next line that the script prints."""
        timer = threading.Timer(_LIMIT, self.process.kill)
        timer.start()
        try:
            line = self.process.stdout.readline()
        finally:
            timer.cancel()
        assert line, f"the script ended: {self.process.communicate()[1]}"
        return line.split()

    def interrupt(self, script, args, after):
        self.process.stdin.write(json.dumps([script, *args]) + "\n")
        self.process.stdin.flush()
        assert self.words() == ["ready"]
        begin, limit = self.cpu_seconds(), time.monotonic() + _LIMIT
        while self.cpu_seconds() < begin + after:
            assert time.monotonic() < limit, "the fit ended before it could be interrupted"
            time.sleep(0.01)
        sent, used = time.monotonic(), self.cpu_seconds()
        self.process.send_signal(signal.SIGINT)
        first, heard, *rest = self.words()
        wall, cpu = float(heard) - sent, self.cpu_seconds() - used
        return wall if wall > _PATIENCE else min(wall, cpu), [first, *rest]


_running = []


def interrupted(script, *args, after=0.3):
    """Run a script that says "ready" and fits for long, send SIGINT; (seconds until heard, words printed).

    The signal is sent when the process has used ``after`` seconds of CPU time since it was ready: by then the
    fit is under way, on an idle machine and on a busy one. It prints a word and the time.monotonic() at which
    it heard. Seconds are CPU seconds of the process if those are fewer: on a busy machine it has to wait.
    """
    if not _running:
        _running.append(_Interruptible())
    try:
        return _running[0].interrupt(script, args, after)
    except BaseException:
        process = _running.pop().process
        process.kill()
        process.wait()
        raise
