# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

def top_k(
    x: Tensor,
    values: Tensor,
    places: Tensor,
    flat: Tensor | None,
    outer: int,
    n: int,
    inner: int,
    k: int,
) -> Tensor: ...
def top_k_of_segments(
    x: Tensor, values: Tensor, places: Tensor, lengths: Tensor, segments: int, n: int, k: int
) -> Tensor: ...
def linear_pieces(
    y: Tensor,
    x: Tensor,
    bounds: list[float] | Tensor,
    slopes: list[float] | Tensor,
    intercepts: list[float] | Tensor,
    rows: int,
    columns: int,
    pieces: int,
    binary: bool,
) -> Tensor: ...
