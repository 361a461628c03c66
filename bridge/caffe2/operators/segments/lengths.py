# SPDX-License-Identifier: Apache-2.0
"""Conversions between lengths of segments, ranges, offsets, ids and weights."""

from __future__ import annotations

from bridge import c10
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import segment_ids
from bridge.caffe2.operators.base.torch_operator import INT32, INTS, TorchOperator, enforce

__all__: list[str] = []


class LengthsOperator(TorchOperator):
    """An operator on lengths, 1-d int32."""

    def lengths(self, i: int = 0, types: tuple[c10.TypeMeta, ...] = INT32) -> torch.Tensor:
        """Return the lengths in input `i`."""
        lengths = self.x(i, types)
        enforce(lengths.dim() == 1, f"Input {i}, the lengths, must have one dimension.")
        return lengths


@register_operator("LengthsToSegmentIds")
class LengthsToSegmentIds(LengthsOperator):
    """[2, 0, 1] -> [0, 0, 2]."""

    def RunOnDevice(self) -> None:
        self.put(0, segment_ids(self.lengths()).int())


@register_operator("LengthsToRanges")
class LengthsToRanges(LengthsOperator):
    """[2, 0, 1] -> [[0, 2], [2, 0], [2, 1]], offsets and lengths."""

    def RunOnDevice(self) -> None:
        lengths = self.lengths()
        offsets = lengths.cumsum(0, dtype=torch.int32) - lengths
        self.put(0, torch.stack([offsets, lengths], 1))


@register_operator("LengthsToOffsets")
class LengthsToOffsets(LengthsOperator):
    """[2, 0, 1] -> [0, 2, 2], followed by 3 with `include_last_offset`."""

    def RunOnDevice(self) -> None:
        lengths = self.lengths()
        ends = lengths.cumsum(0, dtype=torch.int32)
        if self.GetSingleArgument("include_last_offset", False):
            self.put(0, torch.cat([ends.new_zeros(1), ends]))
        else:
            self.put(0, ends - lengths)


@register_operator("LengthsToWeights")
class LengthsToWeights(LengthsOperator):
    """1 / length ** `power` (0.5) for each row of each segment."""

    def RunOnDevice(self) -> None:
        lengths = self.lengths(0, INTS)
        ids = segment_ids(lengths)
        power = self.GetSingleArgument("power", 0.5)
        self.put(0, (1 / lengths.double() ** power).float()[ids])


@register_operator("LengthsToShape")
class LengthsToShape(LengthsOperator):
    """[3, 3] -> [2, 3]: the sizes of a matrix whose rows have these lengths."""

    def RunOnDevice(self) -> None:
        lengths = self.lengths()
        enforce(lengths.numel() > 0, "There must be at least one length.")
        enforce(bool((lengths == lengths[0]).all()), "All lengths must be the same.")
        self.put(0, torch.tensor([len(lengths), int(lengths[0])], dtype=torch.int32))


class _OfIds(TorchOperator):
    """An operator on sorted segment ids; an optional input 1 has one row per segment."""

    def counts(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the number of rows of each segment."""
        n = int(ids[-1]) + 1 if ids.numel() else 0
        if self.InputSize() > 1:
            enforce(self.Input(1).dim() >= 1, "Input 1 must have at least one dimension.")
            rows = self.Input(1).size(0)
            enforce(n <= rows, f"There are {n} segments, but input 1 has {rows} rows.")
            n = rows
        enforce(n >= 0, "Segment ids must not be negative.")
        if ids.numel() and (bool((ids.diff() < 0).any()) or int(ids[0]) < 0):
            raise EnforceNotMet("Segment ids must be sorted, and not negative.")
        return torch.bincount(ids, minlength=n).int()


@register_operator("SegmentIdsToLengths")
class SegmentIdsToLengths(_OfIds):
    """[0, 0, 2] -> [2, 0, 1]."""

    def RunOnDevice(self) -> None:
        ids = self.x(0, INTS)
        enforce(
            ids.dim() == 1 or (ids.dim() == 2 and 1 in ids.shape),
            "Segment ids must have one dimension.",
        )
        self.put(0, self.counts(ids.reshape(-1)))


@register_operator("SegmentIdsToRanges")
class SegmentIdsToRanges(_OfIds):
    """[0, 0, 2] -> [[0, 2], [2, 0], [2, 1]], offsets and lengths.

    As in Caffe2, segments after the last id have the offset 0.
    """

    def RunOnDevice(self) -> None:
        ids = self.x(0, INTS)
        enforce(ids.dim() == 1, "Segment ids must have one dimension.")
        counts = self.counts(ids)
        offsets = counts.cumsum(0, dtype=torch.int32) - counts
        if ids.numel():
            offsets[int(ids[-1]) + 1 :] = 0
        self.put(0, torch.stack([offsets, counts], 1))


@register_operator("LengthsSplit")
class LengthsSplit(LengthsOperator):
    """Split each length into `n_split` parts, an argument or input 1, the greater ones first."""

    def RunOnDevice(self) -> None:
        lengths = self.lengths()
        n = self.GetSingleArgument("n_split", 0)
        if self.InputSize() > 1:
            enforce(
                self.Input(1).dim() == 1 and self.Input(1).numel() == 1,
                "Input 1 must have one element.",
            )
            n = self.integers(1, INT32)[0]
        enforce(n > 0, "n_split must be positive.")
        whole, rest = torch.div(lengths, n, rounding_mode="floor"), torch.remainder(lengths, n)
        self.put(0, (whole[:, None] + (torch.arange(n) < rest[:, None])).int().view(-1))
