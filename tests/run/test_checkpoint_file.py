"""The file of a checkpoint: what is written comes back, and nothing but a whole file of ours is read."""

import errno
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from multimargin.run import whole_file as files
from multimargin.run.checkpoint_file import MAGIC, Snapshot, read, write
from multimargin.run.whole_file import prepare


def state(k=5, m=3, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(100, k, replace=False)).astype(np.int64)
    facts = {"iterations": 7, "seconds": 1.5, "seed": 3, "solver": "auto", "counts": {"rows": 4}}
    return Snapshot(
        rows, rng.normal(size=(k, m)), rng.normal(size=m), facts, {"the machine": "x", "é": [1.5]}
    )


def assert_equal(a, b):
    for name in ("rows", "coef", "bias"):
        x, y = getattr(a, name), getattr(b, name)
        assert x.dtype == y.dtype
        assert x.shape == y.shape
        assert x.tobytes() == y.tobytes()
    assert (a.facts, a.problem) == (b.facts, b.problem)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


@pytest.mark.parametrize("k", [0, 1, 5, 60])
def test_a_state_comes_back_bit_by_bit(path, k):
    write(path, state(k))
    assert_equal(read(path), state(k))
    assert os.listdir(path.parent) == [path.name]


def test_arrays_in_any_order_of_memory_come_back(path):
    whole = state(6)
    turned = Snapshot(whole.rows, np.asfortranarray(whole.coef), whole.bias, whole.facts, whole.problem)
    write(path, turned)
    assert_equal(read(path), whole)


def test_a_second_write_replaces_the_first(path):
    write(path, state(5))
    write(path, state(2, seed=1))
    assert_equal(read(path), state(2, seed=1))


# -- what is refused ------------------------------------------------------------------------------------
def assert_refused(path, content, reason):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=reason) as error:
        read(path)
    said = str(error.value)
    assert str(path) in said
    assert "was not changed" in said
    assert "another path" in said
    assert path.read_bytes() == content


def test_every_truncated_file_is_refused(path):
    write(path, state())
    content = path.read_bytes()
    for length in range(len(content)):
        assert_refused(path, content[:length], "incomplete")


def test_every_changed_byte_is_noticed(path):
    write(path, state())
    content = path.read_bytes()
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        reason = "not a checkpoint" if place < len(MAGIC) else "damaged"
        assert_refused(path, bytes(changed), reason)


@pytest.mark.parametrize("more", [b"\0", b"\n", b"something else"])
def test_a_file_with_more_at_its_end_is_refused(path, more):
    write(path, state())
    assert_refused(path, path.read_bytes() + more, "damaged")


@pytest.mark.parametrize("content", [b"\x80\x04K\x01.", b"PK\x03\x04", b"hello\n" * 100, b"\x93NUMPY"])
def test_files_of_others_are_refused(path, content):
    assert_refused(path, content, "not a checkpoint of multimargin")


def sealed(header, arrays=b""):
    """A file with a right checksum."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = MAGIC + text + b"\n" + arrays
    return body + hashlib.sha256(body).digest()


def test_a_file_of_a_later_version_is_refused_and_says_so(path):
    assert_refused(path, sealed({"format": 2, "whatever": 1}), "later version of multimargin")


SHAPES = {"rows": [1], "coef": [1, 2], "bias": [2]}
ONE = np.array([4], "<i8").tobytes() + np.array([0.5, -0.5, 0.0, 1.0], "<f8").tobytes()


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        (b"no JSON", b""),
        (b"[]", b""),
        ({}, b""),
        ({"format": 1}, b""),
        ({"format": 1, "arrays": SHAPES, "facts": {}, "problem": {}}, ONE[:-8]),
        ({"format": 1, "arrays": SHAPES, "facts": {}, "problem": {}}, ONE + ONE),
        ({"format": 1, "arrays": SHAPES | {"rows": [-1]}, "facts": {}, "problem": {}}, ONE),
        ({"format": 1, "arrays": SHAPES | {"coef": [2], "bias": [2]}, "facts": {}, "problem": {}}, ONE),
        (
            {"format": 1, "arrays": SHAPES, "facts": {}, "problem": {}},
            ONE[:-8] + np.array([np.nan]).tobytes(),
        ),
        ({"format": 1, "arrays": SHAPES, "problem": {}}, ONE),
    ],
)
def test_a_sealed_file_with_the_wrong_content_is_refused(path, header, arrays):
    assert_refused(path, sealed(header, arrays), "header|arrays|values")


def test_a_sealed_file_with_the_right_content_is_read(path):
    path.write_bytes(sealed({"format": 1, "arrays": SHAPES, "facts": {}, "problem": {}}, ONE))
    assert read(path).rows.tolist() == [4]


def test_reading_runs_no_code(path):
    """The text of the module names nothing that could: no pickle, no eval."""
    text = Path(files.__file__).read_text(encoding="utf-8")
    assert not any(word in text for word in ("pickle", "eval(", "exec(", "np.load"))


# -- writing --------------------------------------------------------------------------------------------
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
    write(path, state())
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
    write(path, state(5))

    def limited(*args):
        return Full(open(*args), most)

    monkeypatch.setattr(files, "open", limited, raising=False)
    with pytest.raises(OSError, match="No space left"):
        write(path, state(60))
    assert os.listdir(path.parent) == [path.name]
    assert_equal(read(path), state(5))


@pytest.mark.parametrize("name", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "broken"), KeyboardInterrupt()])
def test_a_failure_at_any_step_leaves_the_old_file_and_nothing_else(path, monkeypatch, name, error):
    write(path, state(5))

    def fail(*args):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, name, fail)
        with pytest.raises(type(error)):
            write(path, state(6))
    assert os.listdir(path.parent) == [path.name]
    assert_equal(read(path), state(5))


def test_a_file_system_that_cannot_flush_directories_is_no_failure(path, monkeypatch):
    real, handles = os.fsync, []

    def only_files(handle):
        handles.append(handle)
        if len(handles) == 2:
            raise OSError(errno.EINVAL, "not for directories")
        real(handle)

    monkeypatch.setattr(os, "fsync", only_files)
    write(path, state())
    assert_equal(read(path), state())


# -- the directory --------------------------------------------------------------------------------------
def names(path, process, host=None):
    prefix = files.prefix(path) if host is None else f".{path.name}.{host}."
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
    write(path, state())
    prepare(path)
    assert sorted(path.parent.iterdir()) == sorted([path, *kept])


def test_what_this_process_is_writing_stays(path, monkeypatch):
    real, seen = os.fsync, []

    def look(handle):
        prepare(path)  # as a fit in another thread would
        seen.append(len(os.listdir(path.parent)))
        real(handle)

    monkeypatch.setattr(os, "fsync", look)
    write(path, state())
    assert seen[0] == 1
    assert_equal(read(path), state())


def test_a_directory_that_is_missing_or_no_directory_is_said_at_once(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cannot be written.*directory that exists"):
        prepare(tmp_path / "missing" / "file")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError, match="cannot be written"):
        prepare(tmp_path / "file" / "file")
    with pytest.raises(OSError, match="must be a file"):
        prepare(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="rights are given the POSIX way")
def test_a_directory_without_the_right_to_write_is_said_at_once(tmp_path, monkeypatch):
    if os.geteuid() == 0:  # may write everywhere

        def forbidden(*args):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr(files, "open", forbidden, raising=False)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match=r"cannot be written.*may write to"):
            prepare(tmp_path / "file")
    finally:
        tmp_path.chmod(0o700)
