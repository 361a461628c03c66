#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Build CPython without the GIL and the package with ThreadSanitizer, and run the tests of threads and
# a minute of stress on them; a quarter of an hour the first time.
#
# It needs the environment that `make test` made, by default .venv (VENV), clang (CLANG), 10 GB of disk
# where torch comes with CUDA's libraries, and CPython's sources: PYTHON_SOURCE is the address or the
# path of the archive. What is made stays in THREADS_VENV, by default .venv-threads.
#
# Reads and writes that nothing orders are seen in instrumented code only, and what orders them, such
# as the locks of Python's objects, must be instrumented too: hence a Python of its own. What is said
# goes to files, as the tests look at standard error.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root=$PWD
run=$(realpath "${VENV:-.venv}")/bin/python
clang=${CLANG:-clang}
mkdir -p "${THREADS_VENV:-.venv-threads}"
place=$(realpath "${THREADS_VENV:-.venv-threads}")
source_archive=${PYTHON_SOURCE:?set it to an archive of the sources of CPython 3.14 or newer}
python=$place/python/bin/python3
tree=$place/tree
reports=$place/reports
tests=(tests/test_threads.py tests/caffe2/tensor/test_tensor_threads.py
    tests/caffe2/workspaces/test_feed_fetch_threads.py
    tests/caffe2/workspaces/test_workspace_threads.py tests/exchange/test_concurrent_routes.py)

command -v "$clang" >/dev/null \
    || { echo "ThreadSanitizer needs clang: apt-get install clang, or CLANG=clang-19" >&2; exit 1; }

make_python() {
    rm -rf "$place/source" "$place/python"
    mkdir -p "$place/source"
    case $source_archive in
        http*) curl -fsSL "$source_archive" ;;
        *) cat "$source_archive" ;;
    esac >"$place/source.tar.xz"
    tar -xf "$place/source.tar.xz" --strip-components 1 -C "$place/source"
    cd "$place/source"
    ./configure -q --disable-gil --with-thread-sanitizer --without-ensurepip \
        --prefix="$place/python" CC="$clang" CFLAGS=-O1
    make -s -j "$(nproc)"
    make -s install COMPILEALL_OPTS=--help >install.log
    cd "$root"
    # torch and NumPy are those of other Pythons: no instrumented ones are published. The usual Python
    # installs them for the instrumented one: pip is slow in that. The pip is the one that comes with
    # the instrumented Python's sources: older ones, as a venv may have, take wheels for the stable
    # ABI, which crash without the GIL.
    local pip abi platforms target
    pip=$(echo "$place"/python/lib/python3*/ensurepip/_bundled/pip-*.whl)
    abi=$("$python" -c 'import sysconfig as s; print("--python-version", s.get_python_version(), "--abi", "cp" + s.get_config_var("SOABI").split("-")[1])')
    platforms=$(PYTHONPATH=$pip "$run" -c 'import pip._vendor.packaging.tags as t; print(*("--platform=" + p for p in t.platform_tags()))')
    target=$("$python" -c 'import sysconfig as s; print(s.get_path("platlib"))')
    # shellcheck disable=SC2086
    PYTHONPATH=$pip "$run" -m pip install --disable-pip-version-check --no-compile \
        --only-binary=:all: --implementation cp $abi $platforms --target "$target" \
        numpy protobuf torch hypothesis ml_dtypes pytest setuptools Cython
    touch "$place/made-python"
}

[ -e "$place/made-python" ] || make_python
rm -rf "$tree" "$reports"
mkdir -p "$tree" "$reports"
tar -c --exclude='*.so' --exclude=__pycache__ bridge tests tools examples docs pyproject.toml \
    setup.py README.md LICENSE CHANGELOG.md CONTRIBUTING.md Makefile constraints.txt | tar -x -C "$tree"
"$run" -m pip install -q --disable-pip-version-check --constraint constraints.txt setuptools Cython
cd "$tree"
"$run" setup.py -q build_ext --only-write
CC=$clang CFLAGS="-fsanitize=thread -O1 -g1" "$python" setup.py -q build_ext --inplace 2>build.log \
    || { tail build.log >&2; exit 1; }
export OMP_NUM_THREADS=1 PYTHONPATH=. PYTHONDONTWRITEBYTECODE=
export TSAN_OPTIONS="suppressions=tests/helpers/thread_sanitizer.supp die_after_fork=0 log_path=$reports/of"
status=0
# shellcheck disable=SC2086
"$python" -m pytest -p no:cacheprovider ${PYTEST_ARGS:-} "${tests[@]}" || status=$?
[ $status -ne 0 ] || "$python" -m tests.helpers.stress "${THREADS_SECONDS:-60}" || status=$?
! cat "$reports"/* 2>/dev/null || status=1
exit $status
