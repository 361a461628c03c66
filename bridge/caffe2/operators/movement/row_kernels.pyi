# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

def take(
    y: Tensor,
    data: Tensor,
    indices: Tensor,
    n: int,
    rows: int,
    width: int,
    itemsize: int,
    wide: bool,
    wraps: bool,
) -> Tensor: ...
def assign(
    y: Tensor,
    slices: Tensor,
    indices: Tensor,
    n: int,
    rows: int,
    width: int,
    itemsize: int,
    wide: bool,
) -> Tensor: ...
def one_hot(y: Tensor, indices: Tensor, n: int, size: int) -> Tensor: ...
def add_weighted(
    y: Tensor,
    weight: Tensor,
    indices: Tensor,
    xs: list[Tensor],
    weights: list[Tensor],
    n: int,
    rows: int,
    width: int,
    wide: bool,
) -> Tensor: ...
def add_along(
    y: Tensor, dy: Tensor, indices: Tensor, outer: int, n: int, rows: int, inner: int, wide: bool
) -> Tensor: ...
def int32_list(x: Tensor, n: int) -> list[int]: ...
def split(
    x: Tensor,
    parts: list[Tensor],
    sizes: list[int],
    lengths: Tensor | None,
    outer: int,
    inner: int,
    itemsize: int,
) -> Tensor: ...
def repeat(y: Tensor, x: Tensor, rows: int, width: int) -> Tensor: ...
def last_of_ids(
    y: Tensor,
    ids: Tensor,
    rows: Tensor,
    known: Tensor,
    columns: Tensor,
    n: int,
    size: int,
    segments: int,
) -> Tensor: ...
