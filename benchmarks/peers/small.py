"""Small and badly conditioned data, as most users have them: ours against scikit-learn's SVC on one thread.

sets     scikit-learn's bundled sets and glass, vowel, segment, satimage, usps, shuttle, standardised, at
         (C, γ) = (1, "scale"), (100, "scale") and (1000, 0.001). Claims: of SVC's CPU seconds ours takes at
         most 0.8 in the median, 0.7 in total, and nowhere more than 3.
gallery  the fits of scikit-learn's example "RBF SVM parameters": C from 10⁻² to 10¹⁰ and γ from 10⁻⁹ to 10³
         on five splits of iris. Claim: ours takes at most twice SVC's CPU seconds in total.

Every model is certified. The short form is the sets without shuttle, and one split of the gallery.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

import numpy as np
from sklearn import datasets
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.arena import TOL, Arena, Limits, Result, View
from benchmarks.lib.bars import is_certified
from benchmarks.lib.contenders import CONTENDERS, OURS, SVC
from benchmarks.lib.data import Split, read_stored
from benchmarks.lib.report import Report, Table, options

BUNDLED = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}
STORED = ("glass", "vowel", "segment", "satimage", "usps")
LONG = ("shuttle",)
POINTS = ((1, "scale"), (100, "scale"), (1000, 0.001))
MEDIAN_BAR, TOTAL_BAR, POINT_BAR = 0.8, 0.7, 3.0
GALLERY_C, GALLERY_GAMMA = np.logspace(-2, 10, 13), np.logspace(-9, 3, 13)
GALLERY_BAR = 2.0
TEST_ROWS = 10  # accuracy is not what this is about


def rows(name: str) -> Split:
    """A data set, standardised; a few of its rows to test on."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
    else:
        stored = read_stored(name)
        X, y = stored["X_train"].astype(float), stored["y_train"].astype(int)
    X = StandardScaler().fit_transform(X)
    return Split(X, y, X[:TEST_ROWS], y[:TEST_ROWS])


def splits_of_iris() -> list[Split]:
    """The training rows of the gallery's example."""
    X, y = datasets.load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    splitter = StratifiedShuffleSplit(n_splits=5, test_size=0.2, random_state=42)
    return [Split(X[a], y[a], X[b], y[b]) for a, b in splitter.split(X, y)]


def scale(X: np.ndarray) -> float:
    """What gamma="scale" means."""
    return float(1 / (X.shape[1] * X.var()))


def cpu(result: Result) -> float:
    """The best of its CPU seconds; infinite if it has none."""
    return min(result.cpu, default=np.inf)


def race(split: Split, points: list[tuple[float, float]], limits: Limits) -> list[dict[str, Result]]:
    """Both at every point, in processes of one thread."""
    view = View(split, points[0][1])
    with Arena({"scaled": view}, [CONTENDERS[OURS], CONTENDERS[SVC]], limits.threads) as arena:
        return [arena.measure(C, limits, gamma=gamma) for C, gamma in points]


def check_certified(report: Report, text: str, ours: list[Result]) -> None:
    wrong = sum(not is_certified(result) for result in ours)
    text = f"{text}: every model optimal to {TOL:g}, recomputed in float64"
    report.claim(text, not wrong, f"{wrong} are not")


def check_total(report: Report, text: str, found: list[dict[str, Result]], bar: float) -> None:
    ours, peer = (sum(cpu(results[name]) for results in found) for name in (OURS, SVC))
    numbers = f"{ours / peer:.3g} ({ours:.3g} s, {peer:.3g} s)"
    report.claim(f"{text}: in total at most {bar:g} x {SVC}", ours <= bar * peer, numbers)


def run_sets(report: Report, args) -> None:
    table = Table(
        ("data", "rows", "C", "γ", "ours", "SVC", "ratio", "SVs", "SVC's", "rounds", "updates"),
        (14, 6, 5, 7, 8, 8, 6, 6, 6, 6, 8),
    )
    limits = Limits(args.repeats, patience=10, cap=args.cap, at_least=0.5, threads=1)
    found, ratios = [], []
    for name in args.data or [*BUNDLED, *STORED, *(LONG if args.full else ())]:
        split = rows(name)
        points = [(C, scale(split.X_train) if gamma == "scale" else gamma) for C, gamma in POINTS]
        for (C, gamma), results in zip(points, race(split, points, limits), strict=True):
            ours, peer = results[OURS], results[SVC]
            found.append(results)
            ratios.append(cpu(ours) / cpu(peer))
            table.row(
                name,
                split.n,
                C,
                f"{gamma:.3g}",
                *(f"{1e3 * cpu(result):.2f}" for result in (ours, peer)),
                f"{ratios[-1]:.2f}",
                *(result.facts.get("support", "") for result in (ours, peer)),
                *(ours.facts.get(count, "") for count in ("rounds", "updates")),
            )
            for result in results.values():
                report.keep("sets", {"data": name, "C": C, "gamma": gamma, **result.record()})
    print("(milliseconds of CPU time)\n")
    check_certified(report, "sets", [results[OURS] for results in found])
    middle, most = median(ratios), max(ratios)
    report.claim(f"sets: the median at most {MEDIAN_BAR:g} x {SVC}", middle <= MEDIAN_BAR, f"{middle:.3g}")
    check_total(report, "sets", found, TOTAL_BAR)
    report.claim(f"sets: none above {POINT_BAR:g} x {SVC}", most <= POINT_BAR, f"the largest is {most:.3g}")


def run_gallery(report: Report, args) -> None:
    points = [(float(C), float(gamma)) for C in GALLERY_C for gamma in GALLERY_GAMMA]
    limits = Limits(args.repeats, patience=10, cap=args.cap, threads=1)
    found = []
    for number, split in enumerate(splits_of_iris()[: None if args.full else 1]):
        for (C, gamma), results in zip(points, race(split, points, limits), strict=True):
            found.append(results)
            for result in results.values():
                report.keep("gallery", {"split": number, "C": C, "gamma": gamma, **result.record()})
    text = f"gallery, {len(found)} fits"
    check_certified(report, text, [results[OURS] for results in found])
    check_total(report, text, found, GALLERY_BAR)


def main() -> int:
    parser = options(__doc__, repeats=2)
    parser.add_argument("--data", nargs="+", choices=[*BUNDLED, *STORED, *LONG], help="these sets only")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="these only")
    parser.add_argument("--cap", type=float, default=60.0, help="seconds for a fit")
    args = parser.parse_args()
    report = Report("small", args, words=("PASS", "MISS"))
    for part in args.parts:
        PARTS[part](report, args)
    return report.finish()


PARTS = {"sets": run_sets, "gallery": run_gallery}

if __name__ == "__main__":
    sys.exit(main())
