"""The file of a search: a right checksum alone does not make it right."""

import copy
import hashlib
import json

import numpy as np
import pytest

from multimargin import KernelSVCCV

X, Y = np.random.default_rng(0).normal(size=(18, 3)), np.arange(18) % 3


def search(path):
    return KernelSVCCV(Cs=[1.0, 100.0], gammas=[0.1], cv=2, n_threads=1, checkpoint=path).fit(X, Y)


@pytest.fixture
def parts(tmp_path):
    """The path of a right file, its header, and its arrays."""
    path = tmp_path / "search"
    search(path)
    _, header, arrays = path.read_bytes()[:-32].split(b"\n", 2)
    return path, json.loads(header), arrays


def write(path, header, arrays):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = b"multimargin search\n" + text + b"\n" + arrays
    path.write_bytes(body + hashlib.sha256(body).digest())


def test_a_file_that_was_not_changed_is_gone_on_with(parts):
    path, header, arrays = parts
    write(path, header, arrays)
    assert search(path).best_score_ == search(None).best_score_


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h.update(points=3),
        lambda h: h.update(points=[[0]]),
        lambda h: h.update(problem=[]),
        lambda h: h.update(arrays=[[1, 1]]),
        lambda h: h["points"].append(h["points"][0]),
        lambda h: h["points"][0].__setitem__(0, 2),
        lambda h: h["points"][0].__setitem__(0, -1),
        lambda h: h["points"][0].__setitem__(0, True),
        lambda h: h["points"][0][1].pop(),
        lambda h: h["points"][0][1][0].__setitem__(0, "x"),
        lambda h: h["points"][0][2].__setitem__(0, 0.5),
        lambda h: h["points"][0][2][0].update(other=1.0),
        lambda h: h["points"][0][2][0].update(score=10**400),
        lambda h: h["points"][0].__setitem__(3, None),
        lambda h: h["points"][0].__setitem__(4, "x"),
    ],
)
def test_content_that_is_not_that_of_the_search_is_refused(parts, change):
    path, header, arrays = parts
    changed = copy.deepcopy(header)
    change(changed)
    write(path, changed, arrays)
    with pytest.raises(ValueError, match="cannot be used"):
        search(path)


@pytest.mark.parametrize("arrays", [b"", np.full(54, np.nan).tobytes(), bytes(8)])
def test_decision_values_that_are_not_those_of_the_search_are_refused(parts, arrays):
    path, header, _ = parts
    write(path, header, arrays)
    with pytest.raises(ValueError, match="decision values"):
        search(path)


@pytest.mark.parametrize("header", [b"", b"[]", b"{}", b"[" * 100000, b"\xff", b'{"format": {}}'])
def test_a_header_that_is_none_is_refused(parts, header):
    path, _, arrays = parts
    write(path, header, arrays)
    with pytest.raises(ValueError, match="header is not as it should be"):
        search(path)
