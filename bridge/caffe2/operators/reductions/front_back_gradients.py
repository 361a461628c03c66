# SPDX-License-Identifier: Apache-2.0
"""Gradients of reductions over the first or the last dimensions."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOAT, INT32, NUMBERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from torch import Tensor

    from bridge.c10 import TypeMeta

__all__: list[str] = []


class EndGradient(FloatOperator):
    """(dY, X, optionally lengths) -> dX of a reduction over the first or last dimensions.

    For sums and means input 1 may also be the sizes of X, 1-d int64. With lengths (int32) only as
    many elements of each row or column have a gradient.
    Argument: `num_reduce_dim` (1).
    Follows caffe2/operators/reduce_front_back_sum_mean_ops.h, PyTorch 1.8.1.
    """

    front = True
    mean = False
    lengths = 2
    types: Collection[TypeMeta] = NUMBERS

    def RunOnDevice(self) -> None:
        dy = self.x(0, self.types)
        sizes = self.sizes()
        dims = self.GetSingleArgument("num_reduce_dim", 1)
        self.enforce(
            0 <= dims <= len(sizes),
            "num_reduce_dim is at most the number of dimensions",
            dims,
            sizes,
        )
        split = dims if self.front else len(sizes) - dims
        matrix = torch.Size([sizes[:split].numel(), sizes[split:].numel()])
        along = 0 if self.front else 1
        count = matrix[along]
        self.enforce(
            dy.numel() == matrix[1 - along], "there is one gradient per element of Y", dy, sizes
        )
        spread = dy.reshape(-1).unsqueeze(along).expand(matrix)
        if self.InputSize() > self.lengths:
            length = self.x(self.lengths, INT32).reshape(-1).unsqueeze(along)
            inside = torch.arange(count).unsqueeze(1 - along) < length
            spread = spread * inside
            # A row of length 0 stays 0.
            spread = self.share(spread, length.clamp(min=1)) if self.mean else spread
        elif self.mean and count:
            spread = self.share(spread, count)
        found = self.chosen(spread, matrix).reshape(sizes)
        self.put(0, found.clone(memory_format=torch.contiguous_format))

    def sizes(self) -> torch.Size:
        """Return the sizes of X: those of input 1, or its elements if it is 1-d int64."""
        given = self.Input(1)
        if given.dim() != 1 or given.dtype() is not c10.int64 or self.types is FLOAT:
            return torch.Size(given.sizes())
        sizes = self.integers(1)
        self.enforce(min(sizes, default=0) >= 0, "sizes are not negative", sizes)
        return torch.Size(sizes)

    def share(self, dy: Tensor, count: Tensor | int) -> Tensor:
        """Return dy / count; integers are rounded towards zero."""
        rounding = None if dy.is_floating_point() else "trunc"
        found: Tensor = dy.div(count, rounding_mode=rounding)
        return found

    def chosen(self, spread: Tensor, matrix: torch.Size) -> Tensor:
        """Return the gradients of X, given those of the results, broadcast."""
        return spread


@register_operator("ReduceFrontSumGradient")
class ReduceFrontSumGradient(EndGradient):
    """EndGradient of sums over the first dimensions."""


@register_operator("ReduceFrontMeanGradient")
class ReduceFrontMeanGradient(EndGradient):
    """EndGradient of means over the first dimensions."""

    mean = True


@register_operator("ReduceBackSumGradient")
class ReduceBackSumGradient(EndGradient):
    """EndGradient of sums over the last dimensions."""

    front = False


@register_operator("ReduceBackMeanGradient")
class ReduceBackMeanGradient(EndGradient):
    """EndGradient of means over the last dimensions."""

    front = False
    mean = True


@register_operator("ReduceFrontMaxGradient")
class ReduceFrontMaxGradient(EndGradient):
    """(dY, X, Y, optionally lengths) -> dX: dY where X equals Y, else 0.

    See EndGradient.
    """

    lengths = 3
    types = FLOAT

    def chosen(self, spread: Tensor, matrix: torch.Size) -> Tensor:
        x, y = self.x(1).reshape(matrix), self.x(2).reshape(-1)
        return spread * (x == y.unsqueeze(0 if self.front else 1))


@register_operator("ReduceBackMaxGradient")
class ReduceBackMaxGradient(ReduceFrontMaxGradient):
    """ReduceFrontMaxGradient over the last dimensions."""

    front = False
