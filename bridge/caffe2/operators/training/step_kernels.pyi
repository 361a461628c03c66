# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from collections.abc import Callable

from torch import Tensor

def adam(
    w: Tensor,
    m: Tensor,
    v: Tensor,
    step: Tensor | None,
    g: Tensor,
    lr: Tensor,
    iteration: Tensor,
    n: int,
    beta1: float,
    beta2: float,
    epsilon: float,
) -> Tensor: ...
def adagrad(
    w: Tensor,
    h: Tensor,
    g: Tensor,
    lr: Tensor,
    n: int,
    epsilon: float,
    decay: float,
    weight_decay: float,
) -> Tensor: ...
def rms_prop(
    steps: Tensor,
    h: Tensor,
    m: Tensor,
    lr: Tensor,
    n: int,
    decay: float,
    momentum: float,
    epsilon: float,
) -> Tensor: ...
def momentum(
    steps: Tensor,
    m: Tensor,
    w: Tensor | None,
    indices: Tensor | None,
    lr: Tensor,
    n: int,
    rows: int,
    width: int,
    wide: bool,
    weight: float,
    nesterov: bool,
) -> Tensor: ...
def adadelta(
    w: Tensor,
    h: Tensor,
    d: Tensor,
    indices: Tensor | None,
    g: Tensor,
    lr: Tensor,
    n: int,
    rows: int,
    width: int,
    wide: bool,
    epsilon: float,
    decay: float,
) -> Tensor: ...
def ftrl(
    w: Tensor,
    pairs: Tensor,
    indices: Tensor | None,
    g: Tensor,
    alpha: Tensor | None,
    n: int,
    rows: int,
    width: int,
    wide: bool,
    inverse: float,
    beta: float,
    lambda1: float,
    lambda2: float,
) -> Tensor: ...
def wngrad(
    w: Tensor,
    b: Tensor,
    indices: Tensor | None,
    g: Tensor,
    lr: Tensor,
    n: int,
    rows: int,
    width: int,
    wide: bool,
    epsilon: float,
) -> Tensor: ...
def storm(
    w: Tensor,
    m: Tensor,
    total: Tensor,
    indices: Tensor | None,
    g: Tensor,
    lr: Tensor,
    n: int,
    rows: int,
    width: int,
    wide: bool,
    weight: float,
    beta: float,
) -> Tensor: ...
def count_rows(
    last: Tensor,
    counts: Tensor,
    indices: Tensor,
    iteration: Tensor,
    n: int,
    rows: int,
    wide: bool,
    halflife: int,
) -> Tensor: ...
def rate(y: Tensor, iteration: Tensor, n: int, policy: Callable[[int], float]) -> Tensor: ...
def count(y: Tensor, largest: int) -> bool: ...
def sparse_adagrad(
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
def sparse_adam(
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
