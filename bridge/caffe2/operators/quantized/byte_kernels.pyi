# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

def to_bytes(x: Tensor, y: Tensor, rows: int, width: int) -> Tensor: ...
def to_floats(x: Tensor, y: Tensor, rows: int, width: int) -> Tensor: ...
