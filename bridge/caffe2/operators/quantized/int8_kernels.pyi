# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

def rescale(
    sums: int, n: int, multiplier: int, shift: int, zero_point: int, lowest: int, y: int
) -> None: ...
def floats_of_bytes(x: int, n: int, zero_point: int, y: int) -> None: ...
def rescale_with_bias(
    sums: int,
    bias: int,
    rows: int,
    n: int,
    multiplier: int,
    shift: int,
    zero_point: int,
    lowest: int,
    y: int,
) -> bool: ...
def add_scaled(
    a: int,
    b: int,
    n: int,
    by_a: int,
    by_b: int,
    start: int,
    shift: int,
    zero_point: int,
    lowest: int,
    y: int,
) -> None: ...
