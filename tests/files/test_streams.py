"""Where bytes come from and go to: standard input and output, pipes, damaged compressed files, full disks."""

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from multimargin.datasets import MalformedFileError, load, save
from multimargin.files import source as sources
from multimargin.files import streams
from multimargin.files.formats import FORMATS

TEXT = b"".join(b"%d 1:%d 2:0.5\n" % (k % 3, k) for k in range(1, 3000))


def zstd(data):
    return pytest.importorskip("zstandard", reason="zstandard is not installed").compress(data)


PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd}


@pytest.mark.parametrize("kind", PACK)
def test_a_truncated_or_damaged_file_is_refused(kind):
    packed = PACK[kind](TEXT)
    assert load(io.BytesIO(packed)).X.shape == (2999, 2)
    for damaged in (packed[:-3], packed[: len(packed) // 2], packed[: len(packed) // 2] + bytes(99)):
        with pytest.raises(MalformedFileError, match="damaged or incomplete"):
            load(io.BytesIO(damaged), format="libsvm")


@pytest.mark.parametrize("kind", PACK)
def test_files_put_one_after_the_other(kind):
    assert load(io.BytesIO(PACK[kind](TEXT) * 3)).X.shape == (3 * 2999, 2)


def test_a_bomb_is_refused_when_memory_is_used_up(monkeypatch):
    """An endless line, and endless rows."""
    for module in (streams, sources):
        monkeypatch.setattr(module, "available_bytes", lambda: 1 << 20)
    monkeypatch.setattr(sources, "_LOOK", 1 << 18)
    with pytest.raises(MalformedFileError, match="a line has more than"):
        load(io.BytesIO(gzip.compress(bytes(1 << 24))), format="libsvm")
    with pytest.raises(MalformedFileError, match="too large for memory"):
        load(io.BytesIO(gzip.compress(b"1 1:1.5 2:2.5\n" * (1 << 18))), format="libsvm")
    with pytest.raises(MalformedFileError, match="half of the free memory"):
        load(io.BytesIO(gzip.compress(b"\x93NUMPY" + bytes(1 << 23))))


def test_standard_input_and_output():
    script = "from multimargin.datasets import load, save; X, y = load('-'); save('-', X, y, format='csv')"
    done = subprocess.run(
        [sys.executable, "-c", script], input=gzip.compress(b"a 1:2 2:3\nb 2:1\n"), capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"label,x1,x2\na,2,3\nb,0,1\n"


def test_a_named_pipe(tmp_path):
    pipe = tmp_path / "pipe.svm"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(TEXT))
    writer.start()
    assert load(pipe).X.shape == (2999, 2)
    writer.join()


class Dribble:
    """A file object that has ``read`` only, and gives a few bytes at a time."""

    def __init__(self, data):
        self.file = io.BytesIO(data)

    def read(self, size):
        return self.file.read(min(size, 7))


def test_file_objects():
    assert load(Dribble(TEXT)).X.shape == (2999, 2)
    assert load(Dribble(gzip.compress(TEXT))).X.shape == (2999, 2)
    file = io.BytesIO(TEXT)
    load(file)
    assert not file.closed
    with pytest.raises(TypeError, match="mode 'rb'"):
        load(io.StringIO("1 1:2"))


def test_what_is_not_there_or_not_known(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere.csv")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    with pytest.raises(ValueError, match="Unknown format 'xls'"):
        load(io.BytesIO(b"1 1:1"), format="xls")
    with pytest.raises(MalformedFileError, match="its format cannot be told"):
        load(io.BytesIO(b"hello\n"))
    with pytest.raises(MalformedFileError, match="UTF-16"):
        load(io.BytesIO("1 1:1".encode("utf-16")))
    with pytest.raises(ValueError, match="format= is needed"):
        save(tmp_path / "a.xls", [[1]])
    with pytest.raises(ValueError, match=r"n_threads must be"):
        load(io.BytesIO(b"1 1:1"), n_threads=0)
    with pytest.raises(ValueError, match=r"zero_based must be"):
        load(io.BytesIO(b"1 1:1"), zero_based=2)


def test_without_zstandard_the_extra_is_named(tmp_path, monkeypatch):
    packed = zstd(TEXT)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ImportError, match=r"pip install multimargin\[zstd\]"):
        load(io.BytesIO(packed))
    with pytest.raises(ImportError, match=r"pip install multimargin\[zstd\]"):
        save(tmp_path / "a.svm.zst", [[1]])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("X", "y", "what"),
    [
        ([[np.nan]], None, "finite"),
        ([[1.0]], [np.inf], "finite"),
        ([[1.0]], [1, 2], "one label for each of the 1 rows"),
        ([1.0], None, "must be a matrix of numbers"),
        ([["a"]], None, "must be a matrix of numbers"),
        (np.empty((0, 3)), None, "must have rows and features"),
        ([[1.0]], np.array([1j]), "integers, numbers or strings"),
    ],
)
def test_what_cannot_be_saved(tmp_path, X, y, what):
    with pytest.raises(ValueError, match=what):
        save(tmp_path / "a.csv", X, y)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", FORMATS)
def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch, name):
    path = tmp_path / f"a{FORMATS[name].suffixes[0]}"
    path.write_bytes(b"precious")
    path.chmod(0o640)
    monkeypatch.setattr(
        os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(OSError, match="No space left"):
        save(path, [[1.0, 2.0]])
    assert path.read_bytes() == b"precious" and [path] == list(tmp_path.iterdir())
    monkeypatch.undo()
    save(path, [[1.0, 2.0]])
    assert path.stat().st_mode & 0o777 == 0o640
    assert [path] == list(tmp_path.iterdir())


def test_links_pipes_and_folders(tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    link.symlink_to(real)
    save(link, [[1.0]], [2])
    assert link.is_symlink() and real.read_text() == "label,x1\n2,1\n"
    pipe, taken = tmp_path / "pipe.csv", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: taken.append(pipe.read_text()))
    reader.start()
    save(pipe, [[1.0]])
    reader.join()
    assert pipe.is_fifo() and taken == ["x1\n1\n"]  # it is written to, not replaced
    with pytest.raises(IsADirectoryError):
        save(tmp_path, [[1.0]], format="csv")
    with pytest.raises(FileNotFoundError):
        save(tmp_path / "nowhere" / "a.csv", [[1.0]])


def test_reading_does_not_keep_files_open(tmp_path):
    save(tmp_path / "a.csv", [[1.0, 2.0]], [1])
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    for _ in range(5):
        load(tmp_path / "a.csv")
    if before is not None:
        assert len(os.listdir("/proc/self/fd")) <= before
