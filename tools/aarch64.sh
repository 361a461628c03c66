#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Compile the package for aarch64 on another machine, and run tools/smoke.py with it under qemu:
#
#   tools/aarch64.sh [FOLDER]       what is made goes there (default build/aarch64), 2 GB
#
# PYTHON: an interpreter with Cython and setuptools, of the version that Debian's SUITE has (3.11 of
# bookworm). Needs, on Debian: debootstrap qemu-user-static gcc-aarch64-linux-gnu libc6-dev-arm64-cross.
# The system of aarch64 is debootstrap's packages, laid out and not installed: installing them under
# emulation would take ten minutes. The first run compiles all modules, as long as a usual build.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:-build/aarch64}")
suite=${SUITE:-bookworm}
python=${PYTHON:-python3.11}
gcc=${CC:-aarch64-linux-gnu-gcc}
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
for one in debootstrap dpkg-deb "$gcc" "$python"; do
    command -v "$one" >/dev/null || { echo "$one is missing; the head of $0 names the packages" >&2; exit 1; }
done
[ -n "$qemu" ] || { echo "qemu-aarch64 is missing: apt-get install qemu-user-static" >&2; exit 1; }
"$python" -c 'import Cython, setuptools' || { echo "$python lacks Cython or setuptools; name another: PYTHON=.venv/bin/python" >&2; exit 1; }
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
root=$folder/root
site=$folder/site
mkdir -p "$folder"

if [ ! -e "$folder/made-root" ]; then
    debootstrap --arch=arm64 --variant=minbase --download-only \
        --include="python$version,libpython$version-dev,libstdc++6" "$suite" "$folder/packages"
    mkdir -p "$root"
    for package in "$folder"/packages/var/cache/apt/archives/*.deb; do
        dpkg-deb -x "$package" "$root"
    done
    touch "$folder/made-root"
fi
if [ ! -e "$folder/made-site" ]; then
    "$python" -m pip download --disable-pip-version-check --no-deps --only-binary=:all: \
        --python-version "$version" --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 \
        --platform manylinux2014_aarch64 --dest "$folder/wheels" --constraint constraints.txt numpy protobuf
    for wheel in "$folder"/wheels/*.whl; do
        "$python" -m zipfile -e "$wheel" "$site"
    done
    touch "$folder/made-site"
fi

# setuptools asks the interpreter that runs it how to compile: it is told what that of aarch64 says.
config=$folder/config
mkdir -p "$config"
cp "$root/usr/lib/python$version/"_sysconfigdata__aarch64-linux-gnu.py "$config/_sysconfigdata_aarch64.py"
include=$root/usr/include
_PYTHON_HOST_PLATFORM=linux-aarch64 _PYTHON_SYSCONFIGDATA_NAME=_sysconfigdata_aarch64 \
    PYTHONPATH="$config" CC="$gcc" LDSHARED="$gcc -shared" \
    CFLAGS="-I$include/python$version -I$include -I$include/aarch64-linux-gnu" \
    "$python" setup.py -q build --build-base "$folder/build" --build-lib "$folder/lib"

run() {
    "$qemu" -L "$root" -E PYTHONPATH="$folder/lib:$site" -E PYTHONDONTWRITEBYTECODE=1 \
        "$root/usr/bin/python$version" "$@"
}
run -c 'import platform; print("under", platform.machine(), "Python", platform.python_version())'
run tools/smoke.py
