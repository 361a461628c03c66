# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from collections.abc import Callable

from torch import Tensor

def adagrad(
    param: Tensor,
    moment: Tensor,
    indices: Tensor,
    grad: Tensor,
    lr: Tensor,
    n: int,
    rows: int,
    width: int,
    wide: bool,
    epsilon: float,
    weight_decay: float,
    by_row: bool,
) -> Tensor: ...
def adam(
    param: Tensor,
    moment_1: Tensor,
    moment_2: Tensor,
    steps: Tensor | None,
    indices: Tensor,
    grad: Tensor,
    lr: Tensor,
    iteration: Tensor,
    n: int,
    rows: int,
    width: int,
    wide: bool,
    beta1: float,
    beta2: float,
    epsilon: float,
    scale: Callable[[int], tuple[float, bool]],
    by_row: bool,
) -> Tensor: ...
