# SPDX-License-Identifier: Apache-2.0
"""Rows of numbers of 1, 2, 4 or 8 bits, rounded randomly.

A row consists of the bits per number, the number of unused numbers in the last byte, the minimum
and the maximum (float32), and the numbers: the first numbers in the lowest bits of all bytes, then
the second numbers, and so on. Follows caffe2/operators/fused_rowwise_random_quantization_ops.cc,
PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.random_operator import RandomOperator
from bridge.caffe2.operators.base.torch_operator import FLOAT, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []

_HEAD = 10  # bytes before the numbers
_BITS = (1, 2, 4, 8)
_LEAST_GAP = 1e-8


@register_operator("FloatToFusedRandRowwiseQuantized")
class FloatToFusedRandRowwiseQuantized(RandomOperator):
    """Quantize the rows of a matrix with `bitwidth` (8) bits per number.

    With `random` (True) a value is rounded up with a probability equal to its fraction, otherwise
    to the nearest number.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._bits = self.GetSingleArgument("bitwidth", 8)
        enforce(self._bits in _BITS, f"bitwidth must be one of {_BITS}, not {self._bits}.")

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        enforce(x.dim() == 2, "Input 0 must have two dimensions.")
        rows, columns = x.shape
        per_byte = 8 // self._bits
        width = -(-columns // per_byte)
        tail = width * per_byte - columns
        low, high = _extreme(x, -1), _extreme(x, 1)
        # In float64, as in Caffe2: the precision decides how halves are rounded.
        gap = ((high - low) / (2**self._bits - 1)).double() + _LEAST_GAP
        steps = ((x - low).double() / gap).float()
        if self.GetSingleArgument("random", True):
            steps = (steps + torch.rand(x.shape, generator=self.generator())).floor()
        most = 2**self._bits - 1
        numbers = steps.round().nan_to_num(most).clamp(0, most).to(torch.uint8)
        numbers = torch.cat([numbers, numbers.new_zeros(rows, tail)], 1)
        packed = numbers.new_zeros(rows, width)
        for place in range(per_byte):
            part = numbers[:, place * width : (place + 1) * width]
            packed |= part << (place * self._bits)
        head = torch.tensor([self._bits, tail], dtype=torch.uint8).expand(rows, 2)
        self.put(0, torch.cat([head, torch.cat([low, high], 1).view(torch.uint8), packed], 1))


def _extreme(x: torch.Tensor, sign: int) -> torch.Tensor:
    """Return the maximum of each row, with `sign` -1 the minimum; NaN is ignored.

    Of an empty row it is -infinity or infinity.
    """
    nothing = torch.full((len(x), 1), -float("inf"))
    found = torch.cat([nothing, torch.where(x.isnan(), -float("inf"), x * sign)], 1)
    return found.amax(1, keepdim=True) * sign


@register_operator("FusedRandRowwiseQuantizedToFloat")
class FusedRandRowwiseQuantizedToFloat(TorchOperator):
    """Convert such rows to a matrix; the first row specifies the bits per number."""

    def RunOnDevice(self) -> None:
        x = self.x(0, (c10.uint8,))
        enforce(x.dim() == 2, "Input 0 must have two dimensions.")
        enforce(x.numel() > 0 and x.size(1) >= _HEAD, f"A row must have at least {_HEAD} bytes.")
        bits, tail = x[0, :2].tolist()
        enforce(bits in _BITS, f"The number of bits must be one of {_BITS}, not {bits}.")
        packed = x[:, _HEAD:]
        columns = packed.size(1) * (8 // bits) - tail
        enforce(columns >= 0, f"{tail} numbers cannot be missing in the last byte.")
        ends = x[:, 2:_HEAD].clone(memory_format=torch.contiguous_format).view(torch.float32)
        low, high = ends[:, :1], ends[:, 1:]
        gap = ((high - low) / (2**bits - 1)).double() + _LEAST_GAP
        mask = 2**bits - 1
        numbers = torch.cat([(packed >> shift) & mask for shift in range(0, 8, bits)], 1)
        self.put(0, (low.double() + gap * numbers[:, :columns].double()).float())
