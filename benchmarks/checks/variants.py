"""What is each choice of a method worth? Rounds, updates and kernel rows with one choice changed at a time.

Counts do not depend on the load of the machine, so docs/decisions/ quotes them. ``suspects`` counts the wrong
labels that are found by the loss, and by the norm of α_i / C_i.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from multimargin import Decomposition, KernelSVC
from multimargin.inner import FrankWolfe
from multimargin.methods import METHODS, VARIANTS
from multimargin.working_set import Gain, Growing, MaxViolator

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.binary_data import adult, classes
from benchmarks.lib.data import Problem, load, load_digits_problem
from benchmarks.lib.report import Report, Table, options

WRONG_LABELS = 48
MOST_STEPS = 110_000


class Variant(NamedTuple):
    """A method on a problem."""

    name: str
    problem: Problem
    machine: str
    solver: Decomposition
    tol: float = 1e-3


def faces() -> Iterator[Variant]:
    auto = METHODS["auto"]
    without = replace(auto, inner=replace(auto.inner, faces=False))
    for data in ("segment", "glass"):
        yield Variant(data, load(data), "crammer-singer", auto)
        yield Variant(f"{data}, without faces", load(data), "crammer-singer", without)


def whole() -> Iterator[Variant]:
    auto = METHODS["auto"]
    sweeps = replace(auto, inner=replace(auto.inner, partners=False))
    for data in ("segment", "glass"):
        yield Variant(data, load(data), "crammer-singer", auto)
        yield Variant(f"{data}, sweeps of single samples", load(data), "crammer-singer", sweeps)


def spans() -> Iterator[Variant]:
    auto = METHODS["auto"]
    without = replace(auto, inner=replace(auto.inner, spans=False))
    harder = load("satimage")
    for problem in (
        load("letter"),
        load("usps"),
        replace(harder, name="satimage, C 64, γ 1/4", C=64, gamma=0.25),
    ):
        yield Variant(problem.name, problem, "crammer-singer", auto)
        yield Variant(f"{problem.name}, without spans", problem, "crammer-singer", without)


def descent() -> Iterator[Variant]:
    auto, problem = METHODS["auto"], load("letter")
    changes = {
        "auto": {},
        "not relaxed": {"relax": 1.0},
        "all pairs": {"reach": None},
        "not staged": {"staged": False},
    }
    for name, change in changes.items():
        solver = replace(auto, inner=replace(auto.inner, **change))
        yield Variant(f"letter, {name}", problem, "crammer-singer", solver)


def everyone() -> Iterator[Variant]:
    auto = VARIANTS["auto", "msvm2"]
    only_growing = replace(auto, working_set=replace(auto.working_set, everyone=1.0))
    for data, rows in (("mnist", 10_000), ("letter", None)):
        problem = load(data, rows)
        yield Variant(f"{data}, all samples second", problem, "msvm2", auto)
        yield Variant(f"{data}, growing", problem, "msvm2", only_growing)


def settle() -> Iterator[Variant]:
    dasmc, problem = METHODS["dasmc"], load("letter")
    yield Variant("letter, settled", problem, "crammer-singer", dasmc)
    yield Variant("letter, not settled", problem, "crammer-singer", replace(dasmc, settle=False))


def ranking() -> Iterator[Variant]:
    for name, rule in (("by gain", Gain(q=10)), ("by ψ", MaxViolator(q=10))):
        solver = Decomposition(rule, FrankWolfe(), stop="gap")
        yield Variant(f"segment, {name}", load("ImageSeg"), "crammer-singer", solver, tol=0.02)


def c_svc() -> Iterator[Variant]:
    auto = VARIANTS["auto", "c-svc"]
    rules = {
        "auto": auto.working_set,
        "newcomers not evenly": replace(auto.working_set, even=False),
        "nobody left out": replace(auto.working_set, reach=math.inf),
        "rounds as others'": Growing(reach=0.7, even=True),
    }
    for data, problem in (("a9a", adult("a9a")), ("connect4 win", classes("connect4", [1])(None))):
        for name, rule in rules.items():
            yield Variant(f"{data}, {name}", problem, "c-svc", replace(auto, working_set=rule))


CHOICES: dict[str, Callable[[], Iterator[Variant]]] = {
    "faces": faces,
    "whole": whole,
    "spans": spans,
    "descent": descent,
    "everyone": everyone,
    "settle": settle,
    "ranking": ranking,
    "c-svc": c_svc,
}


def count(variants: Iterator[Variant], report: Report) -> None:
    heads = ("variant", "rounds", "updates", "rows", "SVs", "gap / P", "ended")
    table = Table(heads, (36, 7, 9, 7, 6, 8, 10))
    for name, problem, machine, solver, tol in variants:
        split = problem.splits[0]
        model = KernelSVC(machine, C=problem.C, gamma=problem.gamma, solver=solver, tol=tol, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.set_params(max_iter=MOST_STEPS).fit(split.X_train, split.y_train)
        counts = {
            "rounds": len(model.trace_),
            "updates": int(model.trace_["inner"].sum()),
            "rows": int(model.trace_["rows"][-1]),
            "support": len(model.support_),
        }
        gap = model.duality_gap_ / model.primal_objective_
        table.row(name, *counts.values(), f"{gap:.1e}", model.status_.name.lower())
        report.keep("fits", {"variant": name, "gap": gap, "status": model.status_.name, **counts})


def find_wrong_labels(report: Report) -> None:
    """digits with some labels changed: how many of them are among as many first suspects."""
    problem = load_digits_problem()
    X, y = problem.splits[0].X_train, problem.splits[0].y_train.copy()
    rng = np.random.default_rng(0)
    wrong = rng.choice(len(y), WRONG_LABELS, replace=False)
    y[wrong] = (y[wrong] + rng.integers(1, 10, WRONG_LABELS)) % 10
    table = Table(("machine", "by loss", "by norm"), (36, 7, 7))
    for machine in ("crammer-singer", "weston-watkins", "lee-lin-wahba", "msvm2", "one-vs-rest"):
        model = KernelSVC(machine, C=problem.C, gamma=problem.gamma).fit(X, y)
        order = np.argsort(-np.linalg.norm(model.dual_coef_, axis=1), kind="stable")
        named = {"loss": model.suspects(WRONG_LABELS), "norm": model.support_[order[:WRONG_LABELS]]}
        found = {name: len(np.intersect1d(rows, wrong)) for name, rows in named.items()}
        table.row(machine, *found.values())
        report.keep("suspects", {"machine": machine, **found})


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("choices", nargs="*", help=f"some of {', '.join(CHOICES)}, suspects; none is all")
    args = parser.parse_args()
    if unknown := set(args.choices) - {*CHOICES, "suspects"}:
        parser.error(f"no such choice: {', '.join(sorted(unknown))}")
    report = Report("variants", args)
    for choice in args.choices or (*CHOICES, "suspects"):
        print(f"\n{choice}")
        if choice == "suspects":
            find_wrong_labels(report)
        else:
            count(CHOICES[choice](), report)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
