"""What a benchmark prints and keeps: tables, claims held or not, and a JSON file with the machine's facts."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from multimargin import _core

RESULTS = Path(__file__).resolve().parents[1] / "results"


def options(description: str | None, *, repeats: int = 1) -> argparse.ArgumentParser:
    """The options that every benchmark has; without any it runs a short set."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="everything, however long it takes")
    parser.add_argument("--repeats", type=int, default=repeats, help="fits of each, the best time counts")
    parser.add_argument("--json", type=Path, help="where to write the results")
    return parser


class Report:
    """Collects what a benchmark found; ``words`` are said of a claim that holds, and of one that does not."""

    def __init__(
        self, name: str, args: argparse.Namespace, words: tuple[str, str] = ("held", "NOT HELD")
    ) -> None:
        self.words = {True: words[0], False: words[1], None: "not run"}
        self.path = args.json or RESULTS / f"{name}.json"
        self.found: dict[str, Any] = {
            "benchmark": name,
            "arguments": {key: str(value) for key, value in vars(args).items()},
            "machine": machine(),
            "load_at_start": load_average(),
            "claims": [],
        }

    def keep(self, key: str, value: Any) -> None:
        """Put a value (or a row of a list) into the file."""
        self.found.setdefault(key, []).append(value)

    def claim(self, text: str, held: bool | None, numbers: str) -> None:
        """A statement to be checked; None means that this run cannot tell."""
        print(f"  {self.words[held]:<8}  {text}: {numbers}", flush=True)
        self.found["claims"].append({"claim": text, "held": held, "numbers": numbers})

    def finish(self) -> int:
        """Write the file; the exit status is 1 if a claim failed."""
        self.found["load_at_end"] = load_average()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.found, indent=1, default=_plain) + "\n")
        print(f"\nwritten to {os.path.relpath(self.path)}; load average {self.found['load_at_end']}")
        return int(any(claim["held"] is False for claim in self.found["claims"]))


class Table:
    """Prints rows under a head as they come; the first column is on the left."""

    def __init__(self, heads: Sequence[str], widths: Sequence[int]) -> None:
        self.widths = widths
        self.row(*heads)
        print("-" * (sum(widths) + 2 * (len(widths) - 1)))

    def row(self, *cells: object) -> None:
        texts = [str(cell) for cell in cells]
        lines = [
            f"{text:<{width}}" if k == 0 else f"{text:>{width}}"
            for k, (text, width) in enumerate(zip(texts, self.widths, strict=True))
        ]
        print("  ".join(lines), flush=True)


def machine() -> dict[str, Any]:
    """Where and with what the figures were taken."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("multimargin", "numpy", "scipy", "scikit-learn")},
        "openmp": _core.openmp(),
        "threads": _core.max_threads(),
        "instruction_set": _core.instruction_set(),
    }


def load_average() -> list[float] | None:
    """Other work on the machine spoils seconds, never counts."""
    return [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None


def _plain(value: Any) -> Any:
    return value.tolist()  # NumPy's arrays and numbers


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
