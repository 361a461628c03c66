# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

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
