#!/usr/bin/env bash
# Try a wheel on a Python of a later Debian, in a system of its own in which nothing else is installed: no compiler.
#
#   .ci/debian.sh dist/multimargin-*-abi3-*.whl 3.14 forky
#
# For Debian and Ubuntu, as root (it changes its root directory), with the package debootstrap. NumPy, SciPy and
# scikit-learn come as the wheels that users get; PYTHON names a Python with pip that fetches them.
set -euo pipefail
wheel=${1:?the path of a wheel} minor=${2:-3.14} suite=${3:-forky}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "Fetching Debian $suite with Python $minor ..."
# Every suite since 2016 is made by the same script, which older versions of debootstrap do not know by all its names.
debootstrap --variant=minbase --include="python$minor,python$minor-venv" "$suite" "$work/root" \
  "" sid > "$work/debootstrap.log" || { tail -n 5 "$work/debootstrap.log"; exit 1; }

echo "Fetching wheels ..."
"${PYTHON:-python3}" -m pip download --quiet --only-binary :all: --python-version "$minor" --implementation cp \
  --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux_2_17_x86_64 \
  --platform manylinux2014_x86_64 --dest "$work/root/wheels" 'numpy>=1.26' 'scipy>=1.11.1' 'scikit-learn>=1.6'
cp "$wheel" "$here/smoke.py" "$work/root/wheels/"

run() { chroot "$work/root" /usr/bin/env -i PATH=/v/bin:/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }
for compiler in cc gcc g++ c++ clang clang++; do
  if run sh -c "command -v $compiler"; then echo "a compiler is on PATH: $compiler"; exit 1; fi
done
echo "Trying $(basename "$wheel") with Python $minor ..."
run "python$minor" -m venv /v
run pip install --quiet --no-index --find-links /wheels "/wheels/$(basename "$wheel")"
run python /wheels/smoke.py
run multimargin demo --no-picture
