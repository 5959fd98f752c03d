"""Feed damaged model files, checkpoints and files of searches to their readers; part of `make fuzz`.

    python tests/files/fuzz_stored.py --inputs 100000 --first 0

Every input has a number, from which it is made. Some have changed bytes. The others have another document or
other arrays with the right checksums, as a program would write that wants to do harm. A reader must raise
ValueError, or return something that works: a model predicts one of its classes, and a fit or a search goes on
to a model that is converged and finite. It must do so in SECONDS and in MEMORY.
"""

import copy
import hashlib
import json
import random
import shutil
import sys
import tempfile
import warnings
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "native"))
import fuzz
import fuzz_bindings

from multimargin import KernelSVC, KernelSVCCV, load
from multimargin.estimators.scaled import scaled_pipeline  # noqa: F401  (imported before memory is limited)
from multimargin.files import archive

TESTS = Path(__file__).resolve().parents[1]
X, Y = np.random.default_rng(0).normal(size=(18, 3)), np.arange(18) % 3
MEMORY_DISK = Path("/dev/shm")
WIDEST = 10_000  # features of a model that is asked
ODD = [
    *(None, True, False, 0, -1, 1, 2, 1 << 31, 1 << 63, -(1 << 63), 10**30, 0.5, -0.0, 1e308, 1e-320),
    *(
        float("inf"),
        float("-inf"),
        float("nan"),
        "",
        "x",
        "é\0",
        "rbf",
        "auto",
        [],
        {},
        [[]],
        [0, 1],
        {"!": "array"},
    ),
    *(
        {"!": "constant", "dtype": "f8", "length": 9, "parts": []},
        {"<multimargin object>": "Trace"},
        "<f8",
        "O",
    ),
]


# -- files that are right ----------------------------------------------------------------------------------
def fit(path=None):
    return KernelSVC(C=10.0, solver="dasmc", n_threads=1, checkpoint=path and (path, 0.0)).fit(X, Y)


def search(path=None):
    grid = {"Cs": [1.0, 100.0], "gammas": [0.1], "cv": 2}
    return KernelSVCCV(**grid, n_threads=1, checkpoint=path and (path, 0.0)).fit(X, Y)


def seeds(folder):
    """The bytes of right files by kind."""
    models = sorted((TESTS / "reference").glob("model-file-*/*.mm"))
    found = {"model": [path.read_bytes() for path in models]}
    for kind, make in (("checkpoint", fit), ("search", search)):
        make(folder / kind)
        found[kind] = [(folder / kind).read_bytes()]
    return found


# -- other documents and arrays, with the right checksums --------------------------------------------------
def changed_tree(rng, tree):
    """The tree with some of its nodes replaced, moved or removed."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = list(nodes(tree))
        if not places:
            break
        holder, key = rng.choice(places)
        change = rng.randrange(4)
        if change == 0:
            del holder[key]
        elif change == 1:
            other, name = rng.choice(places)
            holder[key] = copy.deepcopy(other.get(name) if isinstance(other, dict) else other[name])
        elif change == 2 and isinstance(holder[key], int | float):
            holder[key] = holder[key] * rng.choice((-1, 2, 0.5)) + rng.choice((0, 1, -1))
        else:
            holder[key] = copy.deepcopy(rng.choice(ODD))
    return tree


def nodes(tree):
    """Where the values of a tree are: (dictionary or list, key)."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from nodes(tree[key])


def changed_model(rng, content, path):
    """Write a model file with another document, or other arrays."""
    path.write_bytes(content)
    document, arrays, _ = archive.read(path)
    if rng.random() < 0.7:
        document = changed_tree(rng, document)
    else:
        name = rng.choice(list(arrays))
        arrays[name] = fuzz_bindings.damaged_array(rng, arrays[name])
    head = {"format": archive.FORMAT, "version": archive.VERSION}
    dumps = partial(json.dumps, allow_nan=True)  # a reader takes Infinity, which ours never writes
    with (
        mock.patch.object(archive, "replacing", opened),
        mock.patch.object(archive, "prepare"),
        mock.patch.object(archive, "json", mock.Mock(dumps=lambda tree, **_: dumps(tree))),
    ):
        archive.write(path, {**document, **head} if rng.random() < 0.9 else document, arrays)


@contextmanager
def opened(path):
    with open(path, "wb") as file:
        yield file


def changed_sealed(rng, content, path):
    """Write a checkpoint or a search with another header, or other values behind it."""
    magic, header, arrays = content[:-32].split(b"\n", 2)
    if rng.random() < 0.7:
        header = json.dumps(changed_tree(rng, json.loads(header))).encode()
    elif rng.random() < 0.5:
        header = fuzz.damaged(rng, header, binary=False)
    else:
        arrays = fuzz.damaged(rng, arrays, binary=True)
    body = magic + b"\n" + header + b"\n" + arrays
    path.write_bytes(body + hashlib.sha256(body).digest())


# -- readers -----------------------------------------------------------------------------------------------
def use_model(rng, path):
    model = load(path, mmap=rng.random() < 0.3)
    d = model.n_features_in_
    if d > WIDEST or not hasattr(model, "predict"):
        return
    try:
        said = model.predict(np.ones((2, d)))
    except (TypeError, AttributeError):  # odd parameters that are looked at when they are used; no best model
        return
    assert np.isin(said, model.classes_).all()


def use_checkpoint(_rng, path):
    assert_sound(fit(path))


def use_search(_rng, path):
    assert_sound(search(path).best_estimator_)


def assert_sound(model):
    assert model.status_.name == "CONVERGED"
    assert np.isfinite(model.dual_coef_).all() and np.isfinite(model.duality_gap_)


KINDS = {
    "model": (changed_model, use_model),
    "checkpoint": (changed_sealed, use_checkpoint),
    "search": (changed_sealed, use_search),
}


def one(number, files, path):
    """Make file ``number`` and use it; raises if a reader misbehaves. Returns whether it was accepted."""
    rng = random.Random(number)
    kind = rng.choice(("model", "model", "checkpoint", "search"))
    content, (change, use) = rng.choice(files[kind]), KINDS[kind]
    if rng.random() < 0.2:
        path.write_bytes(fuzz.damaged(rng, content, binary=True))
    else:
        try:
            change(rng, content, path)
        except (TypeError, ValueError):  # arrays that no file can have
            path.write_bytes(content)
    try:
        use(rng, path)
    except ValueError:
        return False
    return True


def main():
    folder = Path(tempfile.mkdtemp(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None))
    try:
        files = seeds(folder)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # what is odd about a model is not asked here
            fuzz.drive(__doc__, Path(__file__), lambda number: one(number, files, folder / "file"))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
