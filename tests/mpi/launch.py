"""Start ranks under mpiexec.

``on_ranks(P, function, *args)`` calls a function of a test module on every rank and returns their results.
``start(P, script, *args)`` runs a script, and the caller watches it. Both skip the test, and say why, if MPI
cannot start here. The environment variable MULTIMARGIN_MPIEXEC names another mpiexec.
"""

import functools
import importlib
import importlib.util
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).resolve().parent


@functools.cache
def mpiexec():
    """The command that starts ranks, without their number; None if there is none."""
    beside = Path(sys.executable).parent / "mpiexec"
    named = os.environ.get("MULTIMARGIN_MPIEXEC")
    command = named or (str(beside) if beside.exists() else shutil.which("mpiexec"))
    if command is None:
        return None
    version = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=30).stdout
    open_mpi = "Open MPI" in version or "OpenRTE" in version
    return [command, *(["--allow-run-as-root", "--oversubscribe"] if open_mpi else [])]


@functools.cache
def why_not():
    """Why MPI cannot start here; empty if it can."""
    if importlib.util.find_spec("mpi4py") is None:
        return "mpi4py is not installed"
    if mpiexec() is None:
        return "there is no mpiexec"
    result = run_script(2, "from mpi4py import MPI; raise SystemExit(MPI.COMM_WORLD.allreduce(1) != 2)")
    if result.code != 0:
        return f"MPI does not start two ranks: exit code {result.code}, {result.err.strip()[-300:]}"
    return ""


def need_mpi():
    """Skip the running test if MPI cannot start."""
    import pytest  # ranks need it not

    if why_not():
        pytest.skip(why_not())


class Job:
    """Ranks that run; ``finish`` waits for their end."""

    def __init__(self, P, script, *args, env=None):
        path = ["-c", script] if "\n" in script or " " in script else [script]
        command = [*mpiexec(), "-n", str(P), sys.executable, *path, *map(str, args)]
        self.begin = time.monotonic()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=rank_environment() | (env or {}),
            start_new_session=True,
        )
        self.lines = {"out": [], "err": []}
        self.news = threading.Condition()
        self.readers = [
            threading.Thread(target=self._read, args=(name, stream), daemon=True)
            for name, stream in (("out", self.process.stdout), ("err", self.process.stderr))
        ]
        for reader in self.readers:
            reader.start()

    def _read(self, name, stream):
        for line in stream:
            with self.news:
                self.lines[name].append(line)
                self.news.notify_all()
        stream.close()

    def text(self, name="out"):
        with self.news:
            return "".join(self.lines[name])

    def until(self, *words, timeout=60.0):
        """Wait until all ``words`` have been printed."""
        limit = time.monotonic() + timeout
        while not all(word in self.text() for word in words):
            alive = self.process.poll() is None
            assert alive, f"the ranks ended: {self.text()}{self.text('err')}"
            assert time.monotonic() < limit, f"no {words} in {timeout} s: {self.text()}{self.text('err')}"
            with self.news:
                self.news.wait(0.1)

    def interrupt(self):
        """What Ctrl-C in a terminal does: mpiexec and all processes of its group get the signal."""
        os.killpg(self.process.pid, signal.SIGINT)

    def finish(self, timeout=60.0):
        """Exit code (None if it ran out of time and was killed), output, seconds since the start."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
            end_tree(self.process.pid)
            self.process.wait()
        for reader in self.readers:
            reader.join(5.0)
        seconds = time.monotonic() - self.begin
        return SimpleNamespace(code=code, out=self.text(), err=self.text("err"), seconds=seconds)


def end_tree(pid):
    """Kill a process that this test has started, and all that it has started."""
    import psutil

    try:
        parent = psutil.Process(pid)
        family = [*parent.children(recursive=True), parent]
    except psutil.NoSuchProcess:
        return
    for process in family:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue


def rank_environment():
    """One thread of BLAS per rank, and the modules of the tests."""
    paths = [str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    return os.environ | {
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONUNBUFFERED": "1",
    }


def run_script(P, script, *args, timeout=60.0, env=None):
    return Job(P, script, *args, env=env).finish(timeout)


def start(P, script, *args, env=None):
    need_mpi()
    return Job(P, script, *args, env=env)


def on_ranks(P, function, *args, timeout=120.0, env=None):
    """What ``function(*args)`` returns on each of ``P`` ranks. An exception on a rank fails the test."""
    need_mpi()
    with tempfile.TemporaryDirectory() as folder:
        call = Path(folder) / "call"
        file = Path(sys.modules[function.__module__].__file__).resolve()
        call.write_bytes(pickle.dumps((str(file.parent), file.stem, function.__name__, args)))
        result = run_script(P, str(HERE / "launch.py"), call, timeout=timeout, env=env)
        assert result.code == 0, f"exit code {result.code} (None: out of time)\n{result.out}\n{result.err}"
        return [pickle.loads((Path(folder) / f"rank{rank}").read_bytes()) for rank in range(P)]


def _rank(call):
    """One rank of ``on_ranks``."""
    folder, module, name, args = pickle.loads(Path(call).read_bytes())
    sys.path.insert(0, folder)
    result = getattr(importlib.import_module(module), name)(*args)
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.Get_rank()
    Path(call).with_name(f"rank{rank}").write_bytes(pickle.dumps(result))


if __name__ == "__main__":
    _rank(sys.argv[1])
