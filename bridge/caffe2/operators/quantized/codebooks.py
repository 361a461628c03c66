# SPDX-License-Identifier: Apache-2.0
"""Codes of one or more bytes: indices into a list of values, and linear steps."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import Out, OutputCount, operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.rows_and_segments import row_indices

CODES = (c10.uint8, c10.uint16, c10.int32)


def _codes(codes: Tensor, book: Tensor) -> Tensor:
    """Return the codes as indices into the codebook, flat."""
    return row_indices(codes.to(torch.int64), book.shape[0])


@operator("QuantDecode", types={"codes": CODES}, inputs="2-*", gradient="$Gradient i* g* > 0")
def quant_decode(codebook: Tensor, *codes: Tensor, outputs: OutputCount) -> list[Tensor]:
    """The values of the codebook at the codes in each further input.

    Raises EnforceNotMet: a code is out of range.
    Follows QuantDecodeOp, caffe2/operators/quant_decode_op.h, PyTorch 1.8.1.
    """
    require(outputs == len(codes), "there is one output per input of codes", outputs, len(codes))
    book = codebook.reshape(-1)
    return [book.index_select(0, _codes(one, book)).reshape(one.shape) for one in codes]


@operator(
    "QuantDecodeGradient", types={"codes_and_gradients": (*CODES, c10.float32)}, inputs="2n+1"
)
def quant_decode_gradient(codebook: Tensor, *codes_and_gradients: Tensor) -> Tensor:
    """(codebook, all codes, gradients of all outputs) -> the gradient of the codebook."""
    book = codebook.reshape(-1)
    n = len(codes_and_gradients) // 2
    result = torch.zeros_like(book)
    for given, dy in zip(codes_and_gradients[:n], codes_and_gradients[n:], strict=True):
        require(not given.is_floating_point(), "codes are integers", given.dtype)
        require(dy.dtype == torch.float32, "gradients are float32", dy.dtype)
        require(dy.numel() == given.numel(), "there is one gradient per code", dy, given)
        result = result.index_add(0, _codes(given, book), dy.reshape(-1))
    return result.reshape(codebook.shape)


@operator("ByteWeightDequant", types=c10.uint8)
def byte_weight_dequant(
    x: Tensor,
    *,
    min: float = -3.0,
    max: float = 3.0,
    shape: list[int] | None = None,
    out: Out = None,
) -> Tensor:
    """Bytes as float32 from `min` to `max`, with the sizes `shape`.

    Raises EnforceNotMet: there are fewer bytes than elements.
    Follows ByteWeightDequantOp, caffe2/operators/byte_weight_dequant_op.h, PyTorch 1.8.1.
    """
    sizes = shape or []
    require(all(size >= 0 for size in sizes), "no size is negative", sizes)
    n = math.prod(sizes)
    require(n <= x.numel(), f"there are bytes for the sizes {sizes}", x)
    values = x.reshape(-1)[:n].float().reshape(sizes) / 255 * (max - min)
    return torch.add(values, min, out=out)
