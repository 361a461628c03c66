# SPDX-License-Identifier: Apache-2.0
"""Rows of bytes, each followed by its scale and bias.

A value is byte * scale + bias. They are float32, or float16 for types with HalfScaleBias. Follows
fused_rowwise_8bit_conversion_ops.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import INTS, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.rows_and_segments import along_rows, select_rows
from bridge.caffe2.operators.quantized import byte_kernels

HALF = (c10.float16,)
BYTES = (c10.uint8,)


def _quantized(x: Tensor, half: bool) -> Tensor:
    """Return rows, the last dimension, as rows of bytes; `half`: scale and bias are float16."""
    require(x.dim() > 0, "X has at least one dimension", x)
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1]).float()
    if rows.shape[1]:
        low, high = rows.amin(1, keepdim=True), rows.amax(1, keepdim=True)
    else:
        # The initial values of Caffe2's search for the extremes.
        low = rows.new_full((rows.shape[0], 1), torch.finfo(rows.dtype).max)
        high = -low
    scale, bias = (high - low) / 255, low
    inverse = 255 / (high - low + 1e-8)
    if half:
        # Quantized with the rounded scale and bias, which are stored.
        bias = low.half()
        scale = ((high - bias.float()) / 255).half()
        scale = torch.where(scale == 0, 1.0, scale)
        inverse = 1 / scale.float()
    numbers = ((rows - bias.float()) * inverse).round().clamp(0, 255).to(torch.uint8)
    done = torch.cat([numbers, torch.cat([scale, bias], 1).view(torch.uint8)], 1)
    return done.reshape(*x.shape[:-1], done.shape[1])


def dequantized(rows: Tensor, half: bool = False) -> Tensor:
    """Return rows of bytes, the last dimension, as float32; `half`: scale and bias are float16.

    Raises EnforceNotMet: the rows are too short.
    """
    tail = 4 if half else 8
    fits = rows.dim() > 0 and rows.shape[-1] > tail
    require(fits, f"rows are longer than their scale and bias, {tail} bytes", rows)
    width = rows.shape[-1] - tail
    ends = rows[..., width:].clone(memory_format=torch.contiguous_format)
    ends = ends.view(torch.float16 if half else torch.float32).float()
    return rows[..., :width].float() * ends[..., :1] + ends[..., 1:]


@operator("FloatToFused8BitRowwiseQuantized", gradient="none")
@operator("HalfFloatToFused8BitRowwiseQuantized", types=HALF, gradient="none")
def float_to_fused_8bit_rowwise_quantized(x: Tensor, *, out: Out = None) -> Tensor:
    """Quantize rows, the last dimension; scale and bias are float32."""
    if takes_kernels(x) and x.numel():
        *sizes, width = x.shape
        if out is None:
            out = x.new_empty((*sizes, width + 8), dtype=torch.uint8)
        return run_kernel(byte_kernels.to_bytes, x, out, math.prod(sizes), width)
    return _quantized(x, half=False)


@operator("FloatToFused8BitRowwiseQuantizedHalfScaleBias", gradient="none")
@operator("HalfFloatToFused8BitRowwiseQuantizedHalfScaleBias", types=HALF, gradient="none")
def float_to_fused_8bit_rowwise_quantized_half_scale_bias(x: Tensor) -> Tensor:
    """Quantize rows, the last dimension; scale and bias are float16."""
    return _quantized(x, half=True)


@operator("Fused8BitRowwiseQuantizedToFloat", types=BYTES, gradient="none")
def fused_8bit_rowwise_quantized_to_float(x: Tensor, *, out: Out = None) -> Tensor:
    """Convert rows of bytes, the last dimension, to float32."""
    if takes_kernels(x, dtype=torch.uint8) and x.dim() and x.shape[-1] > 8:
        *sizes, width = x.shape
        if out is None:
            out = x.new_empty((*sizes, width - 8), dtype=torch.float32)
        return run_kernel(byte_kernels.to_floats, x, out, math.prod(sizes), width - 8)
    return dequantized(x)


@operator("Fused8BitRowwiseQuantizedToHalfFloat", types=BYTES, gradient="none")
def fused_8bit_rowwise_quantized_to_half_float(x: Tensor) -> Tensor:
    """Convert rows of bytes, the last dimension, to float16."""
    return dequantized(x).half()


# float32 in spite of the second name, as in Caffe2
@operator("Fused8BitRowwiseQuantizedHalfScaleBiasToFloat", types=BYTES, gradient="none")
@operator("Fused8BitRowwiseQuantizedHalfScaleBiasToHalfFloat", types=BYTES, gradient="none")
def fused_8bit_rowwise_quantized_half_scale_bias_to_float(x: Tensor) -> Tensor:
    """Convert rows of bytes, the last dimension, whose scale and bias are float16, to float32."""
    return dequantized(x, half=True)


@operator("GatherFused8BitRowwise", types={"data": BYTES, "indices": INTS})
def gather_fused_8bit_rowwise(data: Tensor, indices: Tensor) -> Tensor:
    """The rows at the indices as float32."""
    require(data.dim() == 2, "the data have two dimensions", data)
    found = dequantized(select_rows(data, indices))
    return found.view(*indices.shape, found.shape[1])


@operator("FloatToRowwiseQuantized8Bits", gradient="none")
def float_to_rowwise_quantized_8bits(x: Tensor) -> tuple[Tensor, Tensor]:
    """The bytes of X, with its sizes; output 1: scale and bias of each row."""
    require(x.dim() > 0 and x.numel() > 0, "X has elements, and at least one dimension", x)
    rows = x.reshape(x.shape[0], -1)
    low, high = rows.amin(1, keepdim=True), rows.amax(1, keepdim=True)
    scale = torch.where(high - low > 1e-10, (high - low) / 255, 1.0)
    numbers = ((rows - low) / scale).round().clamp(0, 255).to(torch.uint8)
    return numbers.view(x.shape), torch.cat([scale, low], 1)


@operator("Rowwise8BitQuantizedToFloat", types={"x": BYTES}, gradient="none")
def rowwise_8bit_quantized_to_float(x: Tensor, scale_bias: Tensor) -> Tensor:
    """The bytes of X as float32, by scale and bias of each row."""
    fits = x.dim() > 0 and scale_bias.shape == (x.shape[0], 2)
    require(fits, "there is one scale and one bias per row", x, scale_bias)
    scale, bias = (along_rows(one, x) for one in scale_bias.unbind(1))
    return x.float() * scale + bias
