# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the engine DNNLOWP: bytes with a scale and a zero point, chosen by values.

Follows caffe2/quantization/server and QuantUtils.cc of FBGEMM, as of PyTorch 1.8.1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.c10 import TypeMeta
from bridge.caffe2.operators.base.checks import single

LARGEST = 255
# Where tanh is 1 to the precision of its table.
SATURATED = 3.0


def chosen(low: float, high: float, symmetric: bool = False) -> tuple[float, int]:
    """Return the scale and the zero point for values from `low` to `high`, and 0 among them.

    symmetric: values of both signs get a zero point in the middle.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    if symmetric and low < 0 < high:
        largest = max(-low / 128, high / 127)
        low, high = single(largest * -128), single(largest * 127)
    scale = (high - low) / LARGEST
    if not single(scale) or math.isinf(1 / single(scale)):
        scale = 0.1
    if symmetric and low < 0 < high:
        return single(scale), 128
    # Of the two places of 0, that with the smaller error of rounding.
    by_low, by_high = -low / scale, LARGEST - high / scale
    zero = by_low if -low / scale < LARGEST + high / scale else by_high
    return single(scale), round(min(max(zero, 0), LARGEST))


def range_of(x: Tensor) -> tuple[float, float]:
    """Return the least and the greatest element; 0 and 0 of no elements."""
    return (float(x.min()), float(x.max())) if x.numel() else (0.0, 0.0)


def quantized(x: Tensor, scale: float, zero_point: int) -> Tensor:
    """Return float32 as bytes, rounded to the nearest, halves to the even one."""
    inverse = single(1 / single(scale))
    return (x * inverse + zero_point).round_().clamp_(0, LARGEST).to(torch.uint8)


def reals(x: Tensor, scale: float, zero_point: int) -> Tensor:
    """Return bytes, or int32, as float32."""
    return (x.to(torch.int32) - zero_point).to(torch.float32) * single(scale)


class PackedWeights:
    """Weights in bytes, with a scale and a zero point for each part of their rows.

    `bias`: float32, or None.
    """

    __slots__ = ("bias", "parameters", "parts")

    def __init__(
        self, parts: list[Tensor], parameters: list[tuple[float, int]], bias: Tensor | None = None
    ) -> None:
        self.parts = parts
        self.parameters = parameters
        self.bias = bias

    def reals(self) -> Tensor:
        """Return the weights as float32."""
        found = [reals(part, *own) for part, own in zip(self.parts, self.parameters, strict=True)]
        return torch.cat(found) if found else torch.zeros(0, dtype=torch.float32, device="cpu")


TypeMeta.Register(PackedWeights)


def packed(
    w: Tensor, parts: int = 1, symmetric: bool = False, bias: Tensor | None = None
) -> PackedWeights:
    """Return weights quantized in so many parts of their rows."""
    pieces = list(w.chunk(parts)) if parts else []
    parameters = [chosen(*range_of(piece), symmetric) for piece in pieces]
    made = [quantized(piece, *own) for piece, own in zip(pieces, parameters, strict=True)]
    return PackedWeights(made, parameters, bias)


def tangent_scale() -> float:
    """Return the scale of bytes, 128 being 0, that tanh is taken of; sigmoid has twice it."""
    return single(SATURATED / 127)


def hyperbolic_tangents() -> Tensor:
    """Return tanh of such bytes in steps of 1 / 127, from -127 to 127: a table of 256, int32."""
    x = torch.arange(256, dtype=torch.float64, device="cpu") - 128
    y = (x * (SATURATED / 127)).tanh_().mul_(127).round_()
    y[x.abs() >= 127] = 127
    return torch.where(x < 0, -y.abs(), y).to(torch.int32)
