# SPDX-License-Identifier: Apache-2.0
"""Rows scattered to places, and sparse values made dense."""

from __future__ import annotations

from bridge import c10
from bridge.c10.errors import EnforceIndexError, EnforceNotMet
from bridge.caffe2.operators.lazy_torch import torch
from bridge.caffe2.operators.mover import Mover
from bridge.caffe2.operators.segment import segments_of_lengths
from bridge.caffe2.operators.torch_operator import (
    FLOAT,
    INT32,
    INT64,
    INTS,
    TorchOperator,
    enforce,
    normal_axis,
)
from bridge.caffe2.registry import register_operator

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


def _places(indices: torch.Tensor, n: int) -> torch.Tensor:
    """Give indices of rows as int64, in one dimension. Raises EnforceNotMet: one has no row."""
    flat = indices.reshape(-1).long()
    if bool(((flat < 0) | (flat >= n)).any()):
        raise EnforceIndexError(
            f"An index of {sorted(set(flat.tolist()))} is out of range for {n} rows.",
            "0 <= idx && idx < N",
        )
    return flat


@register_operator("ScatterAssign")
class ScatterAssign(TorchOperator):
    """In place, the rows of input 0 that input 1 names become those of input 2."""

    def RunOnDevice(self) -> None:
        """See the class."""
        types = (c10.float32, c10.float16, c10.uint8, c10.int32, c10.int64, c10.float64)
        x, indices = self.x(0, types), self.x(1, INTS)
        slices = self.x(2, (self.Input(0).dtype(),))
        enforce(x.dim() > 0, "Input 0 has to have rows.")
        places = _places(indices, x.size(0))
        row = x.numel() // max(x.size(0), 1)
        enforce(
            slices.numel() == row * len(places),
            f"{slices.numel()} elements are given for {len(places)} rows of {row}.",
        )
        if len(places):
            x[places] = slices.reshape(len(places), *x.shape[1:])


@register_operator("ScatterWeightedSum")
class ScatterWeightedSum(TorchOperator):
    """In place, the rows of input 0 that input 2 names times input 1, plus others, weighted.

    Inputs: x, its weight, indices, rows, their weight, rows, their weight, ...
    """

    def RunOnDevice(self) -> None:
        """See the class."""
        x, indices = self.x(0, FLOAT), self.x(2, INTS)
        enforce(x.numel() > 0 and x.dim() > 0, "Input 0 has to have rows.")
        enforce(self.InputSize() % 2 == 1, "Each of the rows has a weight after them.")
        places = _places(indices, x.size(0))
        weight = self._weight(1)
        added = []
        for i in range(3, self.InputSize(), 2):
            rows = self.x(i, FLOAT)
            enforce(
                rows.numel() == len(places) * (x.numel() // x.size(0)),
                f"Input {i} has {rows.numel()} elements for {len(places)} rows.",
            )
            added.append((rows.reshape(len(places), *x.shape[1:]), self._weight(i + 1)))
        # one by one: a row that comes twice is scaled twice
        if weight != 1:
            for place in places.tolist():
                x[place] *= weight
        for rows, factor in added:
            x.index_add_(0, places, rows, alpha=factor)

    def _weight(self, i: int) -> float:
        weight = self.x(i, FLOAT)
        enforce(weight.numel() == 1, f"Input {i} is a weight, and has to be one number.")
        return float(weight.item())


@register_operator("Scatter")
class Scatter(Mover):
    """A copy of input 0 with the elements of input 2 at the indices of input 1 along `axis` (1)."""

    def move(self) -> None:
        """See the class."""
        indices = self.x(1, INTS)
        data, updates = self.take(0), self.take(2)
        dtype = self.Input(0).dtype()
        enforce(self.Input(2).dtype() is dtype, "Inputs 0 and 2 differ in type.")
        axis = normal_axis(self.GetSingleArgument("axis", 1), data.dim())
        if not data.numel():
            self.give(0, data.clone(), dtype)
            return
        enforce(
            indices.dim() == data.dim() == updates.dim() and indices.numel() == updates.numel(),
            "Indices and updates are of one size, and have as many dimensions as the data.",
        )
        _places(indices, data.size(axis))
        self.give(0, data.scatter(axis, indices.long(), updates.reshape(indices.shape)), dtype)


@register_operator("CopyRowsToTensor")
class CopyRowsToTensor(TorchOperator):
    """In place, the rows of input 0 that input 1 names become input 2."""

    def RunOnDevice(self) -> None:
        """See the class."""
        x = self.x(0, (c10.float16, c10.float32, c10.float64, *INTS))
        indices, row = self.x(1, INT64), self.x(2, (self.Input(0).dtype(),))
        enforce(x.dim() == 2, "Input 0 has to be a matrix.")
        enforce(indices.dim() == 1 and row.dim() == 1, "Indices and row have one dimension.")
        enforce(len(row) == x.size(1), f"A row of {len(row)} is given for one of {x.size(1)}.")
        x[_places(indices, x.size(0))] = row


@register_operator("RemoveDataBlocks")
class RemoveDataBlocks(Mover):
    """The rows of input 0 but those that input 1 names."""

    def move(self) -> None:
        """See the class."""
        indices = self.x(1, INTS)
        x = self.take(0)
        enforce(x.dim() > 0 and indices.dim() == 1, "Input 0 has rows, input 1 is a list.")
        keep = torch.ones(x.size(0), dtype=torch.bool)
        keep[_places(indices, x.size(0))] = False
        self.give(0, x[keep], self.Input(0).dtype())


@register_operator("SparseToDense")
class SparseToDense(TorchOperator):
    """The values of input 1 added up at the rows of input 0.

    As many rows as `output_first_dim` or input 2 say, or else the greatest index.
    """

    def RunOnDevice(self) -> None:
        """See the class."""
        indices, values = self.x(0, INTS), self.x(1, (c10.float32, *INTS))
        enforce(indices.dim() == 1 and values.dim() >= 1, "Indices are a list, values have rows.")
        enforce(
            len(indices) == values.size(0),
            f"{len(indices)} indices are given for {values.size(0)} values.",
        )
        n = self.GetSingleArgument("output_first_dim", 0)
        if n > 0:
            enforce(self.InputSize() == 2, "The rows are an argument or an input, and not both.")
        elif self.InputSize() == 3:
            enforce(self.Input(2).dim() >= 1, "Input 2 has to have rows.")
            n = self.Input(2).size(0)
        else:
            n = int(indices.max()) + 1 if len(indices) else 0
        result = values.new_zeros((max(n, 0), *values.shape[1:]))
        self.put(0, result.index_add_(0, _places(indices, n), values) if n else result)


@register_operator("SparseToDenseMask")
class SparseToDenseMask(Mover):
    """For each id of `mask` the value that belongs to it, or the default.

    Inputs: ids, their values, the default, and lengths where there are several rows. Output 1, with
    `return_presence_mask`: whether there was a value.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        mask = self.GetRepeatedArgument("mask")
        enforce(bool(mask), "The argument mask is missing.")
        enforce(min(mask) >= 0, "The ids of mask are not negative.")
        enforce(len(set(mask)) == len(mask), "An id of mask comes twice.")
        self._column = {one: column for column, one in enumerate(mask)}
        self._skipped_rows = 0

    def move(self) -> None:
        """See the class."""
        ids = self.x(0, INTS)
        values, default = self.take(1), self.take(2)
        dtype = self.Input(1).dtype()
        enforce(ids.dim() == 1 and values.dim() >= 1, "Ids are a list, values have rows.")
        enforce(len(ids) == values.size(0), "There is a value for each id.")
        enforce(self.Input(2).dtype() is dtype, "The default is of another type.")
        enforce(
            (
                default.dim() + 1 == values.dim()
                and default.numel() == values[0:1].numel() // max(len(values[0:1]), 1)
            )
            or not len(values),
            "The default is not of the size of a value.",
        )
        sizes: list[int] = [len(self._column)]
        segments = torch.zeros(len(ids), dtype=torch.int64)
        if self.InputSize() == 4:
            lengths = self.x(3, INT32)
            enforce(lengths.dim() == 1, "Lengths are a list.")
            segments = segments_of_lengths(lengths, len(ids))
            sizes = [len(lengths), *sizes]
        n = len(self._column)
        rows = sizes[0] if len(sizes) == 2 else 1
        result = default.expand(rows * n, *default.shape).clone()
        present = torch.zeros(rows * n, dtype=torch.bool)
        invalid = set()
        for i, (one, row) in enumerate(zip(ids.tolist(), segments.tolist(), strict=True)):
            if one < 0:
                invalid.add(row)
            elif one in self._column:
                place = row * n + self._column[one]
                result[place] = values[i]
                present[place] = True
        self._skipped_rows += len(invalid)
        most = self.GetSingleArgument("max_skipped_indices", 50)
        enforce(self._skipped_rows < most, "Too many rows have ids that are negative.")
        self.give(0, result.reshape(*sizes, *default.shape), dtype)
        if self.GetSingleArgument("return_presence_mask", False):
            self.put(1, present.reshape(sizes))


class _Batch(TorchOperator):
    """An operator on rows of indices, whose lengths are input 0, and input 1."""

    def places(self, width: int) -> torch.Tensor:
        """Give the places in a matrix of rows of `width`, flat."""
        lengths, indices = self.x(0, INT64), self.x(1, INT64)
        enforce(lengths.dim() == 1 and indices.dim() == 1, "Lengths and indices are lists.")
        ids = segments_of_lengths(lengths, len(indices))
        return ids * width + _places(indices, width)


@register_operator("BatchSparseToDense")
class BatchSparseToDense(_Batch):
    """Rows of `dense_last_dim`, or as long as those of input 3, with values at their indices.

    Inputs: lengths, indices, values. Elsewhere is `default_value` (0).
    """

    def RunOnDevice(self) -> None:
        """See the class."""
        values = self.x(2, FLOAT)
        width = self.GetSingleArgument("dense_last_dim", -1)
        if self.InputSize() == 4:
            enforce(self.Input(3).dim() == 2, "Input 3 has to be a matrix.")
            given = self.Input(3).size(1)
            enforce(width in (-1, given), f"dense_last_dim is {width}, and input 3 says {given}.")
            width = given
        enforce(width >= 1, "The rows have to have elements.")
        enforce(values.numel() == self.Input(1).numel(), "There is a value for each index.")
        places = self.places(width)
        n = self.Input(0).numel()
        result = values.new_full((n * width,), self.GetSingleArgument("default_value", 0.0))
        result[places] = values.reshape(-1)
        self.put(0, result.view(n, width))


@register_operator("BatchDenseToSparse")
class BatchDenseToSparse(_Batch):
    """The values of a matrix at indices of its rows; inputs: lengths, indices, matrix."""

    def RunOnDevice(self) -> None:
        """See the class."""
        dense = self.x(2, FLOAT)
        enforce(dense.dim() == 2, "Input 2 has to be a matrix.")
        enforce(self.Input(0).numel() == dense.size(0), "There is a length for each row.")
        self.put(0, dense.reshape(-1)[self.places(dense.size(1))])


@register_operator("DenseVectorToIdList")
class DenseVectorToIdList(TorchOperator):
    """The columns of each row that are not 0: their number, and which."""

    def RunOnDevice(self) -> None:
        """See the class."""
        x = self.x(0, FLOAT)
        enforce(x.dim() == 2, "Input 0 has to be a matrix.")
        there = (x + 0.5).int() != 0
        self.put(0, there.sum(1).int())
        self.put(1, there.nonzero()[:, 1].int())


@register_operator("GatherRanges")
class GatherRanges(Mover):
    """The ranges of input 0, (start, length) in input 1, for each row there; and their lengths."""

    def move(self) -> None:
        """See the class."""
        ranges = self.x(1, INTS)
        x = self.take(0)
        enforce(x.dim() == 1, "Input 0 has to have one dimension.")
        enforce(
            ranges.dim() == 3 and ranges.size(1) > 0 and ranges.size(2) == 2,
            f"Ranges of sizes {list(ranges.shape)} are not (batch, ranges, 2).",
        )
        places = ranges_of(ranges.reshape(-1, 2), x.numel())
        self.give(0, x[places], self.Input(0).dtype())
        self.put(1, ranges[:, :, 1].sum(1).int())


def ranges_of(ranges: torch.Tensor, n: int) -> torch.Tensor:
    """Give the places that (start, length) make, one after another.

    Raises EnforceNotMet: one of them is not within `n` elements.
    """
    starts, lengths = ranges[:, 0].long(), ranges[:, 1].long()
    inside = (starts >= 0) & (lengths >= 0) & (starts + lengths <= n) | (lengths == 0)
    if not bool(inside.all()):
        raise EnforceNotMet(f"A range is not within {n} elements.", "start + length <= numel")
    ids = segments_of_lengths(lengths)
    return starts[ids] + torch.arange(len(ids)) - (lengths.cumsum(0) - lengths)[ids]


@register_operator("GatherRangesToDense")
class GatherRangesToDense(Mover):
    """The ranges of input 0 as rows of `lengths`, an output each; 0 for a range of another length.

    With input 2, keys, the elements of a range are sorted by them.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._lengths = self.GetRepeatedArgument("lengths")
        enforce(
            bool(self._lengths) and min(self._lengths) > 0,
            "The argument lengths has a positive number for each output.",
        )
        self._observed = 0
        self._mismatched = [0] * len(self._lengths)
        self._empty = [0] * len(self._lengths)

    def move(self) -> None:
        """See the class."""
        ranges = self.x(1, INTS)
        x, dtype = self.take(0), self.Input(0).dtype()
        enforce(x.dim() == 1 and ranges.dim() == 3, "Data have one dimension, ranges three.")
        n = len(self._lengths)
        enforce(
            ranges.size(1) == n == self.OutputSize() and ranges.size(2) == 2,
            f"Ranges of sizes {list(ranges.shape)} are not (batch, {n}, 2), for {n} outputs.",
        )
        ranges_of(ranges.reshape(-1, 2), x.numel())
        keys = None
        if self.InputSize() == 3:
            keys = self.x(2, INT64)
            enforce(keys.dim() == 1, "Keys have one dimension.")
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
            enforce(
                ratio >= 1 or all(count <= counted * ratio for count in counts),
                f"More ranges are of another length, or empty, than {name} allows.",
            )
        self._observed, self._empty, self._mismatched = seen, empty, mismatched
        for o, result in enumerate(results):
            self.give(o, result, dtype)
