# SPDX-License-Identifier: Apache-2.0
"""Int8Operator: the base class of operators on Int8 tensors, and their arithmetic.

A blob holds an `Int8TensorCPU`: bytes, a scale and a zero point, where real = scale * (byte -
zero_point). Results are those of QNNPACK, which Caffe2 calls on mobile devices and on CPUs: sums of
products are exact, and then scaled in fixed point.
"""

from __future__ import annotations

import struct
from functools import cached_property, lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.blobs.int8 import Int8TensorCPU
from bridge.caffe2.blobs.torch_io import adopt, operand
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.operators.base.checks import require, single
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.quantized import byte_kernels
from bridge.caffe2.tensor.tensor import Tensor as BlobTensor


class Quantized(NamedTuple):
    """Bytes, or int32 of biases, with scale and zero point."""

    bytes: Tensor
    scale: float
    zero_point: int


class Int8Operator(TorchOperator):
    """An operator whose output 0 is an Int8 tensor of arguments `Y_scale` and `Y_zero_point`."""

    is_stateless = True

    def RunOnDevice(self) -> None:
        result = self.computed()
        if result is not None:
            self.put_quantized(0, Quantized(result, self.scale, self.zero_point))

    def computed(self) -> Tensor | None:
        """Return the bytes of output 0; None if it is set."""
        raise NotImplementedError

    @cached_property
    def scale(self) -> float:
        """The argument `Y_scale` (1)."""
        return single(self.GetSingleArgument("Y_scale", 1.0))

    @cached_property
    def zero_point(self) -> int:
        """The argument `Y_zero_point` (0)."""
        return int(self.GetSingleArgument("Y_zero_point", 0))

    @cached_property
    def lowest(self) -> int:
        """The least byte of the output: the zero point for types with Relu."""
        return self.zero_point if self._definition.type.endswith("Relu") else 0

    @cached_property
    def arguments(self) -> Arguments:
        """The arguments, for classes that several of them describe."""
        return Arguments(self._definition)

    def quantized(self, i: int, dtype: c10.TypeMeta = c10.uint8) -> Quantized:
        """Return input `i`. Raises EnforceNotMet: it is not an Int8 tensor of that type."""
        held = self.Input(i, Int8TensorCPU)
        if held.t.dtype() is not dtype:
            require(
                False, f"input {i} holds elements of the type {dtype.name}", held.t.dtype().name
            )
        return Quantized(operand(held.t), held.scale, held.zero_point)

    def put_quantized(self, o: int, value: Quantized) -> None:
        """Set output `o`; the bytes are a tensor that nothing else refers to."""
        tensor = BlobTensor("cpu")
        adopt(tensor, value.bytes.contiguous())
        self.OutputBlob(o).Reset(Int8TensorCPU(tensor, value.scale, value.zero_point))

    @cached_property
    def wrapped_zero_point(self) -> int:
        """The zero point of the output as a byte, as QNNPACK takes it."""
        return self.zero_point & 0xFF

    def require_same(self, x: Quantized) -> None:
        """Raise EnforceNotMet unless the output has the scale and the zero point of `x`."""
        require(
            self.zero_point == x.zero_point and abs(self.scale - x.scale) < 1e-5,
            "Y_scale and Y_zero_point are those of the input",
            *(self.scale, self.zero_point, x.scale, x.zero_point),
        )

    def require_probabilities(self) -> None:
        """Raise EnforceNotMet unless the output is from 0 to 1 in steps of 1/256."""
        fits = self.zero_point == 0 and abs(self.scale - 1 / 256) < 1e-5
        require(fits, "Y_scale is 1 / 256, and Y_zero_point 0", self.scale, self.zero_point)


def wrapped(x: Quantized) -> Quantized:
    """Return a tensor with its zero point as a byte, as QNNPACK takes it."""
    return x if 0 <= x.zero_point <= 255 else x._replace(zero_point=x.zero_point & 0xFF)


def require_byte(x: Quantized) -> None:
    """Raise EnforceNotMet unless the zero point is a byte."""
    require(0 <= x.zero_point <= 255, "the zero point is from 0 to 255", x.zero_point)


def float32_bits(value: float) -> int:
    """Return the bits of a float32."""
    return struct.unpack("<I", struct.pack("<f", value))[0]


def shifted(sums: Tensor, shift: int) -> Tensor:
    """Return int64 divided by 2**shift, rounded to the nearest, halves away from zero."""
    if not shift:
        return sums
    mask = (1 << shift) - 1
    rest = (sums & mask) - (sums < 0).long()
    return (sums >> shift) + (rest > mask >> 1).long()


def clamped(values: Tensor, zero_point: int, lowest: int) -> Tensor:
    """Return int64 from the zero point on as bytes from `lowest` to 255."""
    return (values + zero_point).clamp_(lowest, 255).to(torch.uint8)


def floats_of(x: Tensor, zero_point: int) -> Tensor:
    """Return bytes less the zero point, as float32."""
    x = x.contiguous()
    made = torch.empty_like(x, dtype=torch.float32)
    byte_kernels.floats_of_bytes(made, x, x.numel(), zero_point)
    return made


@lru_cache
def multiplier_of(x_scale: float, w_scale: float, scale: float) -> tuple[int, int]:
    """Return a number of 31 bits and a shift, which bring sums of products to an output's scale.

    Raises EnforceNotMet: the scale of the sums is not below that of the output, or far too small.
    """
    ratio = single(single(x_scale * w_scale) / scale)
    fits = 2.0**-32 <= ratio < 1
    require(fits, "the scale of the sums over that of the output is from 2**-32 to below 1", ratio)
    bits = float32_bits(ratio)
    return ((bits & 0x007FFFFF) | 0x00800000) << 7, 127 + 31 - 32 - (bits >> 23)


def rescaled(
    sums: Tensor, bias: Tensor, by: tuple[int, int], zero_point: int, lowest: int
) -> Tensor:
    """Return sums of products, with the biases of their last dimension, times `by` as bytes.

    by: of `multiplier_of`. The product has 31 bits, and is then shifted. The sums are whole.
    """
    sums, bias = sums.contiguous(), bias.contiguous()
    made = torch.empty_like(sums, dtype=torch.uint8)
    n = bias.numel()
    given = (made, sums, bias, sums.numel() // max(n, 1), n, *by, zero_point, lowest)
    if sums.dtype == torch.float32 and byte_kernels.rescale_with_bias(*given):
        return made
    products = ((sums.long() + bias) * by[0] + (1 << 30)) >> 31
    return clamped(shifted(products, by[1]), zero_point, lowest)
