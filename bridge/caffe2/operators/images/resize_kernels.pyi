# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

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
