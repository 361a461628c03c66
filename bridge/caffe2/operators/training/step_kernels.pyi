# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from collections.abc import Callable

from torch import Tensor

def adam(
    new_w: Tensor,
    new_m: Tensor,
    new_v: Tensor,
    step: Tensor | None,
    w: Tensor,
    m: Tensor,
    v: Tensor,
    g: Tensor,
    lr: Tensor,
    iteration: Tensor,
    n: int,
    beta1: float,
    beta2: float,
    epsilon: float,
) -> Tensor: ...
def adagrad(
    new_w: Tensor,
    new_h: Tensor,
    w: Tensor,
    h: Tensor,
    g: Tensor,
    lr: Tensor,
    n: int,
    epsilon: float,
    decay: float,
    weight_decay: float,
) -> Tensor: ...
def wngrad(
    new_w: Tensor,
    new_b: Tensor,
    w: Tensor,
    b: Tensor,
    g: Tensor,
    lr: Tensor,
    n: int,
    epsilon: float,
) -> Tensor: ...
def momentum(
    step: Tensor,
    new_m: Tensor,
    new_w: Tensor,
    g: Tensor,
    m: Tensor,
    lr: Tensor,
    w: Tensor,
    n: int,
    weight: float,
    nesterov: bool,
) -> Tensor: ...
def adadelta(
    new_w: Tensor,
    new_h: Tensor,
    new_d: Tensor,
    w: Tensor,
    h: Tensor,
    d: Tensor,
    g: Tensor,
    lr: Tensor,
    n: int,
    epsilon: float,
    decay: float,
) -> Tensor: ...
def storm(
    new_w: Tensor,
    new_m: Tensor,
    new_total: Tensor,
    w: Tensor,
    m: Tensor,
    total: Tensor,
    g: Tensor,
    lr: Tensor,
    n: int,
    weight: float,
    beta: float,
) -> Tensor: ...
def rms_prop(
    step: Tensor,
    new_h: Tensor,
    new_m: Tensor,
    g: Tensor,
    h: Tensor,
    m: Tensor,
    lr: Tensor,
    n: int,
    decay: float,
    momentum: float,
    epsilon: float,
) -> Tensor: ...
def ftrl(
    new_w: Tensor,
    new_pairs: Tensor,
    w: Tensor,
    pairs: Tensor,
    g: Tensor,
    alpha: Tensor | None,
    n: int,
    inverse: float,
    beta: float,
    lambda1: float,
    lambda2: float,
) -> Tensor: ...
def gftrl(
    new_w: Tensor,
    new_pairs: Tensor,
    w: Tensor,
    pairs: Tensor,
    g: Tensor,
    alpha: Tensor | None,
    rows: int,
    width: int,
    inverse: float,
    beta: float,
    lambda1: float,
    lambda2: float,
) -> Tensor: ...
def yellow_fin(
    new_w: Tensor,
    others: list[Tensor],
    w: Tensor,
    olds: list[Tensor],
    g: Tensor,
    at: Tensor,
    n: int,
    room: int,
    width: int,
    beta: float,
    epsilon: float,
    nesterov: bool,
    zero_debias: bool,
) -> Tensor: ...
def rate(y: Tensor, iteration: Tensor, n: int, policy: Callable[[int], float]) -> Tensor: ...
def count(y: Tensor, largest: int) -> bool: ...
