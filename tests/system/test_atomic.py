"""Files that are written whole or not at all.

``tests/faults/kills.py`` kills processes that write.
"""

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from multimargin.system import atomic
from multimargin.system.atomic import prepare, replacing

OLD, NEW = b"old" * 50, bytes(range(256)) * 40


def write(path, content):
    with replacing(path) as file:
        for start in range(0, len(content), 1000):
            file.write(content[start : start + 1000])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.file"


def test_what_is_written_is_there_and_nothing_else(path):
    write(path, OLD)
    write(path, NEW)
    assert path.read_bytes() == NEW
    assert os.listdir(path.parent) == [path.name]


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(path):
    write(path, OLD)
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(NEW)
        raise ZeroDivisionError
    assert path.read_bytes() == OLD
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.skipif(os.name != "posix", reason="links are made the POSIX way")
def test_what_a_link_points_to_is_replaced(path):
    write(path, OLD)
    link = path.with_name("link")
    link.symlink_to(path)
    write(link, NEW)
    assert link.is_symlink()
    assert path.read_bytes() == NEW


def test_data_reach_the_disk_before_the_name_and_the_name_before_the_end(path, monkeypatch):
    calls = []

    def spy(name, describe):
        real = getattr(os, name)

        def wrapper(*args, **kwargs):
            calls.append((name, *describe(*args)))
            return real(*args, **kwargs)

        monkeypatch.setattr(os, name, wrapper)

    def what(handle):
        name = os.readlink(f"/proc/self/fd/{handle}") if Path("/proc/self/fd").exists() else ""
        return (name, os.fstat(handle).st_size if name and Path(name).is_file() else 0)

    spy("fsync", what)
    spy("replace", lambda a, b: (str(a), str(b)))
    write(path, NEW)
    size = path.stat().st_size
    assert [call[0] for call in calls] == ["fsync", "replace", "fsync"]
    temporary = calls[1][1]
    assert Path(temporary).parent == path.parent
    assert calls[1][2] == str(path)
    if Path("/proc/self/fd").exists():
        assert calls[0][1:] == (temporary, size)  # complete when it is flushed
        assert calls[2][1] == str(path.parent)


class Full:
    """A disk that is full after so many bytes."""

    def __init__(self, file, most):
        self._file, self._left = file, most

    def write(self, part):
        self._left -= memoryview(part).nbytes
        if self._left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._file.write(part)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._file.close()


@pytest.mark.parametrize("most", [0, 30, 500])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(path, monkeypatch, most):
    write(path, OLD)

    def limited(*args):
        return Full(open(*args), most)

    monkeypatch.setattr(atomic, "open", limited, raising=False)
    with pytest.raises(OSError, match="No space left"):
        write(path, NEW)
    assert os.listdir(path.parent) == [path.name]
    assert path.read_bytes() == OLD


def test_an_error_names_the_file_that_was_asked_for(path, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=re.escape(str(path))), replacing(path):
        full()
    missing = tmp_path / "no" / "such"
    with pytest.raises(FileNotFoundError) as caught, replacing(missing):
        pass
    assert caught.value.filename == str(missing)


@pytest.mark.parametrize("name", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "broken"), KeyboardInterrupt()])
def test_a_failure_at_any_step_leaves_the_old_file_and_nothing_else(path, monkeypatch, name, error):
    write(path, OLD)

    def fail(*args):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, name, fail)
        with pytest.raises(type(error)):
            write(path, NEW)
    assert os.listdir(path.parent) == [path.name]
    assert path.read_bytes() == OLD


def test_a_file_system_that_cannot_flush_directories_is_no_failure(path, monkeypatch):
    real, handles = os.fsync, []

    def only_files(handle):
        handles.append(handle)
        if len(handles) == 2:
            raise OSError(errno.EINVAL, "not for directories")
        real(handle)

    monkeypatch.setattr(os, "fsync", only_files)
    write(path, NEW)
    assert path.read_bytes() == NEW


# -- the directory --------------------------------------------------------------------------------------
def names(path, process, host=None):
    prefix = atomic._prefix(path) if host is None else f".{path.name}.{host}."
    return path.with_name(f"{prefix}{process}.0.tmp")


def dead_process():
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


@pytest.mark.skipif(os.name != "posix", reason="processes are looked up the POSIX way")
def test_only_what_killed_processes_left_is_removed(path):
    dead = dead_process()
    left = names(path, dead)
    own = names(path, os.getpid())  # a process of the same number, before this one started
    kept = [
        names(path, os.getppid()),  # alive
        names(path, 1),  # alive, and somebody else's unless we are root
        names(path, dead, host="another-host"),  # nobody knows
        names(path.with_name("other"), dead),
        path.with_name(f".{path.name}.tmp"),
        path.with_name(f"{path.name}.{dead}.0.tmp"),
    ]
    forgotten = names(path, dead, host="a-host-of-last-week")
    for file in [left, own, forgotten, *kept]:
        file.write_bytes(b"torn")
    os.utime(forgotten, (0, 0))
    write(path, NEW)
    prepare(path, "checkpoint")
    assert sorted(path.parent.iterdir()) == sorted([path, *kept])


def test_what_this_process_is_writing_stays(path, monkeypatch):
    real, seen = os.fsync, []

    def look(handle):
        prepare(path, "checkpoint")  # as a fit in another thread would
        seen.append(len(os.listdir(path.parent)))
        real(handle)

    monkeypatch.setattr(os, "fsync", look)
    write(path, NEW)
    assert seen[0] == 1
    assert path.read_bytes() == NEW


def test_ctrl_c_while_a_path_is_tried_leaves_nothing(path, monkeypatch):
    real, calls = os.unlink, []

    def interrupted(name):
        calls.append(name)
        if len(calls) == 1:
            raise KeyboardInterrupt
        real(name)

    monkeypatch.setattr(os, "unlink", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prepare(path, "model")
    assert os.listdir(path.parent) == []


def test_two_threads_may_try_a_path_at_once(path, monkeypatch):
    real = os.unlink

    def others_too(name):
        monkeypatch.setattr(os, "unlink", real)
        atomic._remove_leftovers(path)  # as `prepare` in another thread would
        real(name)

    monkeypatch.setattr(os, "unlink", others_too)
    prepare(path, "model")
    assert os.listdir(path.parent) == []


def test_a_directory_that_is_missing_or_no_directory_is_said_at_once(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cannot be written.*directory that exists"):
        prepare(tmp_path / "missing" / "file", "model")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError, match="cannot be written"):
        prepare(tmp_path / "file" / "file", "model")
    with pytest.raises(OSError, match="must be a file"):
        prepare(tmp_path, "model")


@pytest.mark.skipif(os.name != "posix", reason="rights are given the POSIX way")
def test_a_directory_without_the_right_to_write_is_said_at_once(tmp_path, monkeypatch):
    if os.geteuid() == 0:  # may write everywhere

        def forbidden(*args):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr(atomic, "open", forbidden, raising=False)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match=r"cannot be written.*may write to"):
            prepare(tmp_path / "file", "model")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with replacing(pipe) as file:
            file.write(b"content")
        assert os.read(reader, 100) == b"content"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_the_new_file_has_the_permissions_of_the_old_one(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with replacing(path) as file:
        file.write(b"new")
    assert path.stat().st_mode & 0o777 == 0o640
