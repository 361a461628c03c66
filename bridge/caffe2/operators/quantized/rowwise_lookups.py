# SPDX-License-Identifier: Apache-2.0
"""Sums of rows of bytes whose scales and biases are a separate input.

Inputs: bytes, weights if weighted, indices, lengths (int32), and scale and bias of each row
(rows, 2). Follows SparseLengths8BitsRowwiseOp, caffe2/operators/lengths_reducer_rowwise_8bit_ops.h,
PyTorch 1.8.1.
"""

from __future__ import annotations

from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import OperatorType, Out, operator
from bridge.caffe2.operators.base.checks import INT32, INTS, require
from bridge.caffe2.operators.base.rows_and_segments import along_rows, select_rows, sum_segments
from bridge.caffe2.operators.quantized.fused_lookups import summed_by_kernel

LOOK_UP = {"data": (c10.uint8,), "indices": INTS, "lengths": INT32}


def _reduced(
    data: Tensor,
    indices: Tensor,
    lengths: Tensor,
    scale_bias: Tensor,
    weights: Tensor | None = None,
    mean: bool = False,
    out: Out = None,
) -> Tensor:
    fits = indices.dim() == 1 and lengths.dim() == 1
    require(fits, "indices and lengths have one dimension", indices, lengths)
    require(data.dim() > 0 and data.shape[0] > 0, "the data have rows", data)
    require(
        scale_bias.shape == (data.shape[0], 2), "there is one scale and bias per row", scale_bias
    )
    n = indices.shape[0]
    if weights is not None:
        require(weights.numel() >= n, "there is one weight per index", weights, indices)
        weights = weights.reshape(-1)[:n]
    given = data, scale_bias, None, indices, lengths, weights, mean, out
    made = summed_by_kernel(8, data.shape[1:], *given)
    if made is not None:
        return made
    scale, bias = (along_rows(one, data) for one in select_rows(scale_bias, indices).unbind(1))
    rows = select_rows(data, indices).float() * scale + bias
    total = sum_segments(rows, None, lengths, weights=weights)
    return total / along_rows(lengths.clamp(min=1), data) if mean else total


@operator("SparseLengthsSum8BitsRowwise", types=LOOK_UP, gradient="none")
@operator("SparseLengthsMean8BitsRowwise", types=LOOK_UP, gradient="none")
def sparse_lengths_8bits_rowwise(
    data: Tensor,
    indices: Tensor,
    lengths: Tensor,
    scale_bias: Tensor,
    *,
    kind: OperatorType,
    out: Out = None,
) -> Tensor:
    """The sum or mean of the rows at the indices of each segment, byte * scale + bias; float32."""
    return _reduced(data, indices, lengths, scale_bias, mean="Mean" in kind, out=out)


@operator("SparseLengthsWeightedSum8BitsRowwise", types=LOOK_UP, gradient="none")
@operator("SparseLengthsWeightedMean8BitsRowwise", types=LOOK_UP, gradient="none")
def sparse_lengths_weighted_8bits_rowwise(
    data: Tensor,
    weights: Tensor,
    indices: Tensor,
    lengths: Tensor,
    scale_bias: Tensor,
    *,
    kind: OperatorType,
    out: Out = None,
) -> Tensor:
    """The sum of the rows times their weights, for Mean over the number of rows; float32."""
    return _reduced(data, indices, lengths, scale_bias, weights, "Mean" in kind, out)
