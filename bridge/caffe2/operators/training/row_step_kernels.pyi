# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

def momentum(
    w: Tensor,
    m: Tensor,
    steps: Tensor,
    indices: Tensor,
    g: Tensor,
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
    indices: Tensor,
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
    indices: Tensor,
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
    indices: Tensor,
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
    indices: Tensor,
    g: Tensor,
    lr: Tensor,
    n: int,
    rows: int,
    width: int,
    wide: bool,
    weight: float,
    beta: float,
) -> Tensor: ...
def count(
    last: Tensor,
    counts: Tensor,
    indices: Tensor,
    iteration: Tensor,
    n: int,
    rows: int,
    wide: bool,
    halflife: int,
) -> Tensor: ...
