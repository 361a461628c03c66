# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

def sum_segments(
    data: Tensor,
    y: Tensor,
    indices: Tensor | None,
    lengths: Tensor,
    weights: Tensor | None,
    rows: int,
    width: int,
    n: int,
    segments: int,
    wide: bool,
    mean: bool,
) -> bool: ...
