# SPDX-License-Identifier: Apache-2.0
"""Operators that scale, permute, normalize or pad rows."""

from __future__ import annotations

import math

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import along_rows, row_indices
from bridge.caffe2.operators.base.torch_operator import FLOAT, INT32, INTS, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


@register_operator("ScaleBlobs")
class ScaleBlobs(TorchOperator):
    """Each input times `scale` (1), in the output of the same number."""

    def RunOnDevice(self) -> None:
        enforce(self.OutputSize() == self.InputSize(), "There must be one output per input.")
        tensors = [self.x(i, FLOAT) for i in range(self.InputSize())]
        scale = self.GetSingleArgument("scale", 1.0)
        for i, x in enumerate(tensors):
            torch.mul(x, scale, out=self.out(i, x.shape, c10.float32))


@register_operator("SquareRootDivide")
class SquareRootDivide(TorchOperator):
    """Each row of input 0 divided by the square root of its number in input 1, unless that is 0."""

    def RunOnDevice(self) -> None:
        x, scale = self.x(0, FLOAT), self.x(1, (c10.float32, *INTS))
        enforce(
            x.dim() > 0 and scale.dim() > 0 and scale.numel() == x.size(0),
            f"Input 1 must have one number per row of sizes {list(x.shape)}, not {scale.numel()}.",
        )
        enforce(bool((scale >= 0).all()), "Input 1 must not be negative.")
        factor = torch.where(scale == 0, 1.0, scale.float().rsqrt())
        torch.mul(x, along_rows(factor, x), out=self.out(0, x.shape, c10.float32))


@register_operator("BatchPermutation")
class BatchPermutation(TorchOperator):
    """The rows of input 0 at the indices in input 1, an int32 permutation."""

    def RunOnDevice(self) -> None:
        x, order = self.x(0, FLOAT), self.x(1, INT32)
        enforce(
            order.dim() == 1 and x.dim() > 0,
            "Input 1 must have one dimension, input 0 at least one.",
        )
        enforce(
            len(order) == x.size(0),
            f"There must be {x.size(0)} indices, one per row, not {len(order)}.",
        )
        enforce(sorted(order.tolist()) == list(range(len(order))), "Input 1 must be a permutation.")
        self.put(0, x.index_select(0, order))


@register_operator("BatchPermutationGradient")
class BatchPermutationGradient(TorchOperator):
    """(indices, dY) -> dX: the rows moved back to their original indices."""

    def RunOnDevice(self) -> None:
        order, dy = self.x(0, INT32), self.x(1, FLOAT)
        enforce(order.dim() == 1 and len(order) == len(dy), "There must be one index per row.")
        self.put(0, torch.zeros_like(dy).index_copy_(0, row_indices(order, len(dy)), dy))


@register_operator("SparseNormalize")
class SparseNormalize(TorchOperator):
    """Scale the rows at the indices in input 1 to the norm `norm`, in place.

    Only longer rows, unless `use_max_norm` (True) is not set.
    """

    types: tuple[c10.TypeMeta, ...] = FLOAT

    def RunOnDevice(self) -> None:
        x, indices = self.x(0, self.types), self.x(1, INTS)
        norm = self.GetSingleArgument("norm", 1.0)
        enforce(norm >= 0, "The argument norm must not be negative.")
        enforce(x.dim() > 0, "Input 0 must have at least one dimension.")
        most = self.GetSingleArgument("use_max_norm", True)
        for place in row_indices(indices, x.size(0)).tolist():
            row = x[place].float()
            length = float(torch.linalg.vector_norm(row))
            if not most or length > norm:
                x[place] = row * (norm / (1e-12 + length))


@register_operator("Float16SparseNormalize")
class Float16SparseNormalize(SparseNormalize):
    """SparseNormalize of float16."""

    types = (c10.float16,)


@register_operator("SparseLpRegularizer")
class SparseLpRegularizer(TorchOperator):
    """Shrink the rows at the indices in input 1 by the L1 or L2 regularizer, `p` (2), in place."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._p = self.GetSingleArgument("p", 2.0)
        self._weight = self.GetSingleArgument("reg_lambda", 1e-5)
        enforce(self._p in (1, 2), f"p must be 1 or 2, not {self._p}.")
        enforce(0 < self._weight < 1, f"reg_lambda must be between 0 and 1, not {self._weight}.")

    def RunOnDevice(self) -> None:
        x, indices = self.x(0, FLOAT), self.x(1, INTS)
        enforce(x.dim() > 0, "Input 0 must have at least one dimension.")
        for place in row_indices(indices, x.size(0)).tolist():
            if self._p == 2:
                x[place] *= 1 - self._weight
            else:
                row = x[place]
                x[place] = torch.sign(row) * (row.abs() - self._weight).clamp(min=0)


@register_operator("VariableLengthSequencePadding")
class VariableLengthSequencePadding(TorchOperator):
    """Set elements after the end of each sequence to 0, in place: (time, batch, n).

    Input 1: the lengths of the sequences, int32.
    """

    def RunOnDevice(self) -> None:
        x, lengths = self.x(0, FLOAT), self.x(1, INT32)
        enforce(x.dim() == 3, f"Input 0 must have three dimensions, not {x.dim()}.")
        enforce(
            lengths.numel() == x.size(1),
            f"There must be {x.size(1)} lengths, one per sequence, not {lengths.numel()}.",
        )
        beyond = torch.arange(x.size(0))[:, None] >= lengths.reshape(1, -1)
        x.masked_fill_(beyond[:, :, None], 0.0)


@register_operator("SinusoidPositionEncoding")
class SinusoidPositionEncoding(TorchOperator):
    """`amplitude` times sines and cosines of the positions of rows: (m, k) -> (m, k, size).

    The wave lengths go up to `alpha`; all k elements of a row have the position of the first one.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0, INTS)
        enforce(x.dim() == 2 and x.size(1) > 0, "Input 0 must be a matrix that is not empty.")
        size = self.GetSingleArgument("embedding_size", 100)
        enforce(size > 0, "The argument embedding_size must be positive.")
        alpha = self.GetSingleArgument("alpha", 10000.0)
        # In float32 and from the smaller end on, as in Caffe2: sines of large numbers amplify
        # rounding errors.
        low = x[:, :1].float().log()
        high = low - torch.tensor(alpha).log() * torch.tensor((size - 1) / size)
        i = torch.arange(size)
        step = (high - low) / max(size - 1, 1)
        upward = torch.where(i == size - 1, high, low + i * step)
        downward = torch.where(i == 0, low, high - (size - 1 - i) * step)
        waves = torch.where(high.abs() < low.abs(), downward, upward).exp()
        waves[:, 1::2] += math.pi / 2
        rows = self.GetSingleArgument("amplitude", 1.0) * waves.sin()
        self.put(0, rows[:, None].repeat(1, x.size(1), 1))
