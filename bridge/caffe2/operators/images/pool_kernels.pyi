# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

def max_pool(x: int, y: int, planes: int, height: _Dimension, width: _Dimension) -> None: ...
def max_pool_gradient(
    x: int, y: int, dy: int, dx: int, planes: int, height: _Dimension, width: _Dimension
) -> None: ...
def average_pool(
    x: int, y: int, planes: int, height: _Dimension, width: _Dimension, whole: bool
) -> None: ...

_Dimension = tuple[int, int, int, int, int]
