"""Make the environments of the peers that are not in ours: ``make peers``.

Each is a folder in ``<this environment>/peers``. R's kernlab comes from the system, if at all.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

FOLDER = Path(sys.prefix) / "peers"
REQUIREMENTS = {
    "intelex": ["scikit-learn-intelex"],
    "libsvm": ["libsvm-official>=3.36"],  # from here on with OpenMP's pragmas in the source
    "liblinear": ["liblinear-official"],
}


def interpreter(name: str) -> Path:
    """The environment's Python, whether it is there or not."""
    return FOLDER / name / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def make(name: str) -> bool:
    """Whether the environment is there in the end; pip has said why if it is not."""
    ready = FOLDER / name / ".ready"
    if ready.exists():
        print(f"{name}: already there")
        return True
    venv.create(FOLDER / name, with_pip=True, clear=True)
    command = [interpreter(name), "-m", "pip", "install", "--quiet", *REQUIREMENTS[name]]
    made = subprocess.run(command, check=False).returncode == 0
    print(
        f"{name}: {'made' if made else 'could not be installed, its contenders will be skipped'}", flush=True
    )
    if made:
        ready.touch()
    return made


def main() -> int:
    made = [make(name) for name in sys.argv[1:] or REQUIREMENTS]
    print("kernlab is R's: on Debian, apt-get install r-cran-kernlab")
    return int(not all(made))


if __name__ == "__main__":
    sys.exit(main())
