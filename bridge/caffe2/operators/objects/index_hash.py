# SPDX-License-Identifier: Apache-2.0
"""IndexHash: integers hashed to a range."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import INTS, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


@register_operator("IndexHash")
class IndexHash(TorchOperator):
    """A hash of each integer in [0, `modulo`); it depends on `seed` (0).

    The hash starts at seed * 0xDEADBEEF; for each byte, lowest first and signed, it is multiplied
    by 65537 and the byte is added, wrapping around as its type does.
    Follows IndexHashOp, caffe2/operators/index_hash_ops.h, PyTorch 1.8.1.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._seed = self.GetSingleArgument("seed", 0)
        self._modulo = self.GetSingleArgument("modulo", 0)
        enforce(self._modulo > 0, f"modulo must be at least 1, not {self._modulo}.")

    def RunOnDevice(self) -> None:
        x = self.x(0, INTS)
        bits = 8 * x.element_size()
        enforce(
            self._modulo < 2 ** (bits - 1),
            f"modulo, {self._modulo}, is out of range for {x.dtype}.",
        )
        start = self._seed * 0xDEADBEEF % 2**bits
        start -= 2**bits if start >= 2 ** (bits - 1) else 0
        hashed = torch.full(x.shape, start, dtype=x.dtype)
        for column in x.reshape(-1, 1).view(torch.int8).unbind(1):
            hashed = hashed * 65537 + column.view(x.shape)
        self.put(0, torch.remainder(hashed, self._modulo))
