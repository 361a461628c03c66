# SPDX-License-Identifier: Apache-2.0
"""Operators of neural networks that are alone of their kind."""

from __future__ import annotations

import math

from bridge import c10
from bridge.caffe2.operators.float_operator import FloatOperator
from bridge.caffe2.operators.lazy_torch import torch
from bridge.caffe2.operators.torch_operator import FLOATS, INT32, INTS, NUMBERS
from bridge.caffe2.registry import register_operator

__all__ = ["BatchBoxCox", "BatchPermutation", "PackRNNSequence", "SinusoidPositionEncoding"]


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


@register_operator("BatchPermutation")
class BatchPermutation(FloatOperator):
    """(X: (N, ...), indices: (N) of int32) -> X's rows in that order.

    Follows BatchPermutationOp, caffe2/operators/batch_permutation_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, index = self.x(0), self.x(1, INT32)
        self.enforce(index.dim() == 1 and x.dim() > 0, "indices are of one dimension", index)
        self.enforce(len(index) == len(x), "there is an index for each row", index, x)
        if len(x):
            inside = int(index.min()) >= 0 and int(index.max()) < len(x)
            self.enforce(inside, f"indices are from 0 to below {len(x)}", index.tolist())
        self.put(0, x.index_select(0, index))


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


@register_operator("SinusoidPositionEncoding")
class SinusoidPositionEncoding(FloatOperator):
    """Positions (M, K), the same in a row -> (M, K, embedding_size), sines and cosines in turn.

    Arguments: `embedding_size` (100), `alpha` (10000), `amplitude` (1).
    Follows caffe2/operators/sinusoid_position_encoding_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        where = self.x(0, INTS)
        self.enforce(where.dim() == 2, "positions are a matrix", where)
        size = self.GetSingleArgument("embedding_size", 100)
        alpha = self.GetSingleArgument("alpha", 10000.0)
        first = where[:, :1].float().log()
        step = torch.arange(size, dtype=torch.float32) * (-math.log(alpha) / size)
        rows = (first + step).exp()
        rows[:, 1::2] += math.pi / 2
        rows = rows.sin().mul_(self.GetSingleArgument("amplitude", 1.0))
        self.put(0, rows.unsqueeze(1).expand(*where.shape, size).clone())


@register_operator("SquareRootDivide")
class SquareRootDivide(FloatOperator):
    """(X: (N, ...), scale: (N)) -> X / sqrt(scale), by row; rows of scale 0 stay as they are.

    Follows SquareRootDivideOp, caffe2/operators/square_root_divide_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, scale = self.x(0), self.x(1, (c10.float32, c10.int32, c10.int64))
        self.enforce(x.dim() > 0 and scale.dim() > 0, "X and scale have rows", x, scale)
        self.enforce(scale.shape[0] == x.shape[0], "a scale for each row", scale, x)
        self.enforce(bool((scale >= 0).all()), "scales are not negative", scale.tolist())
        root = torch.where(scale == 0, torch.ones(()), scale.float().sqrt())
        torch.div(x, root.view(-1, *[1] * (x.dim() - 1)), out=self.out(0, x.shape))


@register_operator("SumRelu")
class SumRelu(FloatOperator):
    """max(the sum of the inputs, 0)."""

    def RunOnDevice(self) -> None:
        first = self.x(0)
        others = [self.x(i) for i in range(1, self.InputSize())]
        for other in others:
            self.enforce(other.shape == first.shape, "the inputs are of one shape", other, first)
        total = sum(others, first)
        torch.clamp_min(total, 0, out=self.out(0, first.shape))


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
        rows = x.reshape(x.shape[0], -1)
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
        x = self.x(0)
        self.enforce(x.dim() == 4, "X has 4 dimensions", x)
        images, _, height, width = x.shape
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
