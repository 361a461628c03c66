# SPDX-License-Identifier: Apache-2.0
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
    x: int,
    y: int,
    scale: int,
    bias: int,
    mean: int,
    variance: int,
    epsilon: float,
    images: int,
    channels: int,
    area: int,
) -> None: ...
