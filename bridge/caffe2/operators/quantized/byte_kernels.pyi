# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

def to_bytes(x: Tensor, y: Tensor, rows: int, width: int) -> Tensor: ...
def to_floats(x: Tensor, y: Tensor, rows: int, width: int) -> Tensor: ...
def floats_of_bytes(y: Tensor, x: Tensor, n: int, zero_point: int) -> None: ...
def rescale_with_bias(
    y: Tensor,
    sums: Tensor,
    bias: Tensor,
    rows: int,
    n: int,
    multiplier: int,
    shift: int,
    zero_point: int,
    lowest: int,
) -> bool: ...
def add_scaled(
    y: Tensor,
    a: Tensor,
    b: Tensor,
    n: int,
    by_a: int,
    by_b: int,
    start: int,
    shift: int,
    zero_point: int,
    lowest: int,
) -> None: ...
def sum_rows(
    y: Tensor,
    table: Tensor,
    ends: Tensor | None,
    mapping: Tensor | None,
    indices: Tensor,
    lengths: Tensor,
    weights: Tensor | None,
    rows: int,
    size: int,
    mapped: int,
    n: int,
    segments: int,
    bits: int,
    wide: bool,
    mean: bool,
) -> Tensor: ...
