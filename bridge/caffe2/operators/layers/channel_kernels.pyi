# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

def local_response(
    x: Tensor,
    y: Tensor,
    base: Tensor,
    images: int,
    channels: int,
    area: int,
    size: int,
    factor: float,
    bias: float,
) -> Tensor: ...
def moments(
    x: Tensor, mean: Tensor, variance: Tensor, images: int, channels: int, area: int
) -> Tensor: ...
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
