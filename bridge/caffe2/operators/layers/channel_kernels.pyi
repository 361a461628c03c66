# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

def local_response(
    x: int,
    y: int,
    base: int,
    images: int,
    channels: int,
    area: int,
    size: int,
    factor: float,
    bias: float,
) -> None: ...
def moments(x: int, mean: int, variance: int, images: int, channels: int, area: int) -> None: ...
def normalize(
    x: Tensor,
    y: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    epsilon: float,
    images: int,
    channels: int,
    area: int,
) -> Tensor: ...
