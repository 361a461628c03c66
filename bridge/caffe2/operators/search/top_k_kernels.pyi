# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

def top_k(
    x: int, outer: int, n: int, inner: int, k: int, values: int, places: int, flat: int
) -> None: ...
