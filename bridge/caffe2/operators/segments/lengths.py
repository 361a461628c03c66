# SPDX-License-Identifier: Apache-2.0
"""Lengths of segments as ranges, offsets, ids and weights, and rows moved by them."""

from __future__ import annotations

from bridge import c10
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.mover import Mover
from bridge.caffe2.operators.base.rows import places_in_segments, rows_of, segments_of_lengths
from bridge.caffe2.operators.base.torch_operator import (
    FLOAT,
    INT32,
    INTS,
    NUMBERS,
    TorchOperator,
    enforce,
)

__all__: list[str] = []


class _OfLengths(TorchOperator):
    """An operator on lengths, a list of int32."""

    def lengths(self, i: int = 0, types: tuple[c10.TypeMeta, ...] = INT32) -> torch.Tensor:
        """Return the lengths, which input `i` has."""
        lengths = self.x(i, types)
        enforce(lengths.dim() == 1, f"Input {i}, the lengths, has to have one dimension.")
        return lengths


@register_operator("LengthsToSegmentIds")
class LengthsToSegmentIds(_OfLengths):
    """[2, 0, 1] -> [0, 0, 2]."""

    def RunOnDevice(self) -> None:
        self.put(0, segments_of_lengths(self.lengths()).int())


@register_operator("LengthsToRanges")
class LengthsToRanges(_OfLengths):
    """[2, 0, 1] -> [[0, 2], [2, 0], [2, 1]], offsets and lengths."""

    def RunOnDevice(self) -> None:
        lengths = self.lengths()
        offsets = lengths.cumsum(0, dtype=torch.int32) - lengths
        self.put(0, torch.stack([offsets, lengths], 1))


@register_operator("LengthsToOffsets")
class LengthsToOffsets(_OfLengths):
    """[2, 0, 1] -> [0, 2, 2], and with `include_last_offset` 3."""

    def RunOnDevice(self) -> None:
        lengths = self.lengths()
        ends = lengths.cumsum(0, dtype=torch.int32)
        if self.GetSingleArgument("include_last_offset", False):
            self.put(0, torch.cat([ends.new_zeros(1), ends]))
        else:
            self.put(0, ends - lengths)


@register_operator("LengthsToWeights")
class LengthsToWeights(_OfLengths):
    """1 / length ** `power` (0.5) for each row of each segment."""

    def RunOnDevice(self) -> None:
        lengths = self.lengths(0, INTS)
        ids = segments_of_lengths(lengths)
        power = self.GetSingleArgument("power", 0.5)
        self.put(0, (1 / lengths.double() ** power).float()[ids])


@register_operator("LengthsToShape")
class LengthsToShape(_OfLengths):
    """[3, 3] -> [2, 3]: the sizes of a matrix whose rows have these lengths."""

    def RunOnDevice(self) -> None:
        lengths = self.lengths()
        enforce(lengths.numel() > 0, "There are no lengths.")
        enforce(bool((lengths == lengths[0]).all()), "The lengths are not all the same.")
        self.put(0, torch.tensor([len(lengths), int(lengths[0])], dtype=torch.int32))


class _OfIds(TorchOperator):
    """An operator on sorted segment ids; input 1, if there is one, has a row for each segment."""

    def counts(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the number of rows of each segment."""
        n = int(ids[-1]) + 1 if ids.numel() else 0
        if self.InputSize() > 1:
            enforce(self.Input(1).dim() >= 1, "Input 1 has to have rows.")
            rows = self.Input(1).size(0)
            enforce(n <= rows, f"There are {n} segments, and input 1 has {rows} rows.")
            n = rows
        enforce(n >= 0, "Segment ids are not negative.")
        if ids.numel() and (bool((ids.diff() < 0).any()) or int(ids[0]) < 0):
            raise EnforceNotMet("Segment ids have to be sorted, and not negative.")
        return torch.bincount(ids, minlength=n).int()


@register_operator("SegmentIdsToLengths")
class SegmentIdsToLengths(_OfIds):
    """[0, 0, 2] -> [2, 0, 1]."""

    def RunOnDevice(self) -> None:
        ids = self.x(0, INTS)
        enforce(
            ids.dim() == 1 or (ids.dim() == 2 and 1 in ids.shape), "Segment ids have to be a list."
        )
        self.put(0, self.counts(ids.reshape(-1)))


@register_operator("SegmentIdsToRanges")
class SegmentIdsToRanges(_OfIds):
    """[0, 0, 2] -> [[0, 2], [2, 0], [2, 1]], offsets and lengths.

    As in Caffe2, segments before the first id and after the last one have the offset 0.
    """

    def RunOnDevice(self) -> None:
        ids = self.x(0, INTS)
        enforce(ids.dim() == 1, "Segment ids have to be a list.")
        counts = self.counts(ids)
        offsets = counts.cumsum(0, dtype=torch.int32) - counts
        if ids.numel():
            offsets[int(ids[-1]) + 1 :] = 0
        self.put(0, torch.stack([offsets, counts], 1))


@register_operator("LengthsTile")
class LengthsTile(Mover):
    """Each row of input 0 as often as input 1 says."""

    def move(self) -> None:
        lengths = self.x(1, INT32)
        x = self.take(0)
        enforce(lengths.dim() == 1 and x.dim() >= 1, "The rows and their numbers are lists.")
        enforce(len(lengths) == x.size(0), f"{len(lengths)} lengths for {x.size(0)} rows.")
        self.give(0, x.index_select(0, segments_of_lengths(lengths)), self.Input(0).dtype())


@register_operator("LengthsGather")
class LengthsGather(Mover):
    """The segments of input 0, of the lengths of input 1, by the indices of input 2."""

    def move(self) -> None:
        lengths, indices = self.x(1, INT32), self.x(2, INTS)
        x = self.take(0)
        enforce(x.dim() >= 1, "Input 0 has to have rows.")
        enforce(lengths.dim() == 1 and indices.dim() == 1, "Lengths and indices are lists.")
        places = rows_of(indices, len(lengths))
        segments_of_lengths(lengths, x.size(0))
        starts = lengths.cumsum(0, dtype=torch.int64) - lengths
        chosen = lengths[places]
        ids = segments_of_lengths(chosen)
        rows = starts[places][ids] + places_in_segments(chosen, ids)
        self.give(0, x.index_select(0, rows), self.Input(0).dtype())


@register_operator("LengthsPad")
class LengthsPad(_OfLengths):
    """Segments with `padding_value` (-1) after them, each of `target_length` rows."""

    def RunOnDevice(self) -> None:
        x, lengths = self.x(0, NUMBERS), self.lengths(1)
        target = self.GetSingleArgument("target_length", -1)
        enforce(target >= 1, "The argument target_length is 1 at least.")
        enforce(x.dim() >= 1, "Input 0 has to have rows.")
        ids = segments_of_lengths(lengths, x.size(0))
        enforce(bool((lengths <= target).all()), f"A length is greater than {target}.")
        within = places_in_segments(lengths, ids)
        value = self.GetSingleArgument("padding_value", -1.0)
        value = value if x.is_floating_point() else int(value)
        result = x.new_full((len(lengths) * target, *x.shape[1:]), value)
        result[ids * target + within] = x
        self.put(0, result)


@register_operator("LengthsSplit")
class LengthsSplit(_OfLengths):
    """Each length in `n_split` parts, an argument or input 1, the greater ones first."""

    def RunOnDevice(self) -> None:
        lengths = self.lengths()
        n = self.GetSingleArgument("n_split", 0)
        if self.InputSize() > 1:
            enforce(
                self.Input(1).dim() == 1 and self.Input(1).numel() == 1,
                "Input 1 has to be one number.",
            )
            n = self.integers(1, INT32)[0]
        enforce(n > 0, "n_split has to be positive.")
        whole, rest = torch.div(lengths, n, rounding_mode="floor"), torch.remainder(lengths, n)
        self.put(0, (whole[:, None] + (torch.arange(n) < rest[:, None])).int().view(-1))


@register_operator("LengthsTopK")
class LengthsTopK(_OfLengths):
    """The `k` greatest elements of each segment, and their places; 0 and -1 for those missing."""

    def RunOnDevice(self) -> None:
        x, lengths = self.x(0, FLOAT), self.lengths(1)
        k = self.GetSingleArgument("k", -1)
        enforce(k >= 1, "The argument k is 1 at least.")
        enforce(x.dim() == 1, "Input 0 has to have one dimension.")
        total = len(segments_of_lengths(lengths))
        enforce(total <= len(x), f"The lengths add up to {total}, for {len(x)} elements.")
        values, places = x.new_zeros(len(lengths), k), torch.full((len(lengths), k), -1).int()
        for i, part in enumerate(torch.split(x[:total], lengths.tolist())):
            order = torch.sort(part, descending=True, stable=True)
            n = min(k, len(part))
            values[i, :n], places[i, :n] = order.values[:n], order.indices[:n].int()
        self.put(0, values)
        self.put(1, places)


@register_operator("MergeIdLists")
class MergeIdLists(_OfLengths):
    """Lists of ids, inputs 0, 2, ... their lengths, merged: each id once, sorted."""

    def RunOnDevice(self) -> None:
        dtype = self.Input(1).dtype()
        n = len(self.lengths(0))
        ids: list[set[int]] = [set() for _ in range(n)]
        enforce(self.InputSize() % 2 == 0, "Lengths and values come in pairs.")
        for i in range(0, self.InputSize(), 2):
            lengths, values = self.lengths(i), self.x(i + 1, (dtype,) if i else INTS)
            enforce(len(lengths) == n, "The numbers of lengths differ.")
            enforce(values.dim() == 1, f"Input {i + 1} has to have one dimension.")
            for one, value in zip(
                segments_of_lengths(lengths, len(values)).tolist(), values.tolist(), strict=True
            ):
                ids[one].add(value)
        merged = [value for one in ids for value in sorted(one)]
        self.put(0, torch.tensor([len(one) for one in ids], dtype=torch.int32))
        self.put(1, torch.tensor(merged, dtype=dtype.torch))
