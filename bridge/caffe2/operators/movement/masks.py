# SPDX-License-Identifier: Apache-2.0
"""Elements selected by bool masks."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.any_type_operator import AnyTypeOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import segment_ids
from bridge.caffe2.operators.base.torch_operator import (
    INTS,
    NUMBERS_AND_BOOL,
    TorchOperator,
    enforce,
)

__all__: list[str] = []


@register_operator("BooleanMask")
class BooleanMask(AnyTypeOperator):
    """The rows of input 0 where the mask, input 1, is True; output 1: their indices."""

    def move(self) -> None:
        mask = self.x(1, (c10.bool,))
        x = self.load(0)
        enforce(x.dim() >= 1, "Input 0 must have at least one dimension.")
        enforce(
            mask.dim() == 1 and mask.size(0) == x.size(0),
            f"A mask of sizes {list(mask.shape)} does not match {x.size(0)} rows.",
        )
        places = mask.nonzero().view(-1)
        self.store(0, x.index_select(0, places), self.Input(0).dtype())
        if self.OutputSize() == 2:
            self.put(1, places)


@register_operator("BooleanMaskGradient")
class BooleanMaskGradient(AnyTypeOperator):
    """The gradient of BooleanMask: the selected rows put back, zeros elsewhere.

    Inputs: the mask, the gradient of the selected rows. Whole rows are put back; Caffe2 puts back
    only their first elements.
    """

    def move(self) -> None:
        mask, kept = self.x(0, (c10.bool,)), self.x(1, NUMBERS_AND_BOOL)
        enforce(
            mask.dim() == 1 and kept.dim() >= 1,
            "The mask must have one dimension, the gradient at least one.",
        )
        n = int(mask.sum())
        enforce(n == kept.size(0), f"The mask keeps {n} rows, but the gradient has {kept.size(0)}.")
        result = kept.new_zeros((len(mask), *kept.shape[1:]))
        result[mask] = kept
        self.put(0, result)


@register_operator("BooleanMaskLengths")
class BooleanMaskLengths(TorchOperator):
    """The lengths of input 0, counting only the elements where the mask, input 1, is True."""

    def RunOnDevice(self) -> None:
        lengths, mask = self.x(0, INTS), self.x(1, (c10.bool,))
        enforce(lengths.dim() == 1 and mask.dim() == 1, "Lengths and mask must have one dimension.")
        segments = segment_ids(lengths, mask.numel())
        counted = torch.zeros(len(lengths), dtype=torch.int64).index_add_(0, segments, mask.long())
        self.put(0, counted.to(lengths.dtype))


@register_operator("BooleanUnmask")
class BooleanUnmask(AnyTypeOperator):
    """Merge values selected by masks; inputs: a mask, its values, the next mask, ...

    Each element is the next value of the first mask that is True there.
    """

    def move(self) -> None:
        n = self.InputSize() // 2
        masks = [self.x(2 * i, (c10.bool,)) for i in range(n)]
        dtype = self.Input(1).dtype()
        numel = masks[0].numel()
        for i, mask in enumerate(masks):
            enforce(
                mask.dim() == 1 and mask.numel() == numel,
                "Masks must have one dimension and the same size.",
            )
            enforce(self.Input(2 * i + 1).dim() == 1, "Values must have one dimension.")
            enforce(self.Input(2 * i + 1).dtype() is dtype, "Values must have the same type.")
        values = [self.load(2 * i + 1) for i in range(n)]
        taken = torch.zeros(numel, dtype=torch.bool)
        result = values[0].new_zeros(numel)
        for mask, value in zip(masks, values, strict=True):
            fresh = mask & ~taken
            enforce(
                int(fresh.sum()) == value.numel(),
                f"A mask is the first one set at {int(fresh.sum())} indices, but has "
                f"{value.numel()} values.",
            )
            result[fresh] = value
            taken |= mask
        enforce(bool(taken.all()), "Every element must be set in at least one mask.")
        self.store(0, result, dtype)
