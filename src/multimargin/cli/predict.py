"""``multimargin predict``.

Predict the labels of DATA with MODEL and write one per line to OUT (default: standard output). If DATA has
labels, accuracy and a confusion table follow: on standard output if the labels go to a file, else on standard
error. OUT may end with .npy.

  multimargin predict letter.mm letter.test.libsvm predicted.txt
  multimargin predict letter.mm - < rows.libsvm | sort | uniq -c
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from .main import DONE, UsageError
from .options import add_data_options, add_output_options


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("model", metavar="MODEL", help="a model file")
    parser.add_argument("data", metavar="DATA", help="the data")
    parser.add_argument("out", metavar="OUT", nargs="?", default="-", help="where the labels go")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--scores", action="store_true", help="write the score of every class too")
    kind.add_argument(
        "--proba", action="store_true", help="write the probability of every class too (from tune)"
    )
    parser.add_argument(
        "--threads", dest="n_threads", type=int, metavar="N", help="threads (default: every core)"
    )
    parser.add_argument("--mmap", action="store_true", help="map the model into memory instead of reading it")
    add_output_options(parser)
    add_data_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run this command."""
    from . import data as files
    from .fitting import check_target

    if args.out != "-":
        check_target(args.out, "output file", inputs=(args.model, args.data, args.labels))
    model = files.model_of(args, mmap=args.mmap)
    last = model[-1] if hasattr(model, "named_steps") else model
    getattr(last, "best_estimator_", last).n_threads = args.n_threads
    if args.proba and not hasattr(last, "predict_proba"):
        raise UsageError(
            f"{args.model} has no probabilities: models by 'multimargin tune' have; --scores prints scores"
        )
    data = _load(args, last)
    scores = model.decision_function(data.X)
    labels = _winners(scores, last.classes_)
    columns = None
    if args.proba:
        import numpy as np

        columns = np.exp(last.calibrator_.log_probabilities(scores))
    elif args.scores:
        columns = scores
    result = {"rows": len(labels), "classes": last.classes_}
    if data.y is not None:
        result |= _judged(labels, data.y, last.classes_)
    if args.json:
        return _json(args, result, labels, columns)
    write(args.out, labels, columns, last.classes_)
    if data.y is not None and not args.quiet:
        _tell(result, sys.stderr if args.out == "-" else sys.stdout)
    return DONE


def _winners(scores: Any, classes: Any) -> Any:
    from ..estimators.base import winners

    return winners(scores, classes)


def _load(args: argparse.Namespace, model: Any) -> Any:
    """The data with the features of the model; a table without room for labels is read without them."""
    from . import data as files

    features = int(model.n_features_in_)
    try:
        return files.load_for_model(args, features)
    except ValueError:
        if args.data == "-" or args.no_labels or args.label or args.labels:
            raise
        try:
            again = argparse.Namespace(**vars(args) | {"no_labels": True})
            return files.load_for_model(again, features)
        except ValueError:
            pass
        raise


def _judged(labels: Any, true: Any, classes: Any) -> dict[str, Any]:
    """Accuracy and confusion table; labels of other types are compared by what they look like."""
    import numpy as np

    if (labels.dtype.kind in "OSU") != (true.dtype.kind in "OSU"):
        labels, true, classes = labels.astype(str), true.astype(str), np.asarray(classes).astype(str)
    names = np.union1d(np.unique(true), classes)
    counts = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(counts, (np.searchsorted(names, true), np.searchsorted(names, labels)), 1)
    right = int(np.trace(counts))
    return {
        "accuracy": right / len(labels) if len(labels) else None,
        "correct": right,
        "labels": [str(name) for name in names.tolist()],
        "confusion": counts,
    }


def _json(args: argparse.Namespace, result: dict[str, Any], labels: Any, columns: Any) -> int:
    from .output import as_json

    if args.out == "-":
        result["predicted"] = labels
        if columns is not None:
            result["probabilities" if args.proba else "scores"] = columns
    else:
        write(args.out, labels, columns, result["classes"])
        result["out"] = args.out
    print(as_json(result))
    return DONE


def _tell(result: dict[str, Any], out: Any) -> None:
    from .output import confusion

    share = result["accuracy"]
    if share is None:
        return
    out.write(f"accuracy {share:.4%} ({result['correct']} of {result['rows']})\n")
    out.write(confusion(result["labels"], result["confusion"]) + "\n")


def write(out: str, labels: Any, columns: Any, classes: Any) -> None:
    """Write labels, perhaps with a column per class, as text or as .npy."""
    if out.endswith(".npy"):
        _write_npy(out, labels if columns is None else columns)
        return
    words = labels.tolist()
    if columns is None:
        lines = [f"{word}\n" for word in words]
    else:
        wide = columns if columns.ndim == 2 else columns[:, None]
        names = classes.tolist() if columns.ndim == 2 else classes.tolist()[1:]
        lines = ["\t".join(["label", *map(str, names)]) + "\n"]
        for word, row in zip(words, wide.tolist(), strict=True):
            lines.append("\t".join([str(word), *(f"{value:.9g}" for value in row)]) + "\n")
    if out == "-":
        sys.stdout.writelines(lines)
        sys.stdout.flush()
        return
    from pathlib import Path

    from ..system.atomic import replacing

    with replacing(Path(out)) as file:
        file.write("".join(lines).encode())


def _write_npy(out: str, values: Any) -> None:
    from pathlib import Path

    import numpy as np

    from ..system.atomic import replacing

    values = values.astype(str) if values.dtype == object else values
    with replacing(Path(out)) as file:
        np.save(file, values, allow_pickle=False)
