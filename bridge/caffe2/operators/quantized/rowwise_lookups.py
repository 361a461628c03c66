# SPDX-License-Identifier: Apache-2.0
"""Sums of rows of bytes whose scales and biases are a separate input."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.rows_and_segments import along_rows, segment_ids, select_rows
from bridge.caffe2.operators.base.torch_operator import FLOAT, INT32, INTS, TorchOperator, enforce

__all__: list[str] = []


@register_operator("SparseLengthsSum8BitsRowwise")
class SparseLengthsSum8BitsRowwise(TorchOperator):
    """Rows at indices, byte * scale + bias, summed by segments; float32.

    Inputs: bytes, weights if `weighted`, indices, lengths (int32), and scale and bias of each row
    (rows, 2), float32.
    Follows SparseLengths8BitsRowwiseOp, caffe2/operators/lengths_reducer_rowwise_8bit_ops.h,
    PyTorch 1.8.1.
    """

    weighted = False
    mean = False

    def RunOnDevice(self) -> None:
        first = 1 + self.weighted
        data, indices = self.x(0, (c10.uint8,)), self.x(first, INTS)
        lengths, ends = self.x(first + 1, INT32), self.x(first + 2, FLOAT)
        enforce(
            indices.dim() == 1 and lengths.dim() == 1,
            "Indices and lengths must have one dimension.",
        )
        enforce(data.dim() > 0 and data.size(0) > 0, "The data must have at least one dimension.")
        enforce(ends.shape == (data.size(0), 2), "There must be one scale and one bias per row.")
        ids = segment_ids(lengths, len(indices))
        scale, bias = (along_rows(one, data) for one in select_rows(ends, indices).unbind(1))
        rows = select_rows(data, indices).float() * scale + bias
        if self.weighted:
            weights = self.x(1, FLOAT).reshape(-1)
            enforce(len(weights) >= len(indices), "There must be one weight per index.")
            rows *= along_rows(weights[: len(indices)], data)
        total = rows.new_zeros(len(lengths), *data.shape[1:]).index_add_(0, ids, rows)
        self.put(0, total / along_rows(lengths.clamp(min=1), data) if self.mean else total)


@register_operator("SparseLengthsMean8BitsRowwise")
class SparseLengthsMean8BitsRowwise(SparseLengthsSum8BitsRowwise):
    """The mean instead of the sum; see SparseLengthsSum8BitsRowwise."""

    mean = True


@register_operator("SparseLengthsWeightedSum8BitsRowwise")
class SparseLengthsWeightedSum8BitsRowwise(SparseLengthsSum8BitsRowwise):
    """The weighted sum; see SparseLengthsSum8BitsRowwise."""

    weighted = True


@register_operator("SparseLengthsWeightedMean8BitsRowwise")
class SparseLengthsWeightedMean8BitsRowwise(SparseLengthsSum8BitsRowwise):
    """The weighted sum over the number of rows."""

    mean = True
    weighted = True
