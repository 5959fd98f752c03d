"""LIBSVM text read by plain Python, one line after the other: slow, and independent of the native code."""

import re

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
BLANKS = b" \t\r\v\f"


class RefusedError(Exception):
    pass


def read(text, labelled=True):
    """(labels, rows): the labels as bytes, a row as a dict of index and value."""
    labels, rows = [], []
    for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        line = line.split(b"#")[0]
        words = [word for word in re.split(rb"[ \t\r\v\f]+", line) if word]
        if not words:
            continue
        if labelled:
            label = words.pop(0)
            if b":" in label or b"," in label or label == b"?":
                raise RefusedError(f"label {label}")
            labels.append(label)
        rows.append(row(words))
    if not rows or not any(rows):
        raise RefusedError("nothing there")
    return labels, rows


def row(words):
    found = {}
    for word in words:
        if word.startswith(b"qid:"):
            continue
        index, colon, value = word.partition(b":")
        if not colon or not re.fullmatch(rb"\d+", index) or not NUMBER.fullmatch(value):
            raise RefusedError(f"word {word}")
        number = float(value)
        if int(index) in found or number in (float("inf"), float("-inf")):
            raise RefusedError(f"word {word}")
        found[int(index)] = number
    return found


def dense(text, labelled=True):
    """(labels, matrix as a list of lists): indices count from 1 unless there is a 0."""
    labels, rows = read(text, labelled)
    every = [index for row in rows for index in row]
    base = int(min(every) > 0)
    width = max(every) + 1 - base
    if width > 1 << 20:
        raise RefusedError("too wide")
    return labels, [[row.get(base + k, 0.0) for k in range(width)] for row in rows]
