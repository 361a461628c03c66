# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

def rescale(
    sums: int, n: int, multiplier: int, shift: int, zero_point: int, lowest: int, y: int
) -> None: ...
