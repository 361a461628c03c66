# SPDX-License-Identifier: Apache-2.0
"""Ranges of elements, given by start and length."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import INT64, INTS, require
from bridge.caffe2.operators.base.rows_and_segments import (
    positions_in_segments,
    rows_at,
    segment_ids,
)
from bridge.caffe2.operators.base.torch_operator import TorchOperator


@operator(
    "GatherRanges", types={"data": None, "ranges": INTS}, rearranges=(0,), effects=("values",)
)
def gather_ranges(data: Tensor, ranges: Tensor) -> tuple[Tensor, Tensor]:
    """Concatenate the ranges of the data; output 1: the total lengths per row.

    ranges: (rows, ranges, 2), start and length.
    """
    require(data.dim() == 1, "the data have one dimension", data)
    fits = ranges.dim() == 3 and ranges.shape[1] > 0 and ranges.shape[2] == 2
    require(fits, "ranges have the sizes (batch, ranges, 2)", ranges)
    places = ranges_of(ranges.reshape(-1, 2), data.numel())
    return rows_at(data, places), ranges[:, :, 1].sum(1).int()


def ranges_of(ranges: Tensor, n: int) -> Tensor:
    """Return the indices in the ranges (start, length), concatenated.

    Raises EnforceNotMet: a range is out of range for `n` elements.
    """
    starts, lengths = ranges[:, 0].long(), ranges[:, 1].long()
    inside = (starts >= 0) & (lengths >= 0) & (starts + lengths <= n) | (lengths == 0)
    if not bool(inside.all()):
        raise EnforceNotMet(
            f"A range is out of range for {n} elements.", condition="start + length <= numel"
        )
    ids = segment_ids(lengths)
    return starts[ids] + positions_in_segments(lengths, ids)


@register_operator("GatherRangesToDense", inputs="2-3", outputs="1-*", gradient="none")
class GatherRangesToDense(TorchOperator):
    """The ranges of input 0 as rows of `lengths`, one output each; 0 for other lengths.

    With input 2, keys, the elements of a range are sorted by them.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._lengths = self.GetRepeatedArgument("lengths")
        fits = bool(self._lengths) and min(self._lengths) > 0
        require(fits, "The argument lengths must have positive numbers, one per output.")
        self._observed = 0
        self._mismatched = [0] * len(self._lengths)
        self._empty = [0] * len(self._lengths)

    def RunOnDevice(self) -> None:
        ranges = self.x(1, INTS)
        items: list[Any] = []
        x, dtype = self.load(0, items), self.Input(0).dtype()
        require(x.dim() == 1 and ranges.dim() == 3, "Data must have one dimension, ranges three.")
        n = len(self._lengths)
        require(
            ranges.size(1) == n == self.OutputSize() and ranges.size(2) == 2,
            f"Ranges of sizes {list(ranges.shape)} are not (batch, {n}, 2), for {n} outputs.",
        )
        ranges_of(ranges.reshape(-1, 2), x.numel())
        keys = None
        if self.InputSize() == 3:
            keys = self.x(2, INT64)
            require(keys.dim() == 1, "Keys must have one dimension.")
        results = []
        empty, mismatched = list(self._empty), list(self._mismatched)
        for o, length in enumerate(self._lengths):
            result = x.new_zeros((ranges.size(0), length))
            for row, (start, size) in enumerate(ranges[:, o].tolist()):
                empty[o] += size == 0
                mismatched[o] += size not in (0, length)
                if size == length:
                    part = x[start : start + length]
                    if keys is not None:
                        part = part[torch.sort(keys[start : start + length], stable=True).indices]
                    result[row] = part
            results.append(result)
        seen = self._observed + ranges.size(0)
        counted = max(seen, self.GetSingleArgument("min_observation", 10000))
        for counts, name, default in (
            (mismatched, "max_mismatched_ratio", 0.01),
            (empty, "max_empty_ratio", 1.0),
        ):
            ratio = self.GetSingleArgument(name, default)
            fits = ratio >= 1 or all(count <= counted * ratio for count in counts)
            require(fits, f"More ranges have another length, or are empty, than {name} allows.")
        self._observed, self._empty, self._mismatched = seen, empty, mismatched
        for o, result in enumerate(results):
            self.store(o, result, items, dtype)
