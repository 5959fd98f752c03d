"""A tree of plain data as a JSON document and arrays, and back.

JSON has text, numbers, lists and dictionaries with text as keys. Anything else becomes a dictionary whose key
``"!"`` says what it is, such as ``{"!": "array", "name": "dual_coef_"}``. There are a few forms of arrays,
because the labels, costs and numbers of all training rows would otherwise be a large part of a model of bytes
(``packing.py``). Functions and objects are refused: they need code to come back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from .packing import Expansion, pack, unpack

_TAG = "!"
_LETTERS = "biufcSUMmV"  # kinds of arrays that are stored as such
_Path = tuple[str, ...]


class Unstorable(TypeError):  # noqa: N818  (an error that names what cannot be stored)
    """A value that a model file cannot have."""


# -- write -----------------------------------------------------------------------------------------------
def encode(tree: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a document for JSON and the arrays that it names; ``Unstorable`` names what cannot be stored."""
    writer = _Writer()
    paths: dict[str, _Path] = {name: () if name == "state" else (name,) for name in tree}  # the model itself
    return {name: writer.value(part, paths[name]) for name, part in tree.items()}, writer.arrays


class _Writer:
    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def value(self, value: Any, path: _Path) -> Any:
        if value is None or isinstance(value, bool) or type(value) in (str, int):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {_TAG: "float", "value": repr(value)}
        if isinstance(value, np.ndarray):
            return self.array(value, path)
        if type(value) in (dict, list, tuple):
            return self.collection(value, path)
        if isinstance(value, np.generic) and value.dtype.kind in _LETTERS:
            return {_TAG: "scalar", "of": self.plain(np.asarray(value), path)}
        if isinstance(value, np.random.RandomState):
            state = value.get_state(legacy=False)
            return {_TAG: "random state", "state": self.value(state, path)}
        if isinstance(value, PurePath):
            return str(value)
        if isinstance(value, str | int | float):  # of a class derived from these
            return self.value(
                next(kind(value) for kind in (str, int, float) if isinstance(value, kind)), path
            )
        raise Unstorable(
            f"{'.'.join(path)} is {_described(value)}, and a model file has only data, no code. pickle, "
            "joblib and skops can store such a model"
        )

    def collection(self, value: Any, path: _Path) -> Any:
        if isinstance(value, dict):
            if all(type(key) is str for key in value) and _TAG not in value:
                return {key: self.value(part, (*path, key)) for key, part in value.items()}
            pairs = [[self.value(k, path), self.value(v, (*path, str(k)))] for k, v in value.items()]
            return {_TAG: "dict", "items": pairs}
        items = [self.value(part, (*path, str(k))) for k, part in enumerate(value)]
        return items if isinstance(value, list) else {_TAG: "tuple", "items": items}

    def array(self, array: np.ndarray, path: _Path) -> Any:
        if isinstance(array, np.ma.MaskedArray):
            parts = (np.asarray(array.data), np.ma.getmaskarray(array))
            return {_TAG: "masked", "parts": [self.array(part, path) for part in parts]}
        if array.dtype.kind == "O":
            items = [self.value(part, path) for part in array.ravel().tolist()]
            return {_TAG: "objects", "shape": list(array.shape), "items": items}
        if array.dtype.kind not in _LETTERS or array.dtype.hasobject:
            raise Unstorable(f"{'.'.join(path)} is an array of type {array.dtype}, which cannot be stored")
        packed = (
            pack(array) if "parts" not in path else None
        )  # parts of sparse rows can be mapped into memory
        if packed is None:
            return self.plain(array, path)
        return {
            _TAG: packed.form,
            **packed.facts,
            "parts": [self.plain(part, path) for part in packed.parts],
        }

    def plain(self, array: np.ndarray, path: _Path) -> dict[str, Any]:
        short = re.sub(r"[^\w.-]", "-", ".".join(path), flags=re.ASCII)[:150] or "array"
        name, number = short, 1
        while name in self.arrays:
            number += 1
            name = f"{short}-{number}"
        self.arrays[name] = array
        return {_TAG: "array", "name": name}


def _described(value: Any) -> str:
    kind = type(value)
    if callable(value) and hasattr(value, "__qualname__"):
        return f"the function or class {value.__qualname__!r}"
    return f"an object of class {kind.__module__}.{kind.__qualname__}"


# -- read ------------------------------------------------------------------------------------------------
def decode(tree: Any, arrays: Mapping[str, np.ndarray], most_bytes: int) -> Any:
    """Return the tree that ``encode`` was given.

    Arrays that are stored as a range or as one value may not need more than ``most_bytes`` in all. Raises
    ``ValueError`` or another error of a malformed document.
    """
    return _Reader(arrays, most_bytes).value(tree)


class _Reader:
    def __init__(self, arrays: Mapping[str, np.ndarray], most_bytes: int) -> None:
        self.arrays, self.expansion = arrays, Expansion(most_bytes)

    def value(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self.value(part) for part in tree]
        if not isinstance(tree, dict):
            return tree
        if _TAG not in tree:
            return {key: self.value(part) for key, part in tree.items()}
        form = tree[_TAG]
        readers: dict[str, Callable[[], Any]] = {
            "float": lambda: float(tree["value"]),
            "array": lambda: self.arrays[tree["name"]],
            "scalar": lambda: self.value(tree["of"])[()],
            "dict": lambda: {self.value(key): self.value(part) for key, part in tree["items"]},
            "tuple": lambda: tuple(self.value(part) for part in tree["items"]),
            "objects": lambda: self.objects(tree),
            "masked": lambda: self.masked(tree),
            "random state": lambda: self.random_state(tree),
        }
        if form in readers:
            return readers[form]()
        parts = [self.value(part) for part in tree["parts"]]
        return unpack(form, tree, parts, self.expansion)

    def masked(self, tree: dict[str, Any]) -> np.ma.MaskedArray[Any, Any]:
        data, mask = (self.value(part) for part in tree["parts"])
        if mask.shape != data.shape or mask.dtype != bool:
            raise ValueError("a masked array has a mask of another shape or type")
        return np.ma.MaskedArray(data, mask)

    def objects(self, tree: dict[str, Any]) -> np.ndarray:
        items = tree["items"]
        flat = np.empty(len(items), dtype=object)
        for k, item in enumerate(items):
            flat[k] = self.value(item)
        return flat.reshape(tree["shape"])

    def random_state(self, tree: dict[str, Any]) -> np.random.RandomState:
        made: Any = np.random.RandomState()
        made.set_state(self.value(tree["state"]))
        return made  # type: ignore[no-any-return]
