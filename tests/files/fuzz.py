"""Feed broken data files to the readers: a million inputs by `make fuzz`.

    python tests/files/fuzz.py --inputs 1000000 --first 0

Every input has a number, from which it is made: a valid file of some format, damaged here and there. A reader
must return sound arrays or raise ValueError, and must do so in SECONDS and in MEMORY. LIBSVM text is read
again by plain Python (svmlight_oracle.py), and both must agree on what it says, or that it is wrong.
"""

import argparse
import bz2
import faulthandler
import gzip
import io
import lzma
import random
import resource
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent))
import svmlight_oracle

from multimargin.datasets import load, save

MEMORY = 2 << 30  # bytes that the process may grow by
SECONDS = 30.0  # of one input, on a busy machine
WORDS = [
    *(
        b"1:1",
        b"2:-3.5",
        b"0:1",
        b"7:1e300",
        b"1:",
        b":",
        b"qid:3",
        b"#",
        b"# x",
        b"+1",
        b"-1",
        b"nan",
        b"1:nan",
    ),
    *(
        b"3:inf",
        b"1e999",
        b"2:1e-400",
        b"99999999999999999999:1",
        b"4000000000:1",
        b"1,2",
        b"\r\n",
        b"\n",
        b"\t",
    ),
    *(
        b"\x00",
        b"\xff",
        b'"',
        b"'",
        b",",
        b";",
        b"{",
        b"}",
        b"%",
        b"?",
        b"0x1p3",
        b"1_0",
        b".5",
        b"5.",
        b".",
        b"-",
    ),
    *(
        b"@data",
        b"@attribute a {x,y}",
        b"{0 1, 1 2}",
        b"NA",
        b'""',
        b'"a""b"',
        b"\\",
        b"123456789012345678901",
    ),
    *(
        b"0.1234567890123456789",
        b"9007199254740993",
        b"1e22",
        b"1e23",
        b"label",
        b"00001:5",
        b"1:+2",
        b"1:--2",
    ),
]
TEXT = ("libsvm", "libsvm", "libsvm", "csv", "tsv", "msvmpack", "arff")
BINARY = ("npy", "npz", "arrow", "parquet")
PACK = (gzip.compress, bz2.compress, lzma.compress)


def seeds():
    """Valid files by format."""
    rng = np.random.default_rng(0)
    X, y = np.round(rng.normal(size=(6, 4)), 3), np.array([1, 2, 3, 1, 2, 3])
    S = sp.random_array((6, 30), density=0.2, format="csr", rng=rng)
    named = np.array(["a b", "it's", 'say "x"', "c", "c", "c"])
    cases = [(X, y), (S, y), (X, y + 0.5), ((10 * X).astype(np.int16), y), (X, None)]
    found = {}
    for name in dict.fromkeys(TEXT + BINARY):
        given = (
            [(X, None)]
            if name == "npy"
            else cases
            if name in ("libsvm", "npz", "msvmpack")
            else [*cases, (X, named)]
        )
        found[name] = []
        for samples, labels in given:
            file = io.BytesIO()
            save(file, samples, labels, format=name)
            found[name].append(file.getvalue())
    found["libsvm"] += [b"# a comment\n1 qid:2 1:2 3:4 # five\n\n+1 2:1\r\n-1\t3:0.5 1:2"]
    found["arff"] += [
        b"@relation r\n@attribute a numeric\n@attribute c {x,'y z'}\n@data\n1,x\n2,'y z'\n% end\n"
    ]
    return found


def damaged(rng, data, binary):
    """The bytes with a few changes."""
    data = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        change = rng.randrange(6)
        if change == 0:
            data[at:at] = bytes([rng.randrange(256)])
        elif change == 1:
            data[at : at + rng.choice((1, 1, 2, 20))] = b""
        elif change == 2 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif change == 3 and not binary:
            data[at:at] = rng.choice((b" ", b"")) + rng.choice(WORDS) + rng.choice((b" ", b"", b"\n"))
        elif change == 4:
            end = at + rng.randrange(30)
            data[at:at] = data[at:end] * rng.choice((1, 1, 3))
        elif change == 5:
            del data[at:]
    return bytes(data)


def one(number, files):
    """Make input ``number`` and read it; raises if a reader misbehaves. Returns whether it was accepted."""
    rng = random.Random(number)
    name = rng.choice(BINARY) if rng.random() < 0.05 else rng.choice(TEXT)
    data = damaged(rng, rng.choice(files[name]), name in BINARY)
    label = rng.choice((None, None, None, False))
    packed = data
    if rng.random() < 0.05:
        packed = damaged(rng, rng.choice(PACK)(data), True)
    given = "auto" if rng.random() < 0.1 else name
    try:
        found = load(io.BytesIO(packed), format=given, label=label, n_threads=1)
    except ValueError:
        accepted = False
    else:
        accepted = True
        check(found)
    if name == given == "libsvm" and packed is data:
        compare(data, label is None, found if accepted else None)
    return accepted


def check(found):
    """Sound arrays?"""
    X, y = found
    values = X.data if sp.issparse(X) else X
    assert X.ndim == 2 and min(X.shape) >= 1, X.shape
    assert np.isfinite(values).all()
    if sp.issparse(X):
        X.check_format(full_check=True)
        assert X.has_sorted_indices
    assert y is None or y.shape == X.shape[:1]


def compare(data, labelled, found):
    """Do plain Python and the native reader agree?"""
    try:
        labels, rows = svmlight_oracle.dense(data, labelled)
    except svmlight_oracle.RefusedError:
        # Labels that are no text in UTF-8, and too wide rows, are another matter.
        assert found is None or found.X.shape[1] > 1 << 20 or not data.isascii(), "it should be refused"
        return
    except MemoryError:
        return
    if found is None:
        odd = any(b"\0" in label or b"e" in label.lower() for label in labels)  # a byte 0, a number too large
        assert not data.isascii() or odd, "it should be accepted"
        return
    X = found.X.toarray() if sp.issparse(found.X) else found.X
    assert X.tolist() == rows
    if labelled:
        texts = [label.decode() for label in labels]
        expected = [type(value)(text) for value, text in zip(found.y.tolist(), texts, strict=True)]
        assert found.y.tolist() == expected


def limit_memory():
    pages = (
        int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else None
    )
    if pages is not None:
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def drive(about, script, one):
    """Call ``one`` with number after number, as the command line asks."""
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many")
    args = parser.parse_args()
    start, shown, accepted, slowest = time.monotonic(), time.monotonic(), 0, 0.0
    limit_memory()
    number, last = args.first, args.first + args.inputs
    while number < last and time.monotonic() - start < args.seconds:
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        begin = time.monotonic()
        try:
            accepted += one(number)
        except BaseException:
            print(
                f"input {number} failed: python tests/files/{script.name} --first {number} --inputs 1",
                flush=True,
            )
            raise
        slowest = max(slowest, time.monotonic() - begin)
        number += 1
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            print(f"{number:,} of {last:,} inputs; to go on from here: --first {number}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    done = number - args.first
    print(f"{done:,} inputs, {accepted:,} accepted, {done - accepted:,} refused, slowest {slowest:.3f} s")
    print(f"next: --first {number}")


if __name__ == "__main__":
    files = seeds()
    drive(__doc__, Path(__file__), lambda number: one(number, files))
