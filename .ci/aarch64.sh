#!/usr/bin/env bash
# Cross-compile the native module for 64-bit ARM, and run the smoke test and the demo under qemu-user.
#
# For Debian and Ubuntu on x86-64, as root (it adds the architecture to apt), with these packages:
#   g++-aarch64-linux-gnu qemu-user
# Python of the system's version comes as packages for ARM that are unpacked, not installed; NumPy, SciPy and
# scikit-learn as the wheels that users on ARM get. PYTHON names a Python of the same version with pip.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=${1:-$(mktemp -d)}
PYTHON=${PYTHON:-python3}
minor=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
packages="libc6 libstdc++6 libgcc-s1 libgomp1 zlib1g libexpat1 libssl3 libffi8 libbz2-1.0 liblzma5 libsqlite3-0 libuuid1
  libcrypt1 python$minor python$minor-minimal libpython$minor-minimal libpython$minor-stdlib libpython$minor-dev"

echo "Fetching Python $minor for ARM ..."
mkdir -p "$work/debs" "$work/sysroot" "$work/build"
if ! dpkg --print-foreign-architectures | grep -q arm64; then
  dpkg --add-architecture arm64
  apt-get update -qq
fi
(cd "$work/debs" && apt-get download -qq $(printf '%s:arm64 ' $packages))
for deb in "$work"/debs/*.deb; do dpkg -x "$deb" "$work/sysroot"; done

echo "Fetching wheels ..."
"$PYTHON" -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet 'nanobind>=2.5' 'cmake>=3.26' ninja
"$work/tools/bin/pip" install --quiet --target "$work/site" --only-binary :all: --python-version "$minor" --implementation cp \
  --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux_2_17_aarch64 \
  --platform manylinux2014_aarch64 'numpy>=1.26' 'scipy>=1.11.1' 'scikit-learn>=1.6'

export PATH="$work/tools/bin:$PATH"
echo "Compiling ..."
"$work/tools/bin/cmake" -G Ninja -S "$root" -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
  -DCMAKE_CXX_FLAGS="-I$work/sysroot/usr/include" -DPython_EXECUTABLE="$work/tools/bin/python" \
  -DPython_INCLUDE_DIR="$work/sysroot/usr/include/python$minor" -DPython_SOABI="cpython-${minor/./}-aarch64-linux-gnu" \
  -Dnanobind_DIR="$("$work/tools/bin/python" -m nanobind --cmake_dir)" > "$work/cmake.log"
"$work/tools/bin/cmake" --build "$work/build" --target _core
cp -r "$root/src/multimargin" "$work/site/multimargin"
cp "$work"/build/_core*.so "$work/site/multimargin/_core.cpython-${minor/./}-aarch64-linux-gnu.so"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/pyproject.toml")
mkdir -p "$work/site/multimargin-$version.dist-info"
printf 'Metadata-Version: 2.1\nName: multimargin\nVersion: %s\n' "$version" > "$work/site/multimargin-$version.dist-info/METADATA"
file "$work/site/multimargin/"_core*.so

echo "Running under emulation ..."
run() {
  OMP_NUM_THREADS=2 PYTHONPATH="$work/site" PYTHONHOME="$work/sysroot/usr" \
    qemu-aarch64 -L "$work/sysroot" "$work/sysroot/usr/bin/python$minor" "$@"
}
run "$root/.ci/smoke.py"
run -m multimargin demo --no-picture
