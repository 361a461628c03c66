# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

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
) -> Tensor: ...
