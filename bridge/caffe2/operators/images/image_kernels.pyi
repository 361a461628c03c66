# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

_Dimension = tuple[int, int, int, int, int]

def max_pool(
    x: Tensor, y: Tensor, planes: int, height: _Dimension, width: _Dimension
) -> Tensor: ...
def max_pool_gradient(
    x: Tensor, y: Tensor, dy: Tensor, dx: Tensor, planes: int, height: _Dimension, width: _Dimension
) -> Tensor: ...
def average_pool(
    x: Tensor, y: Tensor, planes: int, height: _Dimension, width: _Dimension, whole: bool
) -> Tensor: ...
def convolve(
    x: Tensor,
    y: Tensor,
    w: Tensor,
    bias: Tensor | None,
    images: int,
    channels: int,
    height: int,
    width: int,
    outputs: int,
    group: int,
    kernel_h: int,
    kernel_w: int,
    top: int,
    left: int,
    out_h: int,
    out_w: int,
) -> Tensor: ...
def resize_nearest(
    x: Tensor,
    y: Tensor,
    planes: int,
    height: int,
    width: int,
    to_height: int,
    to_width: int,
    height_scale: float,
    width_scale: float,
) -> Tensor: ...
