#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run the tests of the core, exchange, blobs and operators, and the doors, under AddressSanitizer and
# UBSan: in an hour or two; `tools/sanitize.sh quick` those nearest to memory, in a few minutes.
#
# It needs the environment that `make test` made, by default .venv (VENV), and gcc (CC). SANITIZED
# names another folder for the copy of the tree, and PYTEST_ARGS more arguments of pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=$(realpath "${VENV:-.venv}")
tree=${SANITIZED:-$venv/sanitized}/addresses
tests=(tests/dlpack tests/c10 tests/wire tests/exchange tests/at tests/see tests/tf tests/libraries
    tests/caffe2/tensor tests/caffe2/blobs tests/caffe2/files tests/test_wrapper.py
    tests/test_front.py tests/test_pickling.py tests/test_exchange_table_export.py
    tests/test_exchange_table_import.py tests/caffe2/operators tests/conformance/operators tests/fuzz)
optimise=-O1
if [ "${1:-}" = quick ]; then
    # Sizes, descriptors, storages, allocators, and the structures that others hand in.
    tests=(tests/c10 tests/dlpack tests/exchange/test_numpy.py tests/exchange/test_buffer_import.py
        tests/exchange/test_arrow_import.py tests/test_exchange_table_import.py)
    optimise=-O0
fi
if [ -n "${SANITIZED_TESTS:-}" ]; then
    read -r -a tests <<<"$SANITIZED_TESTS"
fi
flags="-fsanitize=address,undefined $optimise"

# A copy in a place of its own, as neither build may see what the other left. The C files are those
# of the usual build, where it has made them.
rm -rf "$tree"
mkdir -p "$tree"
tar -c --exclude='*.so' --exclude=__pycache__ bridge tests tools examples docs pyproject.toml \
    setup.py README.md LICENSE CHANGELOG.md CONTRIBUTING.md Makefile constraints.txt | tar -x -C "$tree"
cd "$tree"
CFLAGS="$flags -g1 -fno-omit-frame-pointer" LDFLAGS="$flags" \
    "$venv/bin/python" setup.py -q build_ext --inplace --parallel "$(nproc)" 2>build.log \
    || { tail build.log >&2; exit 1; }

# Python itself is not instrumented, so the library is loaded before it; libstdc++ too, whose
# exceptions it intercepts. pytest captures nothing (-s), or what a sanitizer says of a dying process
# would be lost. Leaks are not looked for: Python and the frameworks keep what they have until the
# process ends. Sizes that nobody can allocate are asked for on purpose. Paddle 3.3 deletes an array
# as a single object when the process ends, bridge or not (~IrContext in libpaddle); our modules are
# C, which has no two ways to allocate.
compiler=${CC:-cc}
preload="$($compiler -print-file-name=libasan.so) $($compiler -print-file-name=libstdc++.so)"
export ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0:allocator_may_return_null=1:alloc_dealloc_mismatch=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export OMP_NUM_THREADS=1 PYTHONPATH=. PYTHONMALLOC=malloc
# shellcheck disable=SC2086
LD_PRELOAD="$preload" "$venv/bin/python" -m pytest --numprocesses="${WORKERS:-auto}" \
    --maxprocesses=8 --dist=worksteal -s -p no:cacheprovider ${PYTEST_ARGS:-} "${tests[@]}"
