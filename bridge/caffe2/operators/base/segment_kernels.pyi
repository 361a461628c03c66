# SPDX-License-Identifier: Apache-2.0
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
