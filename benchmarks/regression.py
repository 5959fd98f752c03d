"""Compare two commits: ``python benchmarks/regression.py BASE [HEAD]``.

Each commit is built and installed in an environment of its own (kept by commit in ``regression`` of this
environment's folder, over this environment's NumPy, SciPy and scikit-learn), and the two take turns on the
problems. Counts do not depend on what else the machine does: kernel rows, updates or rounds that grew by more
than 2% are a regression. So is a best time, or what it took in instructions (in CPU seconds where ``perf``
can count none), that grew by more than 10%; and a model of HEAD that is not certified. Exit status 1 if there
is any. --full adds the slower problems.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from dataclasses import dataclass, replace
from pathlib import Path

from _arena import Arena, Limits, Result
from _bars import check_certified
from _contenders import CONTENDERS, OURS, Contender
from _data import ROOT
from _report import Report, Table, options
from _suite import SUITE, Entry

FOLDER = Path(sys.prefix) / "regression"
COUNTS = ("rows", "updates", "rounds")
COUNT_BAR, TIME_BAR = 1.02, 1.10
TEST_ROWS = 100  # accuracy is not what this is about
SHORT = ("vowel", "glass", "segment", "satimage", "usps", "isolet", "letter", "shuttle-scaled")


def commit_of(name: str) -> str:
    """The full id of a commit."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--verify", f"{name}^{{commit}}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name!r} is no commit of this repository: {done.stderr.strip()}")
    return done.stdout.strip()


def installed(commit: str) -> Path:
    """The Python of an environment with the package at that commit, made if it is not there."""
    folder = FOLDER / commit[:12]
    builder = venv.EnvBuilder(clear=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if (folder / ".ready").exists():
        return python
    print(f"building {commit[:12]}", flush=True)
    builder.create(folder)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    # A path added this way brings modules, but not the .pth files there: not our own editable package.
    shared = [path for path in sys.path if Path(path).name == "site-packages"]
    (Path(site) / "shared.pth").write_text("".join(f"{path}\n" for path in shared))
    install = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--ignore-installed"]
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # cmake, ninja
    with tempfile.TemporaryDirectory(prefix="multimargin-commit-") as source:
        archive = subprocess.run(["git", "-C", ROOT, "archive", commit], capture_output=True, check=True)
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(source, filter="data")
        command = [sys.executable, "-m", "pip", "--python", python, *install, source]
        subprocess.run(command, env=os.environ | {"PATH": paths}, check=True)
    (folder / ".ready").touch()
    return python


@dataclass(frozen=True)
class Change:
    """One figure at both commits."""

    figure: str
    base: float
    head: float
    bar: float  # the largest ratio that is no regression

    @property
    def ratio(self) -> float:
        return self.head / self.base if self.base else (1.0 if self.head == self.base else float("inf"))

    @property
    def worse(self) -> bool:
        return self.ratio > self.bar


def changes(base: Result, head: Result) -> list[Change]:
    """Counts, then times; instructions where both were counted, else CPU seconds."""
    found = [Change(count, base.facts[count], head.facts[count], COUNT_BAR) for count in COUNTS]
    found.append(Change("seconds", base.best, head.best, TIME_BAR))
    instructions = (base.facts.get("instructions"), head.facts.get("instructions"))
    if None not in instructions:
        return [*found, Change("instructions", *instructions, TIME_BAR)]
    return [*found, Change("CPU seconds", min(base.cpu), min(head.cpu), TIME_BAR)]


def measure(entry: Entry, contenders: list[Contender], limits: Limits) -> list[Result]:
    """Base and head, taking turns."""
    C, views = entry.views(TEST_ROWS)
    with Arena({"scaled": views["scaled"]}, contenders, limits.threads) as arena:
        results = arena.measure(C, limits)
        for name, result in results.items():
            if result.absent is None:
                result.facts["instructions"] = arena.instructions(name, C)
    return list(results.values())


def compare(report: Report, table: Table, data: str, base: Result, head: Result) -> None:
    """Print and keep every figure; a regression is a claim that failed."""
    for result in (base, head):
        report.keep("results", {"data": data, **result.record()})
    if base.absent or head.absent:
        text = f"{data}: both commits fit it"
        report.claim(text, None if base.absent else False, f"{base.absent or head.absent}")
        return
    found = changes(base, head)
    for change in found:
        verdict = "WORSE" if change.worse else "better" if change.ratio < 1 / change.bar else ""
        table.row(
            data, change.figure, f"{change.base:.5g}", f"{change.head:.5g}", f"{change.ratio:.3f}", verdict
        )
    worse = [f"{change.figure} x {change.ratio:.2f}" for change in found if change.worse]
    report.found["claims"].append({"claim": f"{data}: no regression", "held": not worse, "numbers": worse})


def main() -> int:
    parser = options(__doc__, repeats=5)
    parser.add_argument("base", metavar="BASE", help="commit to compare with")
    parser.add_argument("head", metavar="HEAD", nargs="?", default="HEAD", help="commit to judge (HEAD)")
    parser.add_argument(
        "--data", nargs="+", choices=[entry.name for entry in SUITE], help="these problems only"
    )
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    report = Report("regression", args)
    commits = [commit_of(name) for name in (args.base, args.head)]
    contenders = [
        replace(CONTENDERS[OURS], name=f"{role} {commit[:12]}", interpreter=installed(commit))
        for role, commit in zip(("base", "head"), commits, strict=True)
    ]
    limits = Limits(args.repeats, patience=20, at_least=1.0, threads=args.threads)
    entries = [e for e in SUITE if (e.name in args.data if args.data else args.full or e.name in SHORT)]
    table = Table(("data", "figure", "base", "head", "ratio", ""), (16, 12, 12, 12, 7, 6))
    heads = {}
    for entry in entries:
        base, heads[entry.name] = measure(entry, contenders, limits)
        compare(report, table, entry.name, base, heads[entry.name])
    print()
    for name, head in heads.items():
        check_certified(report, name, head)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
