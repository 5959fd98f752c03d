"""Let a disk be full at every moment of a write: the old file stays, and the error names the file.

    python tests/faults/disk.py
    python tests/faults/disk.py --only sizes --steps 4

A limit of file sizes (RLIMIT_FSIZE) makes each write fail after so many bytes, for every writer of the
package. Nothing may be left behind. With the rights to mount one, a small file system (tmpfs) is filled too.
A checkpoint that cannot be written is a warning, because the fit goes on. The same holds for a search.
"""

import argparse
import errno
import functools
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from multimargin import KernelSVC, KernelSVCCV
from multimargin.datasets import save

FILLER = "filler"  # takes the room of a small file system
FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
X, Y = np.random.default_rng(0).normal(size=(60, 5)), np.arange(60) % 3
MODEL = KernelSVC(n_threads=1).fit(X, Y)
BINARY = KernelSVC("c-svc", n_threads=1).fit(X, Y == 1)


def fit_with_checkpoint(path):
    KernelSVC(C=10.0, solver="dasmc", n_threads=1, checkpoint=(path, 0.0)).fit(X, Y)


def search_with_checkpoint(path):
    KernelSVCCV(Cs=[1.0, 10.0], gammas=[0.1], cv=2, n_threads=1, checkpoint=(path, 0.0)).fit(X, Y)


PLAIN = (".csv", ".libsvm", ".npy", ".npz", ".parquet", ".arrow", ".arff")
WRITERS = {  # name: (ending, writer)
    "save": (".mm", lambda path: MODEL.save(path)),
    "report": (".html", lambda path: MODEL.report(path)),
    "export, libsvm": (".model", lambda path: BINARY.export(path)),
    "checkpoint of a fit": (".checkpoint", fit_with_checkpoint),
    "checkpoint of a search": (".checkpoint", search_with_checkpoint),
} | {
    f"data, {ending}": (ending, lambda path: save(path, X, None if path.suffix == ".npy" else Y))
    for ending in (*PLAIN, *(f".csv.{packed}" for packed in ("gz", "bz2", "xz", "zst")))
}


@contextmanager
def file_sizes(most):
    """No file may become larger than this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    heard = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, heard)


def write(writer, path):
    """Whether the writer said, by an error or a warning, that the file could not be written."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            writer(path)
        except OSError as error:
            assert error.errno in FULL, error
            assert str(path) in str(error), f"the error does not name the file: {error}"
            return True
    said = [str(each.message) for each in caught if "could not be written" in str(each.message)]
    assert all(str(path) in text for text in said)
    return bool(said)


def full(name, path, limit):
    """Write when the disk is full at some byte; whether that was too early for the file."""
    is_checkpoint, writer = "checkpoint" in name, WRITERS[name][1]
    if not is_checkpoint:  # which would be read
        path.write_bytes(b"old")
    with limit:
        failed = write(writer, path)
    left = [entry for entry in os.listdir(path.parent) if entry not in (path.name, FILLER)]
    assert not left, f"{name}: left behind: {left}"
    if is_checkpoint:
        assert path.exists() or failed, f"{name}: nothing was written, and nobody said so"
        writer(path)  # it goes on with what is there, or raises ValueError
        path.unlink()
    else:
        assert not failed or path.read_bytes() == b"old", f"{name}: the old file is lost"
        assert failed or path.stat().st_size == sizes_of(name), f"{name}: a file was cut, and nobody said so"
        path.unlink()
    return failed


@functools.cache
def sizes_of(name):
    """The size of a writer's file; a checkpoint's is that of the last one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{WRITERS[name][0]}"
        WRITERS[name][1](path)
        return path.stat().st_size


def at_every_size(name, folder, steps):
    """Limit the size of files to so many sizes up to the last byte; how many writes failed."""
    path, whole = folder / f"file{WRITERS[name][0]}", sizes_of(name)
    sizes = sorted({whole * step // steps for step in range(steps)} | {whole - 1})
    failed = sum(full(name, path, file_sizes(size)) for size in sizes)
    assert failed == len(sizes) or "checkpoint" in name, f"{name}: {len(sizes) - failed} writes did not fail"
    assert failed > 0
    return failed


@contextmanager
def filled(folder, room):
    """Leave so many bytes on the file system of a folder."""
    free = os.statvfs(folder)
    (folder / FILLER).write_bytes(bytes(max(free.f_bavail * free.f_frsize - room, 0)))
    try:
        yield
    finally:
        (folder / FILLER).unlink()


def on_full_disk(names):
    """Fill a small file system and write to it; how many writes failed, or why it cannot be tried."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]
        if shutil.which("mount") is None or os.geteuid() != 0:
            return "left out: mounting a small file system needs root"
        mounted = subprocess.run(command, capture_output=True, text=True)
        if mounted.returncode:
            return f"left out: {mounted.stderr.strip()}"
        try:
            failed = 0
            for name in names:
                path = Path(folder) / f"file{WRITERS[name][0]}"
                for room in (0, 4096, sizes_of(name) // 8192 * 4096):  # files take whole pages
                    failed += full(name, path, filled(Path(folder), room))
        finally:
            subprocess.run(["umount", folder], check=True)
    assert failed >= len(names)
    return f"{failed} writes failed; files lost: 0"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=100, help="sizes of files up to which a write succeeds")
    parser.add_argument("--only", choices=["sizes", "full"], help="one of the two; both by default")
    args = parser.parse_args()
    if args.only != "full":
        with tempfile.TemporaryDirectory() as folder:
            for name in WRITERS:
                failed = at_every_size(name, Path(folder), args.steps)
                print(
                    f"limit of sizes  {name:<24} {failed:4d} writes failed; files lost or cut: 0", flush=True
                )
    if args.only != "sizes":
        print(f"full disk       {len(WRITERS)} writers: {on_full_disk(list(WRITERS))}")


if __name__ == "__main__":
    main()
