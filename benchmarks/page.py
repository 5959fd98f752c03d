"""Run benchmarks and keep what they print for the pages of the site: ``docs/measured/NAME.txt``.

Above the output are the command, the commit, the machine and its load. ``make benchmarks-page`` runs all of
them in their short form; names of scripts run those alone:

    python benchmarks/page.py choices niu_yuan_table2
    python benchmarks/page.py niu_yuan_table2 -- --full
"""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.lib.report import load_average, machine

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "measured"
PAGES = (
    "checks/choices.py",
    "checks/prediction.py",
    "checks/memory.py",
    "papers/accuracies.py",
    "papers/niu_yuan_table2.py",
    "papers/crammer_singer_figures.py",
    "papers/blondel_table2.py",
    "papers/msvmpack_table2.py",
    "papers/vpdt_tables.py",
)


def main(words: list[str]) -> int:
    at = words.index("--") if "--" in words else len(words)
    wanted, extra = words[:at] or [Path(path).stem for path in PAGES], words[at + 1 :]
    paths = {Path(path).stem: path for path in PAGES}
    unknown = [name for name in wanted if name not in paths]
    if unknown:
        raise SystemExit(f"no page shows {', '.join(unknown)}; there are {', '.join(paths)}")
    missed = [name for name in wanted if not written(name, ["benchmarks/" + paths[name], *extra])]
    if missed:
        print(f"not every claim held: {', '.join(missed)}")
    return int(bool(missed))


def written(name: str, command: list[str]) -> bool:
    """Run a script and write its page, if it came to its end; whether it did, and all its claims held."""
    print(f"{' '.join(command)} ...", flush=True)
    before = load_average()
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
    if done.stdout.startswith("skipped"):
        print(done.stdout.strip())
        return True
    if "\nwritten to " not in done.stdout:  # what a report says in its end
        print(f"{name} ended early, with exit code {done.returncode}: {done.stderr[-1000:]}")
        return False
    facts = machine()
    kept = [line.rstrip() for line in done.stdout.strip("\n").splitlines()]
    kept = [line for line in kept if not line.startswith("written to ")]
    head = [
        f"$ python {' '.join(command)}",
        f"# commit {commit()}, {datetime.now(UTC):%Y-%m-%d}; {facts['processor']}, {facts['cores']} cores,",
        f"# {facts['instruction_set']}; load average {before[0] if before else 'unknown'} at the start",
    ]
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{name}.txt").write_text("\n".join([*head, "", *kept]).rstrip() + "\n")
    return done.returncode == 0


def commit() -> str:
    """The commit that ran, with a + if files differ from it."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--exclude", "*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return told.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
