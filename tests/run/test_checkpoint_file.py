"""The file of a checkpoint: what is written comes back, and nothing but a whole file of ours is read."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from multimargin.run import checkpoint_file as files
from multimargin.run import sealed_file
from multimargin.run.checkpoint_file import MAGIC, Snapshot, read, write


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
FACTS = state().facts
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
        ({"format": 1, "arrays": SHAPES, "facts": True, "problem": {}}, ONE),
        ({"format": 1, "arrays": SHAPES, "facts": FACTS | {"seed": "x"}, "problem": {}}, ONE),
        ({"format": 1, "arrays": SHAPES, "facts": FACTS | {"iterations": -1}, "problem": {}}, ONE),
        ({"format": 1, "arrays": SHAPES, "facts": FACTS | {"seconds": 10**400}, "problem": {}}, ONE),
        ({"format": 1, "arrays": SHAPES, "facts": FACTS, "problem": []}, ONE),
        (b'{"format": 1, "arrays": ' + b"[" * 100000, b""),
    ],
)
def test_a_sealed_file_with_the_wrong_content_is_refused(path, header, arrays):
    assert_refused(path, sealed(header, arrays), "header|arrays|values")


def test_a_sealed_file_with_the_right_content_is_read(path):
    path.write_bytes(sealed({"format": 1, "arrays": SHAPES, "facts": FACTS, "problem": {}}, ONE))
    assert read(path).rows.tolist() == [4]


def test_reading_runs_no_code(path):
    """The text of the module names nothing that could: no pickle, no eval."""
    text = "".join(Path(module.__file__).read_text(encoding="utf-8") for module in (files, sealed_file))
    assert not any(word in text for word in ("pickle", "eval(", "exec(", "np.load"))
