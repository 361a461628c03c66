# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

def fully_connected(
    x: Tensor, w: Tensor, b: Tensor, y: Tensor, rows: int, depth: int, columns: int
) -> Tensor: ...
