"""What machines, kernels, estimators and engines cost and reach: the numbers of the decision chart.

Digits come with scikit-learn. The first 2,000 rows of letter are taken too, if they are stored. Machines are
judged in float64 from their coefficients; what is said of kernels, estimators and engines is the fits' own
certificate. Claims: every machine is optimal to 1e-3; all fits converge; all engines end at the same dual.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sklearn.base import clone

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.data import FOLDER, load, load_digits_problem
from benchmarks.lib.report import Report, Table, options
from benchmarks.lib.scoring import compete, timed_fit
from benchmarks.lib.turns import take_turns
from multimargin import KernelSVC, LinearSVC

MACHINES = ("crammer-singer", "weston-watkins", "lee-lin-wahba", "msvm2", "one-vs-rest")
KERNELS = {
    "linear": KernelSVC(kernel="linear"),
    "poly": KernelSVC(kernel="poly", coef0=1.0),
    "rbf": KernelSVC(),
    "laplacian": KernelSVC(kernel="laplacian", gamma=0.05),
}
ESTIMATORS = {
    "KernelSVC, rbf": KernelSVC(),
    "KernelSVC, linear": KernelSVC(kernel="linear"),
    "LinearSVC": LinearSVC(),
    "LinearSVC, 3 passes": LinearSVC(max_iter=3),
}
ENGINES = {
    "cpu, all threads": KernelSVC(),
    "cpu, one thread": KernelSVC(n_threads=1),
    "numpy": KernelSVC(engine="numpy"),
}


def main() -> int:
    args = options(__doc__, repeats=3).parse_args()
    report = Report("choices", args)
    problems = [load_digits_problem()]
    if (FOLDER / "letter.npz").is_file():
        problems.append(load("letter", rows=2000, test_rows=4000))
    for problem in problems:
        machines(report, problem, args.repeats)
    digits = problems[0].splits[0]
    for title, models in (("kernel", KERNELS), ("estimator", ESTIMATORS), ("engine", ENGINES)):
        fitted = by_turns(report, title, models, digits, args.repeats)
        if title == "engine":
            duals = [model.dual_objective_ for model in fitted.values()]
            apart = (max(duals) - min(duals)) / abs(min(duals))
            report.claim("engines end at the same dual", apart < 1e-4, f"{apart:.1e} apart")
    return report.finish()


def machines(report: Report, problem, repeats: int) -> None:
    split = problem.splits[0]
    print(f"\n{problem.name}: {split.n} rows, C = {problem.C:g}, gamma = {problem.gamma:g}")
    table = Table(("machine", "accuracy %", "SVs", "seconds", "gap / P"), (16, 10, 6, 8, 8))
    models = {name: KernelSVC(name, problem.C, gamma=problem.gamma) for name in MACHINES}
    for name, found in compete(models, split, repeats, problem.C, problem.gamma).items():
        share = found.gap / found.primal
        table.row(name, f"{found.accuracy:.2f}", found.support, f"{found.seconds:.3f}", f"{share:.1e}")
        report.keep("machines", {"data": problem.name, "machine": name, "seconds": found.seconds})
        report.claim(f"{problem.name}, {name}: optimal to 1e-3", found.certified(1e-3), f"{found.psi:.1e}")


def by_turns(report: Report, title: str, models: dict, split, repeats: int) -> dict:
    """A table of fits to digits; the fitted models."""
    print("\ndigits, C = 1")
    table = Table((title, "accuracy %", "seconds", "gap / P"), (20, 10, 8, 8))
    fitted: dict = {}

    def fit(name: str) -> float:
        fitted[name], seconds = timed_fit(clone(models[name]), split)
        return seconds

    seconds, _ = take_turns(models, fit, repeats)
    for name, model in fitted.items():
        accuracy, share = (
            model.score(split.X_test, split.y_test),
            model.duality_gap_ / model.primal_objective_,
        )
        table.row(name, f"{100 * accuracy:.2f}", f"{min(seconds[name]):.3f}", f"{share:.1e}")
        report.keep(title, {"name": name, "accuracy": accuracy, "seconds": min(seconds[name])})
        if name != "LinearSVC, 3 passes":
            converged = model.status_.converged
            report.claim(f"{title} {name} converges", converged, f"violation {model.violation_:.1e}")
    return fitted


if __name__ == "__main__":
    raise SystemExit(main())
