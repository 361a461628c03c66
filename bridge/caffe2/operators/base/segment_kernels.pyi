# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

def sum_segments(
    data: int,
    rows: int,
    width: int,
    indices: int,
    wide: bool,
    n: int,
    lengths: int,
    segments: int,
    weights: int,
    mean: bool,
    y: int,
) -> bool: ...
