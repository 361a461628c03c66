# SPDX-License-Identifier: Apache-2.0
"""Rows of numbers of two or four bits, each row followed by its scale and bias.

The first number of a byte is in its lowest bits. Scale and bias are float16; a value is number *
scale + bias. "Fake" rows have one byte per number, and float32 scale and bias. Follows
fused_rowwise_nbit_conversion_ops.h, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import TorchOperator, enforce
from bridge.caffe2.operators.base.variants import register_variant

__all__ = ["unpacked"]

_BINS = 200  # number of steps per range in the greedy search
_RATIO = 0.16  # part of the range by which it may shrink


def scale_of(low: torch.Tensor, high: torch.Tensor, bits: int) -> torch.Tensor:
    """Return the scale of rows with values from `low` to `high`, rounded to float16."""
    scale = ((high - low) / (2**bits - 1)).half().float()
    return torch.where((high == low) | (scale == 0) | torch.isinf(1 / scale), 1.0, scale)


def numbers_of(
    x: torch.Tensor, low: torch.Tensor, high: torch.Tensor, bits: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the numbers, scales and biases of rows with values from `low` to `high`."""
    low = low.half().float()
    scale = scale_of(low, high, bits)
    numbers = ((x - low) * (1 / scale)).round().clamp(0, 2**bits - 1)
    return numbers, scale, low


def error_of(x: torch.Tensor, low: torch.Tensor, high: torch.Tensor, bits: int) -> torch.Tensor:
    """Return the norm of the quantization error of each row for these ranges."""
    numbers, scale, bias = numbers_of(x, low, high, bits)
    return torch.linalg.vector_norm(x - (numbers * scale + bias), dim=1, keepdim=True)


def greedy_range(
    x: torch.Tensor, low: torch.Tensor, high: torch.Tensor, bits: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ranges with a smaller error, found by greedy search.

    In each step the end is moved inwards that results in the smaller error. The result is the best
    range that is better than both of its neighbours, or the whole range if there is none.
    """
    step = (high - low) / _BINS
    least = _BINS * (1 - _RATIO) * step
    error = error_of(x, low, high, bits)
    best_low, best_high, best = low, high, torch.full_like(error, torch.inf)
    going = low + least < high
    while bool(going.any()):
        left, right = error_of(x, low + step, high, bits), error_of(x, low, high - step, bits)
        better = going & (error < left) & (error < right) & (error < best)
        best_low = torch.where(better, low, best_low)
        best_high = torch.where(better, high, best_high)
        best = torch.where(better, error, best)
        from_left = left < right
        low = torch.where(going & from_left, low + step, low)
        high = torch.where(going & ~from_left, high - step, high)
        error = torch.where(from_left, left, right)
        going = going & (low + least < high)
    return best_low, best_high


def packed(numbers: torch.Tensor, bits: int) -> torch.Tensor:
    """Return rows of numbers as rows of bytes."""
    per_byte = 8 // bits
    apart = numbers.to(torch.uint8).view(len(numbers), numbers.size(1) // per_byte, per_byte)
    shifts = torch.arange(0, 8, bits, dtype=torch.uint8)
    return (apart << shifts).sum(2, dtype=torch.uint8)


def unpacked(rows: torch.Tensor, bits: int) -> torch.Tensor:
    """Return rows of bytes with scale and bias as rows of float32."""
    width = rows.size(1) - 4
    ends = rows[:, width:].clone(memory_format=torch.contiguous_format)
    ends = ends.view(torch.float16).float()
    shifts = torch.arange(0, 8, bits, dtype=torch.uint8)
    numbers = (rows[:, :width, None] >> shifts) & (2**bits - 1)
    flat = numbers.reshape(len(rows), width * (8 // bits)).float()
    return flat * ends[:, :1] + ends[:, 1:]


class _NBit(TorchOperator):
    """An operator on rows, the last dimension, of numbers of `bits` bits."""

    bits = 4

    def rows(self, x: torch.Tensor) -> torch.Tensor:
        """Return the rows of a tensor as a matrix."""
        enforce(x.dim() > 0, "Input 0 must have at least one dimension.")
        return x.reshape(x.shape[:-1].numel(), x.size(-1))


class _Quantize(_NBit):
    """Quantize rows of float32 or float16."""

    types: tuple[c10.TypeMeta, ...] = (c10.float32,)
    greedy = False
    fake = False

    def RunOnDevice(self) -> None:
        x = self.x(0, self.types)
        enforce(not self.fake or x.dim() == 2, "Input 0 must have two dimensions.")
        rows = self.rows(x).float()
        per_byte = 8 // self.bits
        enforce(rows.size(1) > 0, "There are no columns.")
        enforce(
            self.fake or rows.size(1) % per_byte == 0,
            f"The number of columns must be a multiple of {per_byte}, not {rows.size(1)}.",
        )
        low, high = rows.amin(1, keepdim=True), rows.amax(1, keepdim=True)
        if self.greedy:
            low, high = greedy_range(rows, low, high, self.bits)
        numbers, scale, bias = numbers_of(rows, low, high, self.bits)
        kept = torch.float32 if self.fake else torch.float16
        ends = torch.cat([scale, bias], 1).to(kept).view(torch.uint8)
        body = numbers.to(torch.uint8) if self.fake else packed(numbers, self.bits)
        done = torch.cat([body, ends], 1)
        self.put(0, done.view(*x.shape[:-1], done.size(1)))


class _Dequantize(_NBit):
    """Convert quantized rows to float32 or float16."""

    result: c10.TypeMeta = c10.float32

    def RunOnDevice(self) -> None:
        x = self.x(0, (c10.uint8,))
        rows = self.rows(x)
        enforce(
            rows.size(1) >= 4, f"Rows of {rows.size(1)} bytes are too short for scale and bias."
        )
        done = unpacked(rows, self.bits).to(self.result.torch)
        self.put(0, done.view(*x.shape[:-1], done.size(1)))


for _bits in (2, 4):
    for _kind, _type in (("Float", c10.float32), ("Half", c10.float16)):
        for _fake in ("", "Fake"):
            for _engine in ("", "GREEDY"):
                register_variant(
                    f"{_kind}ToFused{_bits}Bit{_fake}RowwiseQuantized",
                    _Quantize,
                    None,
                    _engine,
                    bits=_bits,
                    types=(_type,),
                    greedy=bool(_engine),
                    fake=bool(_fake),
                )
        register_variant(
            f"Fused{_bits}BitRowwiseQuantizedTo{_kind}", _Dequantize, bits=_bits, result=_type
        )
