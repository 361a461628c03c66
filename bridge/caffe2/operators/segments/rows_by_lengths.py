# SPDX-License-Identifier: Apache-2.0
"""Operators that repeat, select, pad or merge rows by the lengths of segments."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.any_type_operator import AnyTypeOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import (
    check_lengths,
    positions_in_segments,
    row_indices,
    segment_ids,
)
from bridge.caffe2.operators.base.torch_operator import FLOAT, INT32, INTS, NUMBERS, enforce
from bridge.caffe2.operators.segments.lengths import LengthsOperator

__all__: list[str] = []


@register_operator("LengthsTile")
class LengthsTile(AnyTypeOperator):
    """Repeat each row of input 0 as often as specified in input 1."""

    def move(self) -> None:
        lengths = self.x(1, INT32)
        x = self.load(0)
        enforce(
            lengths.dim() == 1 and x.dim() >= 1,
            "Lengths must have one dimension, input 0 at least one.",
        )
        enforce(
            len(lengths) == x.size(0), f"There are {len(lengths)} lengths, but {x.size(0)} rows."
        )
        self.store(0, x.index_select(0, segment_ids(lengths)), self.Input(0).dtype())


@register_operator("LengthsGather")
class LengthsGather(AnyTypeOperator):
    """Select segments of input 0, with lengths in input 1, at the indices in input 2."""

    def move(self) -> None:
        lengths, indices = self.x(1, INT32), self.x(2, INTS)
        x = self.load(0)
        enforce(x.dim() >= 1, "Input 0 must have at least one dimension.")
        enforce(
            lengths.dim() == 1 and indices.dim() == 1,
            "Lengths and indices must have one dimension.",
        )
        places = row_indices(indices, len(lengths))
        check_lengths(lengths, x.size(0))
        starts = lengths.cumsum(0, dtype=torch.int64) - lengths
        chosen = lengths[places]
        ids = segment_ids(chosen)
        rows = starts[places][ids] + positions_in_segments(chosen, ids)
        self.store(0, x.index_select(0, rows), self.Input(0).dtype())


@register_operator("LengthsPad")
class LengthsPad(LengthsOperator):
    """Pad each segment with `padding_value` (-1) to `target_length` rows."""

    def RunOnDevice(self) -> None:
        x, lengths = self.x(0, NUMBERS), self.lengths(1)
        target = self.GetSingleArgument("target_length", -1)
        enforce(target >= 1, "The argument target_length must be at least 1.")
        enforce(x.dim() >= 1, "Input 0 must have at least one dimension.")
        ids = segment_ids(lengths, x.size(0))
        enforce(bool((lengths <= target).all()), f"A length is greater than {target}.")
        within = positions_in_segments(lengths, ids)
        value = self.GetSingleArgument("padding_value", -1.0)
        value = value if x.is_floating_point() else int(value)
        result = x.new_full((len(lengths) * target, *x.shape[1:]), value)
        result[ids * target + within] = x
        self.put(0, result)


@register_operator("LengthsTopK")
class LengthsTopK(LengthsOperator):
    """The `k` largest elements of each segment, and their indices; 0 and -1 if there are fewer."""

    def RunOnDevice(self) -> None:
        x, lengths = self.x(0, FLOAT), self.lengths(1)
        k = self.GetSingleArgument("k", -1)
        enforce(k >= 1, "The argument k must be at least 1.")
        enforce(x.dim() == 1, "Input 0 must have one dimension.")
        total = len(segment_ids(lengths))
        enforce(total <= len(x), f"The lengths add up to {total}, but there are {len(x)} elements.")
        values, places = x.new_zeros(len(lengths), k), torch.full((len(lengths), k), -1).int()
        for i, part in enumerate(torch.split(x[:total], lengths.tolist())):
            order = torch.sort(part, descending=True, stable=True)
            n = min(k, len(part))
            values[i, :n], places[i, :n] = order.values[:n], order.indices[:n].int()
        self.put(0, values)
        self.put(1, places)


@register_operator("MergeIdLists")
class MergeIdLists(LengthsOperator):
    """Merge lists of ids, whose lengths are inputs 0, 2, ...: each id once, sorted."""

    def RunOnDevice(self) -> None:
        dtype = self.Input(1).dtype()
        n = len(self.lengths(0))
        ids: list[set[int]] = [set() for _ in range(n)]
        enforce(self.InputSize() % 2 == 0, "The inputs must be pairs of lengths and values.")
        for i in range(0, self.InputSize(), 2):
            lengths, values = self.lengths(i), self.x(i + 1, (dtype,) if i else INTS)
            enforce(len(lengths) == n, "All inputs must have the same number of lengths.")
            enforce(values.dim() == 1, f"Input {i + 1} must have one dimension.")
            for one, value in zip(
                segment_ids(lengths, len(values)).tolist(), values.tolist(), strict=True
            ):
                ids[one].add(value)
        merged = [value for one in ids for value in sorted(one)]
        self.put(0, torch.tensor([len(one) for one in ids], dtype=torch.int32))
        self.put(1, torch.tensor(merged, dtype=dtype.torch))
