"""``multimargin demo``.

Show in one screen what the package does, on handwritten digits that come with scikit-learn: train all
classes in one problem, beside scikit-learn's SVC; read the certificate; find labels that were changed. With
matplotlib a picture is shown too, in a notebook (%run -m multimargin demo) or on a display.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .main import DONE, NOT_CONVERGED

CHANGED = 10  # labels
_SHOWN = 6  # images in the terminal
_WIDTH = 11  # of one of them, in characters


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("--picture", metavar="FILE", help="write the picture to FILE (.png, .svg or .pdf)")
    parser.add_argument("--no-picture", action="store_true", help="show text only")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Run this command."""
    from . import demo_picture
    from .output import as_json

    where = demo_picture.place(args.picture, args.no_picture or args.json)
    shown = measured()
    if args.json:
        print(as_json(shown.told))
    else:
        print(screen(shown, unicode=_can_print("▀▄█", sys.stdout.encoding)))
    demo_picture.show(shown, where)
    return DONE if shown.model.status_.converged else NOT_CONVERGED


@dataclass(frozen=True)
class Suspect:
    """A training row whose label is in doubt."""

    pixels: Any  # (8, 8)
    label: int
    likely: int
    changed: bool  # whether its label was changed


@dataclass(frozen=True)
class Shown:
    """All that the demo shows."""

    model: Any  # fitted to the right labels
    told: dict[str, Any]
    suspects: list[Suspect]
    train: tuple[Any, Any]

    def brackets(self, tols: Sequence[float]) -> list[tuple[float, float, float]]:
        """(tol, objective, proved lower bound) of fits to the right labels."""
        from sklearn.base import clone

        fits = [clone(self.model).set_params(tol=tol).fit(*self.train) for tol in tols]
        return [(fit.tol, fit.primal_objective_, -fit.dual_objective_) for fit in fits]


def measured() -> Shown:
    """Train both programs, and find the labels that were changed."""
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.svm import SVC

    from .. import KernelSVC
    from .fitting import certificate

    X, y = load_digits(return_X_y=True)
    X = X.astype(np.uint8)
    test = np.arange(len(X)) % 4 == 3
    told: dict[str, Any] = {"rows": int((~test).sum()), "held_out": int(test.sum())}
    fitted: dict[str, Any] = {"KernelSVC": KernelSVC(), "SVC": SVC()}
    for name, model in fitted.items():
        start = time.perf_counter()
        model.fit(X[~test], y[~test])
        seconds = time.perf_counter() - start
        accuracy = model.score(X[test], y[test])
        told[name] = {"accuracy": accuracy, "support_vectors": len(model.support_), "seconds": seconds}
    told["KernelSVC"] |= certificate(fitted["KernelSVC"])
    suspects = _suspects(X[~test], y[~test])
    told["labels_changed"] = CHANGED
    told["changed_labels_found"] = sum(suspect.changed for suspect in suspects)
    return Shown(fitted["KernelSVC"], told, suspects, (X[~test], y[~test]))


def _suspects(X: Any, y: Any) -> list[Suspect]:
    """Change a few labels at random; the rows with the least plausible labels."""
    import numpy as np

    from .. import KernelSVC

    rng = np.random.default_rng(0)
    changed = rng.choice(len(y), CHANGED, replace=False)
    labels = y.copy()
    labels[changed] = (y[changed] + rng.integers(1, 10, CHANGED)) % 10
    model = KernelSVC().fit(X, labels)
    rows = model.suspects(CHANGED)
    shares = model.label_distribution(rows)
    shares[np.arange(len(rows)), labels[rows]] = -1.0
    return [
        Suspect(X[row].reshape(8, 8), int(labels[row]), int(share.argmax()), bool(row in changed))
        for row, share in zip(rows, shares, strict=True)
    ]


def screen(shown: Shown, *, unicode: bool) -> str:
    """What a terminal of 24 lines and 80 columns shows."""
    from importlib.metadata import version

    from ..system.versions import DOCUMENTATION

    told, model = shown.told, shown.model
    share = told["KernelSVC"]["relative_gap"]
    data = f"{told['rows']} handwritten digits of 8 x 8 pixels, 10 classes"
    lines = [f"multimargin {version('multimargin')}: {data}"]
    lines += ["", f"{'':18}{'accuracy':>10}{'support vectors':>18}{'seconds':>10}"]
    for name, said in (("KernelSVC", "KernelSVC"), ("SVC", "scikit-learn SVC")):
        found = told[name]
        lines += [f"{said:18}{found['accuracy']:10.1%}{found['support_vectors']:18d}{found['seconds']:10.3f}"]
    lines += [
        f"Accuracy is that of {told['held_out']} images that were held out.",
        "",
        f"KernelSVC {model.status_}",
        f"Proved: no such model has an objective that is smaller by more than {share:.2%}.",
        "",
        f"{CHANGED} training labels were changed at random; {told['changed_labels_found']} of the "
        f"{CHANGED} rows that",
        f"suspects({CHANGED}) names are changed ones. Labels and likelier classes of the first {_SHOWN}:",
        "",
        *images(shown.suspects[:_SHOWN], unicode=unicode),
        "",
        "Next:  multimargin train demo:digits digits.mm && multimargin info digits.mm",
        f"       {DOCUMENTATION}",
    ]
    return "\n".join(line.rstrip() for line in lines)


def images(suspects: list[Suspect], *, unicode: bool) -> list[str]:
    """Small images side by side: a character has two pixels, one over the other."""
    signs = " ▄▀█" if unicode else ' _"#'
    dark = [suspect.pixels >= 8 for suspect in suspects]
    lines = [
        "".join(
            "".join(signs[2 * up + down] for up, down in zip(image[k], image[k + 1], strict=True)).ljust(
                _WIDTH
            )
            for image in dark
        )
        for k in range(0, 8, 2)
    ]
    heads = [f"{suspect.label}, or {suspect.likely}?" for suspect in suspects]
    return ["".join(head.ljust(_WIDTH) for head in heads), *lines]


def _can_print(text: str, encoding: str | None) -> bool:
    try:
        text.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
