"""LIBSVM's letters: those that mean the same here are taken, the others get an answer that names ours."""

from __future__ import annotations

import re
from collections.abc import Sequence

_KERNELS = {"0": "linear", "1": "poly", "2": "rbf", "3": "sigmoid", "4": "precomputed"}
_WITH_LETTERS = ("train", "cv", "tune", "bench")
_TAKEN = {
    "-c": "--C",
    "-g": "--gamma",
    "-d": "--degree",
    "-r": "--coef0",
    "-e": "--tol",
    "-m": "--cache-size",
}
_REFUSED = {
    "-b": "-b of svm-train is not an option here: 'multimargin tune' calibrates probabilities, and "
    "'multimargin predict --proba' prints them",
    "-s": "-s of svm-train is not an option here: --machine names the machine; C-SVC is --machine c-svc",
    "-n": "-n of svm-train is not an option here: there is no nu-SVC; give the cost by -c",
    "-p": "-p of svm-train is not an option here: there is no regression",
    "-v": "-v of svm-train is not an option here: 'multimargin cv --folds N' cross-validates",
}
_SHRINKING = "-h of svm-train is --help here: --no-shrinking looks at all samples in every step"
_WEIGHT = re.compile(r"-w(.+)")


def translated(command: str, words: Sequence[str]) -> list[str]:
    """The words with LIBSVM's letters replaced by our options; ``ValueError`` for letters that do not fit."""
    if command not in _WITH_LETTERS:
        return list(words)
    found: list[str] = []
    rest = iter(words)
    for place, word in enumerate(words):
        if word == "-h" and words[place + 1 : place + 2] in (["0"], ["1"]):
            raise ValueError(_SHRINKING)
    for word in rest:
        if word == "--":
            return [*found, word, *rest]
        if word in _REFUSED:
            raise ValueError(_REFUSED[word])
        weight = _WEIGHT.fullmatch(word)
        if word in _TAKEN:
            found.append(_TAKEN[word])
        elif word == "-t":
            kernel = _next(rest, word)
            if kernel not in _KERNELS:
                raise ValueError(f"-t must be 0 to 4, got {kernel!r}; --kernel takes names, such as rbf")
            found += ["--kernel", _KERNELS[kernel]]
        elif weight and not word.startswith("-w="):
            found += ["--class-weight", f"{weight[1]}={_next(rest, word)}"]
        elif word == "-w":
            raise ValueError("-w needs its label without a space, as in -w1 0.5; or use --class-weight 1=0.5")
        else:
            found.append(word)
    return found


def lists_last(words: Sequence[str], flags: Sequence[str]) -> list[str]:
    """The words with options of several values last, so that a MODEL behind the values is none of them.

    Examples
    --------
    >>> lists_last(["data", "--C", "1", "10", "model", "-q"], ["--C"])
    ['data', 'model', '-q', '--C', '1', '10']
    """
    before: list[str] = []
    lists: list[str] = []
    taking = False
    for word in words:
        taking = word in flags or (taking and _is_value(word))
        (lists if taking else before).append(word)
    return before + lists


def _is_value(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return word in ("scale", "auto")
    return True


def _next(words: object, letter: str) -> str:
    value = next(words, None)  # type: ignore[call-overload]
    if value is None:
        raise ValueError(f"{letter} needs a value")
    return str(value)
