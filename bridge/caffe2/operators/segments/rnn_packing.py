# SPDX-License-Identifier: Apache-2.0
"""PackRNNSequence and UnpackRNNSequence."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import INT32, NUMBERS

__all__: list[str] = []


class Packing(FloatOperator):
    """The base class of PackRNNSequence and UnpackRNNSequence."""

    def lengths(self) -> list[int]:
        """Return the lengths of the sequences, input 1."""
        found = self.x(1, INT32)
        self.enforce(found.dim() == 1, "the lengths have one dimension", found)
        values: list[int] = found.tolist()
        self.enforce(min(values, default=0) >= 0, "lengths are not negative", values)
        return values


@register_operator("PackRNNSequence")
class PackRNNSequence(Packing):
    """(values: (sum of lengths, D...), lengths: (N)) -> (longest, N, D...), padded with 0.

    Follows PackRNNSequenceOpBase, caffe2/operators/pack_rnn_sequence_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, lengths = self.x(0, NUMBERS), self.lengths()
        self.enforce(x.dim() > 1, "values have a dimension of features", x)
        self.enforce(
            sum(lengths) == x.shape[0], "the lengths add up to the number of rows", lengths, x
        )
        made = x.new_zeros(max(lengths, default=0), len(lengths), *x.shape[1:])
        start = 0
        for i, length in enumerate(lengths):
            made[:length, i] = x[start : start + length]
            start += length
        self.put(0, made)


@register_operator("UnpackRNNSequence")
class UnpackRNNSequence(Packing):
    """(values: (longest, N, D...), lengths: (N)) -> (sum of lengths, D...)."""

    def RunOnDevice(self) -> None:
        x, lengths = self.x(0, NUMBERS), self.lengths()
        self.enforce(x.dim() > 2, "values have a dimension of features", x)
        fits = x.shape[1] == len(lengths) and x.shape[0] >= max(lengths, default=0)
        self.enforce(fits, "there is one length per sequence, at most the longest", lengths, x)
        parts = [x[:length, i] for i, length in enumerate(lengths)]
        self.put(0, torch.cat(parts) if parts else x.new_zeros(0, *x.shape[2:]))
