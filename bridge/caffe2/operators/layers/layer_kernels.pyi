# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

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
def compare(z: Tensor, x: Tensor, y: Tensor, rows: int, width: int, kind: str) -> Tensor: ...
def half_square_gradient(
    dx: Tensor, dy: Tensor, x: Tensor, y: Tensor, dz: Tensor, rows: int, width: int
) -> Tensor: ...
def mean(y: Tensor, x: Tensor, n: int) -> Tensor: ...
def spread(y: Tensor, x: Tensor, n: int) -> Tensor: ...
def fully_connected(
    x: Tensor, w: Tensor, b: Tensor, y: Tensor, rows: int, depth: int, columns: int
) -> Tensor: ...
def lstm_step(
    h: Tensor,
    c: Tensor,
    old_h: Tensor,
    old_c: Tensor,
    gates: Tensor,
    lengths: Tensor | None,
    t: Tensor,
    n: int,
    d: int,
    drop_states: bool,
    forget_bias: float,
) -> Tensor: ...
def lstm_step_gradient(
    dhidden: Tensor,
    dcell: Tensor,
    dgates: Tensor,
    old_c: Tensor,
    gates: Tensor,
    lengths: Tensor | None,
    t: Tensor,
    new_c: Tensor,
    dh: Tensor,
    dc: Tensor,
    n: int,
    d: int,
    drop_states: bool,
    forget_bias: float,
) -> Tensor: ...
def softmax(x: Tensor, y: Tensor, rows: int, columns: int) -> Tensor: ...
