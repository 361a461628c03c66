# SPDX-License-Identifier: Apache-2.0
"""Rows of numbers of two or four bits, each row followed by its scale and bias.

The first number of a byte is in its lowest bits. Scale and bias are float16; a value is number *
scale + bias. "Fake" rows have one byte per number, and float32 scale and bias. Follows
fused_rowwise_nbit_conversion_ops.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import FLOAT, require

_BINS = 200  # number of steps per range in the greedy search
_RATIO = 0.16  # part of the range by which it may shrink


def scale_of(low: Tensor, high: Tensor, bits: int) -> Tensor:
    """Return the scale of rows with values from `low` to `high`, rounded to float16."""
    scale = ((high - low) / (2**bits - 1)).half().float()
    return torch.where((high == low) | (scale == 0) | torch.isinf(1 / scale), 1.0, scale)


def numbers_of(x: Tensor, low: Tensor, high: Tensor, bits: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the numbers, scales and biases of rows with values from `low` to `high`."""
    low = low.half().float()
    scale = scale_of(low, high, bits)
    numbers = ((x - low) * (1 / scale)).round().clamp(0, 2**bits - 1)
    return numbers, scale, low


def error_of(x: Tensor, low: Tensor, high: Tensor, bits: int) -> Tensor:
    """Return the norm of the quantization error of each row for these ranges."""
    numbers, scale, bias = numbers_of(x, low, high, bits)
    return torch.linalg.vector_norm(x - (numbers * scale + bias), dim=1, keepdim=True)


def greedy_range(x: Tensor, low: Tensor, high: Tensor, bits: int) -> tuple[Tensor, Tensor]:
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


def packed(numbers: Tensor, bits: int) -> Tensor:
    """Return rows of numbers as rows of bytes."""
    per_byte = 8 // bits
    apart = numbers.to(torch.uint8).view(numbers.shape[0], numbers.shape[1] // per_byte, per_byte)
    shifts = torch.arange(0, 8, bits, dtype=torch.uint8, device=numbers.device)
    return (apart << shifts).sum(2, dtype=torch.uint8)


def unpacked(rows: Tensor, bits: int) -> Tensor:
    """Return rows of bytes with scale and bias as rows of float32."""
    width = rows.shape[1] - 4
    ends = rows[:, width:].clone(memory_format=torch.contiguous_format)
    ends = ends.view(torch.float16).float()
    shifts = torch.arange(0, 8, bits, dtype=torch.uint8, device=rows.device)
    numbers = (rows[:, :width, None] >> shifts) & (2**bits - 1)
    flat = numbers.reshape(rows.shape[0], width * (8 // bits)).float()
    return flat * ends[:, :1] + ends[:, 1:]


def _rows(x: Tensor) -> Tensor:
    """Return the rows of a tensor, its last dimension, as a matrix."""
    require(x.dim() > 0, "X has at least one dimension", x)
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _quantized(x: Tensor, bits: int, *, greedy: bool = False) -> Tensor:
    """Return rows of float32 or float16 as rows of bytes."""
    rows = _rows(x).float()
    per_byte = 8 // bits
    require(rows.shape[1] > 0, "there are columns", x)
    require(rows.shape[1] % per_byte == 0, f"the columns are a multiple of {per_byte}", x)
    numbers, scale, bias = numbers_of(rows, *_range_of(rows, bits, greedy), bits)
    ends = torch.cat([scale, bias], 1).half().view(torch.uint8)
    done = torch.cat([packed(numbers, bits), ends], 1)
    return done.view(*x.shape[:-1], done.shape[1])


def _fake_quantized(x: Tensor, bits: int, *, greedy: bool = False) -> Tensor:
    """Return rows with one byte per number."""
    require(x.dim() == 2, "X has two dimensions", x)
    require(x.shape[1] > 0, "there are columns", x)
    rows = x.float()
    numbers, scale, bias = numbers_of(rows, *_range_of(rows, bits, greedy), bits)
    ends = torch.cat([scale, bias], 1).view(torch.uint8)
    return torch.cat([numbers.to(torch.uint8), ends], 1)


def _range_of(rows: Tensor, bits: int, greedy: bool) -> tuple[Tensor, Tensor]:
    low, high = rows.amin(1, keepdim=True), rows.amax(1, keepdim=True)
    return greedy_range(rows, low, high, bits) if greedy else (low, high)


def _dequantized(x: Tensor, bits: int) -> Tensor:
    rows = _rows(x)
    require(rows.shape[1] >= 4, "rows have four bytes of scale and bias", x)
    done = unpacked(rows, bits)
    return done.view(*x.shape[:-1], done.shape[1])


def _declare_quantized(
    name: str, types: Any, engine: str, quantized: Callable[..., Tensor], bits: int
) -> None:
    effects = ("values",) if engine else ()

    @operator(name, types=types, gradient="none", engine=engine, effects=effects)
    def quantize(x: Tensor) -> Tensor:
        """Quantize rows, the last dimension, from the least element to the greatest.

        A fake one has one byte per number. The engine GREEDY takes the range with the least error.
        """
        return quantized(x, bits, greedy=bool(engine))


def _declare(bits: int) -> None:
    """Declare the operators on rows of numbers of `bits` bits."""
    for kind, types in (("Float", FLOAT), ("Half", (c10.float16,))):
        for fake, quantized in (("", _quantized), ("Fake", _fake_quantized)):
            for engine in ("", "GREEDY"):
                name = f"{kind}ToFused{bits}Bit{fake}RowwiseQuantized"
                _declare_quantized(name, types, engine, quantized, bits)

    @operator(f"Fused{bits}BitRowwiseQuantizedToFloat", types=c10.uint8, gradient="none")
    def to_float(x: Tensor) -> Tensor:
        """Convert quantized rows to float32."""
        return _dequantized(x, bits)

    @operator(f"Fused{bits}BitRowwiseQuantizedToHalf", types=c10.uint8, gradient="none")
    def to_half(x: Tensor) -> Tensor:
        """Convert quantized rows to float16."""
        return _dequantized(x, bits).half()


_declare(2)
_declare(4)
