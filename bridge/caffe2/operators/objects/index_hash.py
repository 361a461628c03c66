# SPDX-License-Identifier: Apache-2.0
"""IndexHash: integers hashed to a range."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import INTS, require


@operator("IndexHash", types=INTS, inplace="0>0", gradient="undefined")
def index_hash(indices: Tensor, *, seed: int = 0, modulo: int = 0, out: Out = None) -> Tensor:
    """A hash of each integer in [0, `modulo`); it depends on `seed`.

    The hash starts at seed * 0xDEADBEEF; for each byte, lowest first and signed, it is multiplied
    by 65537 and the byte is added, wrapping around as its type does.
    Follows IndexHashOp, caffe2/operators/index_hash_ops.h, PyTorch 1.8.1.
    """
    bits = 8 * indices.element_size()
    require(0 < modulo < 2 ** (bits - 1), f"modulo is at least 1, and of {bits} bits", modulo)
    start = seed * 0xDEADBEEF % 2**bits
    start -= 2**bits if start >= 2 ** (bits - 1) else 0
    hashed = indices.new_full(indices.shape, start)
    for column in indices.reshape(-1, 1).view(torch.int8).unbind(1):
        hashed = hashed * 65537 + column.view(indices.shape)
    return torch.remainder(hashed, modulo, out=out)
