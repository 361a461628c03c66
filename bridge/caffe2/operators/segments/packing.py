# SPDX-License-Identifier: Apache-2.0
"""Segments of different lengths packed into one tensor, and unpacked."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.any_type_operator import AnyTypeOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import (
    check_lengths,
    positions_in_segments,
    segment_ids,
)
from bridge.caffe2.operators.base.torch_operator import INTS, TorchOperator, enforce

__all__: list[str] = []

_PACKED = (c10.float32, *INTS, c10.string)


class _Pack(AnyTypeOperator):
    """An operator on segments with lengths in input 0."""

    def place(self, lengths: torch.Tensor, width: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the flat indices of rows in segments of `width`, and which rows have one."""
        ids = segment_ids(lengths)
        within = positions_in_segments(lengths, ids)
        kept = within < width
        return (ids * width + within)[kept], kept

    def data(self) -> tuple[torch.Tensor, c10.TypeMeta]:
        """Return input 1 and its type."""
        dtype = self.Input(1).dtype()
        enforce(dtype in _PACKED, f"Segments of {dtype.name} are not supported.")
        return self.load(1), dtype


@register_operator("PackSegments")
class PackSegments(_Pack):
    """(rows, ...) -> (segments, longest or `max_length`, ...), padded with 0.

    With `pad_minf` padded with -inf. Output 1, with `return_presence_mask`: where there are rows.
    """

    def move(self) -> None:
        lengths = self.x(0, INTS)
        x, dtype = self.data()
        enforce(
            lengths.dim() == 1 and x.dim() >= 1,
            "Lengths must have one dimension, data at least one.",
        )
        check_lengths(lengths, x.size(0))
        width = self.GetSingleArgument("max_length", -1)
        if width == -1:
            width = int(lengths.max()) if len(lengths) else 0
        enforce(width >= 0, f"max_length must not be negative: {width}.")
        places, kept = self.place(lengths, width)
        n = len(lengths)
        if dtype is c10.string:
            self._items.append(b"")
            result = (
                torch.full((n * width,), len(self._items) - 1)
                .view(n * width, *[1] * (x.dim() - 1))
                .repeat(1, *x.shape[1:])
            )
        else:
            padding = 0.0
            if self.GetSingleArgument("pad_minf", False) and dtype is c10.float32:
                padding = float("-inf")
            result = x.new_full((n * width, *x.shape[1:]), padding)
        result[places] = x[kept]
        self.store(0, result.view(n, width, *x.shape[1:]), dtype)
        if self.GetSingleArgument("return_presence_mask", False):
            mask = torch.zeros(n * width, dtype=torch.bool)
            mask[places] = True
            self.put(1, mask.view(n, width))


@register_operator("UnpackSegments")
class UnpackSegments(_Pack):
    """(segments, longest, ...) -> (rows, ...): as many of each as the lengths in input 0."""

    def move(self) -> None:
        lengths = self.x(0, INTS)
        x, dtype = self.data()
        enforce(lengths.dim() == 1, "Lengths must have one dimension.")
        enforce(x.dim() >= 2, "Data must have two dimensions or more.")
        enforce(
            len(lengths) == x.size(0),
            f"There are {len(lengths)} lengths, but {x.size(0)} segments.",
        )
        width = self.GetSingleArgument("max_length", -1)
        enforce(
            width in (-1, x.size(1)), f"max_length is {width}, but segments have {x.size(1)} rows."
        )
        enforce(
            bool((lengths <= x.size(1)).all()) or width != -1,
            "A length is greater than the size of a segment.",
        )
        places, _ = self.place(lengths, x.size(1))
        self.store(0, x.flatten(0, 1)[places], dtype)


@register_operator("ReversePackedSegs")
class ReversePackedSegs(TorchOperator):
    """(longest, segments, n) with the rows of each segment reversed; input 1: the lengths."""

    def RunOnDevice(self) -> None:
        x, lengths = self.x(0, (c10.float32, c10.float64, *INTS, c10.bool)), self.x(1, INTS)
        enforce(
            x.dim() == 3 and lengths.dim() == 1, "Data must have three dimensions, lengths one."
        )
        enforce(
            len(lengths) == x.size(1),
            f"There are {len(lengths)} lengths, but {x.size(1)} segments.",
        )
        enforce(bool((lengths <= x.size(0)).all()), f"A length is greater than {x.size(0)}.")
        rows = torch.arange(x.size(0))[:, None]
        places = torch.where(rows < lengths, lengths - 1 - rows, rows)
        self.put(0, x.gather(0, places[:, :, None].expand(-1, -1, x.size(2)).long()))
