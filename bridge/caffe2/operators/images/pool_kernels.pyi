# SPDX-License-Identifier: Apache-2.0
Dimension = tuple[int, int, int, int, int]

def max_pool(x: int, y: int, planes: int, height: Dimension, width: Dimension) -> None: ...
def average_pool(
    x: int, y: int, planes: int, height: Dimension, width: Dimension, whole: bool
) -> None: ...
