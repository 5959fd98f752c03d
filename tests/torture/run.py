"""A thousand adversarial fits, each in a process of its own and judged in 80-bit arithmetic: `make torture`.

    python tests/torture/run.py --cases 1000 --first 0 --jobs 2

Every case has a number, from which it is made: data, weights, an estimator and its parameters. Its fit is
    right     converged, and meets its tolerance;
    honest    a ConvergenceWarning, and the violation and gap are about as reported, or it says that
              float64 cannot prove them;
    refused   a ValueError or TypeError that says something true of the case.
All else is WRONG: a model that claims too much, NaN, labels that are not those of the coefficients, any other
error or warning, a fit that takes longer than its time limit by a tenth and 0.1 seconds. CRASH is a process
that died, HANG one that had to be killed. Exit status 1 if there is any of these. --show prints a case alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import trial
from cases import MOST, case

FAULTS = ("WRONG", "CRASH", "HANG")


def show(number):
    """Print what the case is, and what becomes of it in this process."""
    print(case(number), *trial.verdict(number), sep="\n")


def table(cases, words):
    """Lines of a table: verdicts of every machine, kernel, bias, solver and engine."""
    counts = Counter()
    for given, word in zip(cases, words, strict=True):
        counts.update((kind, name, word) for kind, name in given.facts.items())
    columns = ("right", "honest", "refused", *FAULTS)
    yield f"{'':44}" + "".join(f"{word:>9}" for word in columns)
    for kind, name in sorted({key[:2] for key in counts}):
        yield f"{kind:7} {name:36}" + "".join(f"{counts[kind, name, word]:9}" for word in columns)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=MOST)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="cases at the same time")
    parser.add_argument("--show", type=int, metavar="NUMBER", help="this case alone, here")
    args = parser.parse_args()
    if args.show is not None:
        return show(args.show)
    start, processes = time.perf_counter(), trial.context()
    numbers, found = range(args.first, args.first + args.cases), []
    with ThreadPoolExecutor(args.jobs) as pool:
        for number, (word, detail) in zip(
            numbers, pool.map(lambda n: trial.tried(n, processes), numbers), strict=True
        ):
            found.append(word)
            if word in FAULTS:
                print(f"{word} {case(number)}\n      {detail}", flush=True)
    print(*table(map(case, numbers), found), sep="\n")
    counts = Counter(found)
    said = ", ".join(f"{counts[word]} {word}" for word in ("right", "honest", "refused", *FAULTS))
    print(f"{args.cases} cases: {said}; {time.perf_counter() - start:.0f} s")
    return int(any(counts[word] for word in FAULTS))


if __name__ == "__main__":
    sys.exit(main())
