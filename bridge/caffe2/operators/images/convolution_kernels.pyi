# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

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
