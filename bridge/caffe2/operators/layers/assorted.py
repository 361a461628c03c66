# SPDX-License-Identifier: Apache-2.0
"""Operators of neural networks that are alone of their kind."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOATS, INT32, NUMBERS

__all__ = ["BatchBoxCox", "PackRNNSequence", "RMACRegions", "SumRelu", "UnpackRNNSequence"]


class Packing(FloatOperator):
    """What PackRNNSequence and UnpackRNNSequence have in common."""

    def lengths(self) -> list[int]:
        """Give the lengths of the sequences, input 1."""
        found = self.x(1, INT32)
        self.enforce(found.dim() == 1, "lengths are of one dimension", found)
        values: list[int] = found.tolist()
        self.enforce(min(values, default=0) >= 0, "lengths are not negative", values)
        return values


@register_operator("PackRNNSequence")
class PackRNNSequence(Packing):
    """(values: (sum of lengths, D...), lengths: (N)) -> (longest, N, D...), zeros after the ends.

    Follows PackRNNSequenceOpBase, caffe2/operators/pack_rnn_sequence_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, lengths = self.x(0, NUMBERS), self.lengths()
        self.enforce(x.dim() > 1, "values have features", x)
        self.enforce(sum(lengths) == x.shape[0], "the lengths add up", lengths, x)
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
        self.enforce(x.dim() > 2, "values have features", x)
        fits = x.shape[1] == len(lengths) and x.shape[0] >= max(lengths, default=0)
        self.enforce(fits, "there are the sequences that lengths say", lengths, x)
        parts = [x[:length, i] for i, length in enumerate(lengths)]
        self.put(0, torch.cat(parts) if parts else x.new_zeros(0, *x.shape[2:]))


@register_operator("BatchPermutationGradient")
class BatchPermutationGradient(FloatOperator):
    """(indices, dY) -> dX."""

    def RunOnDevice(self) -> None:
        index, dy = self.x(0, INT32), self.x(1)
        self.enforce(index.dim() == 1 and len(index) == len(dy), "an index for each row", index, dy)
        if len(dy):
            inside = int(index.min()) >= 0 and int(index.max()) < len(dy)
            self.enforce(inside, f"indices are from 0 to below {len(dy)}", index.tolist())
        self.put(0, torch.zeros_like(dy).index_copy_(0, index.long(), dy))


@register_operator("SumRelu")
class SumRelu(FloatOperator):
    """max(the sum of the inputs, 0)."""

    def RunOnDevice(self) -> None:
        first = self.x(0, (*FLOATS, *INT32))
        dtype = self.Input(0).dtype()
        others = [self.x(i, (dtype,)) for i in range(1, self.InputSize())]
        for other in others:
            self.enforce(other.shape == first.shape, "the inputs are of one shape", other, first)
        total = sum(others, first)
        torch.clamp_min(total, 0, out=self.out(0, first.shape, dtype))


@register_operator("BatchBoxCox")
class BatchBoxCox(FloatOperator):
    """(X: (N, D), a: (D), b: (D)) -> (max(X + b, 1e-6)^a - 1) / a, its logarithm where a is 0.

    Follows BatchBoxCoxOp, caffe2/operators/batch_box_cox_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOATS)
        same = (self.Input(0).dtype(),)
        a, b = self.x(1, same), self.x(2, same)
        self.enforce(x.dim() >= 1, "X has rows", x)
        rows = x.reshape(x.shape[0], x.shape[1:].numel())
        for values in (a, b):
            self.enforce(values.numel() == rows.shape[1], "a and b are as long as a row", values, x)
        base = (rows + b.view(-1)).clamp_(min=1e-6)
        a = a.view(-1)
        power = (base.pow(a) - 1) / torch.where(a == 0, torch.ones_like(a), a)
        self.put(0, torch.where(a == 0, base.log(), power).view(x.shape))


@register_operator("RMACRegions")
class RMACRegions(FloatOperator):
    """X: (N, C, H, W) -> squares of several sizes all over each image, (n, 5) as RoIs.

    Arguments: `scales` (3), how many sizes, and `overlap` (0.4), about how much they overlap.
    Follows RMACRegionsOp, caffe2/operators/rmac_regions_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.Input(0)  # of which only the sizes are asked
        self.enforce(x.dim() == 4, "X has 4 dimensions", list(x.sizes()))
        images, _, height, width = x.sizes()
        if not x.numel():
            self.out(0, (0, 5))
            return
        overlap, side = self.GetSingleArgument("overlap", 0.4), min(height, width)
        more = 0
        if height != width:
            away = [abs(1 - (max(height, width) - side) / k / side - overlap) for k in range(1, 7)]
            more = away.index(min(away)) + 1
        columns, rows = (more if width > height else 0), (more if height > width else 0)
        found = []
        for scale in range(1, self.GetSingleArgument("scales", 3) + 1):
            size = 2 * side // (scale + 1)
            if not size:
                break
            across = starts(width, size, scale + columns)
            down = starts(height, size, scale + rows)
            found += [[x1, y1, x1 + size - 1, y1 + size - 1] for x1 in across for y1 in down]
        every = [[image, *region] for image in range(images) for region in found]
        self.put(0, torch.tensor(every, dtype=torch.float32).view(-1, 5))


def starts(length: int, size: int, count: int) -> list[int]:
    """Give where `count` pieces of `size` begin that lie evenly over `length`."""
    step = (length - size) / (count - 1) if count > 1 else 0.0
    return [min(int(step * i), length - size) for i in range(count)]
