# SPDX-License-Identifier: Apache-2.0
"""Rows of numbers of 1, 2, 4 or 8 bits, rounded randomly.

A row consists of the bits per number, the number of unused numbers in the last byte, the minimum
and the maximum (float32), and the numbers: the first numbers in the lowest bits of all bytes, then
the second numbers, and so on. Follows caffe2/operators/fused_rowwise_random_quantization_ops.cc,
PyTorch 1.8.1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import RandomGenerator, operator
from bridge.caffe2.operators.base.checks import require

_HEAD = 10  # bytes before the numbers
_BITS = (1, 2, 4, 8)
_LEAST_GAP = 1e-8


@operator("FloatToFusedRandRowwiseQuantized", gradient="none", effects=("random",))
def float_to_fused_rand_rowwise_quantized(
    x: Tensor, *, bitwidth: int = 8, random: bool = True, generator: RandomGenerator = None
) -> Tensor:
    """Quantize the rows of a matrix with `bitwidth` bits per number.

    With `random` a value is rounded up with a probability equal to its fraction, otherwise to the
    nearest number.
    """
    require(bitwidth in _BITS, f"bitwidth is one of {_BITS}", bitwidth)
    require(x.dim() == 2, "X has two dimensions", x)
    rows, columns = x.shape
    per_byte = 8 // bitwidth
    width = -(-columns // per_byte)
    tail = width * per_byte - columns
    low, high = _extreme(x, -1), _extreme(x, 1)
    most = 2**bitwidth - 1
    # In float64, as in Caffe2: the precision decides how halves are rounded.
    gap = ((high - low) / most).double() + _LEAST_GAP
    steps = ((x - low).double() / gap).float()
    if random:
        chance = torch.rand(x.shape, generator=generator, dtype=torch.float32, device=x.device)
        steps = (steps + chance).floor()
    numbers = steps.round().nan_to_num(most).clamp(0, most).to(torch.uint8)
    numbers = torch.cat([numbers, numbers.new_zeros(rows, tail)], 1)
    packed = numbers.new_zeros(rows, width)
    for place in range(per_byte):
        packed = packed | numbers[:, place * width : (place + 1) * width] << place * bitwidth
    head = numbers.new_tensor([bitwidth, tail]).expand(rows, 2)
    return torch.cat([head, torch.cat([low, high], 1).view(torch.uint8), packed], 1)


def _extreme(x: Tensor, sign: int) -> Tensor:
    """Return the maximum of each row, with `sign` -1 the minimum; NaN is ignored.

    Of an empty row it is -infinity or infinity.
    """
    nothing = x.new_full((x.shape[0], 1), -torch.inf)
    found = torch.cat([nothing, torch.where(x.isnan(), -torch.inf, x * sign)], 1)
    return found.amax(1, keepdim=True) * sign


@operator("FusedRandRowwiseQuantizedToFloat", types=c10.uint8, gradient="none", effects=("values",))
def fused_rand_rowwise_quantized_to_float(x: Tensor) -> Tensor:
    """Convert such rows to a matrix; the first row specifies the bits per number."""
    require(x.dim() == 2, "X has two dimensions", x)
    require(x.numel() > 0 and x.shape[1] >= _HEAD, f"a row has at least {_HEAD} bytes", x)
    bits, tail = x[0, :2].tolist()
    require(bits in _BITS, f"the number of bits is one of {_BITS}", bits)
    packed = x[:, _HEAD:]
    columns = packed.shape[1] * (8 // bits) - tail
    require(columns >= 0, "no more numbers are missing than a byte has", tail)
    ends = x[:, 2:_HEAD].clone(memory_format=torch.contiguous_format).view(torch.float32)
    low, high = ends[:, :1], ends[:, 1:]
    most = 2**bits - 1
    gap = ((high - low) / most).double() + _LEAST_GAP
    numbers = torch.cat([(packed >> shift) & most for shift in range(0, 8, bits)], 1)
    return (low.double() + gap * numbers[:, :columns].double()).float()
