# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

def are_of(regions: Tensor, count: int, columns: int, images: int, sides: int) -> bool: ...
def roi_align(
    x: Tensor,
    regions: Tensor,
    y: Tensor,
    images: int,
    count: int,
    columns: int,
    channels: int,
    height: int,
    width: int,
    pooled_h: int,
    pooled_w: int,
    scale: float,
    ratio: int,
    aligned: bool,
    back: bool = False,
) -> Tensor: ...
def roi_align_rotated(
    x: Tensor,
    regions: Tensor,
    y: Tensor,
    images: int,
    count: int,
    columns: int,
    channels: int,
    height: int,
    width: int,
    pooled_h: int,
    pooled_w: int,
    scale: float,
    ratio: int,
    aligned: bool,
    back: bool = False,
) -> Tensor: ...
def roi_pool(
    x: Tensor,
    regions: Tensor,
    y: Tensor,
    places: Tensor,
    images: int,
    count: int,
    channels: int,
    height: int,
    width: int,
    pooled_h: int,
    pooled_w: int,
    scale: float,
) -> Tensor: ...
