#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzz the reader of blobs and each door of tests/fuzz/doors.py for a minute (FUZZ_SECONDS), guided by
# coverage: `tools/fuzz.sh`, or `tools/fuzz.sh minidb net` for some of the doors.
#
# It needs clang (CLANG) and PYTHON. The package is built from a copy into FUZZ_VENV, by default
# .venv-fuzz, where what is found stays too: the compiled modules tell libFuzzer what they cover,
# which only clang can make them do, and which slows them down.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=${FUZZ_VENV:-.venv-fuzz}
clang=${CLANG:-clang}
seconds=${FUZZ_SECONDS:-60}
doors=("$@")
[ $# -gt 0 ] || doors=(capsule table exchange_table array_interface array_struct cuda_interface
    producer buffer arrow_array tensor_proto net operators minidb predictor chunks convert pickled
    shell)
# What libFuzzer reads, without what only its own main program has.
coverage="-fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp"

command -v "$clang" >/dev/null \
    || { echo "Fuzzing needs clang: apt-get install clang, or CLANG=clang-19" >&2; exit 1; }
newer=$(find bridge pyproject.toml setup.py constraints.txt -newer "$venv/made-fuzz" \
    \( -name '*.p*' -o -name '*.h' -o -name '*.txt' -o -name '*.toml' \) -print -quit 2>/dev/null || echo all)
if [ -n "$newer" ]; then
    rm -rf "$venv/src"
    test -x "$venv/bin/python" || "${PYTHON:-python3}" -m venv "$venv"
    mkdir -p "$venv/src"
    cp -R bridge pyproject.toml setup.py README.md LICENSE "$venv/src"
    find "$venv/src" \( -name '*.so' -o -name '*.c' \) -exec rm -f {} +
    CC=$clang CFLAGS="$coverage" "$venv/bin/python" -m pip install --disable-pip-version-check \
        --force-reinstall --constraint constraints.txt atheris ml_dtypes pytest torch "$venv/src"
    touch "$venv/made-fuzz"
fi
"$venv/bin/python" tests/fuzz/fuzz_blob.py -max_total_time="$seconds" -artifact_prefix="$venv/" \
    "$venv/corpus"
for door in "${doors[@]}"; do
    "$venv/bin/python" tests/fuzz/fuzz_door.py "$door" -max_total_time="$seconds" \
        -artifact_prefix="$venv/$door-" "$venv/corpus-$door"
done
