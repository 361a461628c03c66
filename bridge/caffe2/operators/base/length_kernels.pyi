# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

def sum_of_lengths(lengths: Tensor, segments: int) -> int: ...
def checked(lengths: Tensor, segments: int, n: int) -> Tensor: ...
def ids_by_lengths(y: Tensor, lengths: Tensor, segments: int, n: int, wide: bool) -> Tensor: ...
def in_range(ids: Tensor, n: int, rows: int, wide: bool) -> Tensor: ...
def places_by_lengths(y: Tensor, lengths: Tensor, segments: int, n: int) -> Tensor: ...
def last_id(ids: Tensor, n: int, wide: bool, gapless: bool) -> int: ...
def sorted_to(ids: Tensor, n: int, segments: int) -> Tensor: ...
def counts_of_ids(y: Tensor, ids: Tensor, n: int, segments: int, wide: bool) -> Tensor: ...
def sums_by_ids(
    y: Tensor, data: Tensor, ids: Tensor, n: int, width: int, segments: int
) -> Tensor: ...
def greatest_by_lengths(
    y: Tensor, data: Tensor, lengths: Tensor, n: int, width: int, segments: int
) -> Tensor: ...
def rows_of_segments(
    y: Tensor, data: Tensor, lengths: Tensor, segments: int, n: int, width: int, mean: bool
) -> Tensor: ...
def longest(lengths: Tensor, segments: int) -> int: ...
def packed(
    y: Tensor,
    data: Tensor,
    lengths: Tensor,
    segments: int,
    n: int,
    longest: int,
    width: int,
    padding: float,
) -> Tensor: ...
def unpacked(
    y: Tensor, data: Tensor, lengths: Tensor, segments: int, n: int, longest: int, width: int
) -> Tensor: ...
def sum_segments(
    y: Tensor,
    data: Tensor,
    indices: Tensor | None,
    lengths: Tensor,
    weights: Tensor | None,
    rows: int,
    width: int,
    n: int,
    segments: int,
    wide: bool,
    mean: bool,
) -> Tensor: ...
def padded(
    y: Tensor,
    longer: Tensor,
    data: Tensor,
    lengths: Tensor,
    first: Tensor | None,
    last: Tensor | None,
    segments: int,
    n: int,
    width: int,
    itemsize: int,
    head: int,
    tail: int,
) -> Tensor: ...
