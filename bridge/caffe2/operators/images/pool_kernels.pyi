# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

def max_pool(
    x: Tensor, y: Tensor, planes: int, height: _Dimension, width: _Dimension
) -> Tensor: ...
def max_pool_gradient(
    x: Tensor, y: Tensor, dy: Tensor, dx: Tensor, planes: int, height: _Dimension, width: _Dimension
) -> Tensor: ...
def average_pool(
    x: Tensor, y: Tensor, planes: int, height: _Dimension, width: _Dimension, whole: bool
) -> Tensor: ...

_Dimension = tuple[int, int, int, int, int]
