# SPDX-License-Identifier: Apache-2.0
"""Padding rows before and after segments."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.any_type_operator import AnyTypeOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import check_lengths, segment_ids
from bridge.caffe2.operators.base.torch_operator import INT32, INTS, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


class _Padded(TorchOperator):
    """An operator on segments with padding: `padding_width` (1) rows before each of them.

    After each of them `end_padding_width` rows, by default as many.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._before = self.GetSingleArgument("padding_width", 1)
        self._after = self.GetSingleArgument("end_padding_width", -1)
        enforce(self._before >= 0, "The argument padding_width must not be negative.")
        if self._after < 0:
            self._after = self._before

    def segments(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return input 0, and the lengths of its segments: input 1, or one segment."""
        x = self.x(0, (c10.float32, c10.float64, *INTS, c10.bool))
        enforce(x.dim() >= 1, "Input 0 must have at least one dimension.")
        if self.InputSize() < 2:
            return x, torch.tensor([x.size(0)], dtype=torch.int32)
        lengths = self.x(1, INT32).reshape(-1)
        check_lengths(lengths, x.size(0))
        return x, lengths

    def unchanged(self) -> bool:
        """Copy the inputs if there is no padding; return whether there is none."""
        if self._before or self._after:
            return False
        for o in range(self.OutputSize()):
            if not self.IsInputOutputAlias(o, o):
                self.Output(o).CopyFrom(self.Input(o))
        return True


@register_operator("AddPadding")
class AddPadding(_Padded):
    """Segments with rows before (input 2, by default 0) and after (input 3, by default the same).

    Output 1: the new lengths.
    """

    def RunOnDevice(self) -> None:
        if self.unchanged():
            return
        x, lengths = self.segments()
        before = self._row(2, x)
        after = self._row(3, x) if self.InputSize() > 3 else before
        parts = []
        for part in torch.split(x, lengths.tolist()):
            parts += [before] * self._before + [part] + [after] * self._after
        self.put(0, torch.cat(parts) if parts else x.clone())
        if self.OutputSize() == 2:
            self.put(1, lengths + self._before + self._after)

    def _row(self, i: int, x: torch.Tensor) -> torch.Tensor:
        if self.InputSize() <= i:
            return x.new_zeros((1, *x.shape[1:]))
        row = self.x(i, (self.Input(0).dtype(),))
        enforce(
            row.numel() == torch.Size(x.shape[1:]).numel(),
            f"Input {i} has {row.numel()} elements, but must be a row of input 0.",
        )
        return row.reshape(1, *x.shape[1:])


@register_operator("RemovePadding")
class RemovePadding(_Padded):
    """Segments without the rows before and after. Output 1: the new lengths."""

    def RunOnDevice(self) -> None:
        if self.unchanged():
            return
        x, lengths = self.segments()
        both = self._before + self._after
        enforce(bool((lengths >= both).all()), f"A segment is shorter than its padding, {both}.")
        parts = [
            part[self._before : len(part) - self._after]
            for part in torch.split(x, lengths.tolist())
        ]
        self.put(0, torch.cat(parts) if parts else x.clone())
        if self.OutputSize() == 2:
            self.put(1, lengths - both)


@register_operator("GatherPadding")
class GatherPadding(_Padded):
    """The sums of the rows before and after segments, or of both if there is one output."""

    def RunOnDevice(self) -> None:
        if not self._before and not self._after:
            for o in range(self.OutputSize()):
                self.out(o, [], c10.int64).zero_()
            return
        x, lengths = self.segments()
        enforce(x.dtype != torch.bool, "Padding of bools cannot be summed.")
        enforce(
            bool((lengths >= max(self._before, self._after)).all()),
            "A segment is shorter than its padding.",
        )
        before, after = x.new_zeros(x.shape[1:]), x.new_zeros(x.shape[1:])
        for part in torch.split(x, lengths.tolist()):
            before += part[: self._before].sum(0, dtype=x.dtype)
            after += part[len(part) - self._after :].sum(0, dtype=x.dtype)
        if self.OutputSize() == 2:
            self.put(0, before)
            self.put(1, after)
        else:
            self.put(0, before + after)


@register_operator("PadEmptySamples")
class PadEmptySamples(AnyTypeOperator):
    """Lengths of 0 become 1, and each feature input gets a row of zeros there."""

    def move(self) -> None:
        lengths = self.x(0, INT32)
        enforce(lengths.dim() == 1, "Lengths must have one dimension.")
        enforce(self.OutputSize() == self.InputSize(), "There must be one output per input.")
        ids = segment_ids(lengths)
        padded = lengths.clamp(min=1)
        new_ids = segment_ids(padded)
        real = lengths[new_ids] > 0
        for i in range(1, self.InputSize()):
            x, dtype = self.load(i), self.Input(i).dtype()
            enforce(
                x.dim() >= 1 and x.size(0) == len(ids),
                f"Input {i} must have {len(ids)} rows, the sum of the lengths.",
            )
            result = x.new_zeros((len(new_ids), *x.shape[1:]))
            if dtype is c10.string:
                self._items.append(b"")
                result += len(self._items) - 1
            result[real] = x
            self.store(i, result, dtype)
        self.put(0, padded)
