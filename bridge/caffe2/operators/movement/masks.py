# SPDX-License-Identifier: Apache-2.0
"""Elements selected by bool masks."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import BOOL, INTS, NUMBERS_AND_BOOL, has_values, require
from bridge.caffe2.operators.base.rows_and_segments import copied_rows, segment_ids


@operator(
    "BooleanMask",
    outputs="1-2",
    types={"data": None, "mask": BOOL},
    rearranges=(0,),
    effects=("values",),
    gradient="$Gradient i1 g0 > 0",
)
def boolean_mask(data: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of the data where the mask is True, and their indices."""
    require(data.dim() >= 1, "the data have at least one dimension", data)
    fits = mask.dim() == 1 and mask.shape[0] == data.shape[0]
    require(fits, "the mask has one element per row", mask, data)
    places = mask.nonzero().view(-1)
    return data.index_select(0, places), places


@operator("BooleanMaskGradient", types={"mask": BOOL, "dy": NUMBERS_AND_BOOL})
def boolean_mask_gradient(mask: Tensor, dy: Tensor) -> Tensor:
    """The gradient of BooleanMask: the selected rows put back, zeros elsewhere.

    Whole rows are put back; Caffe2 puts back only their first elements.
    """
    fits = mask.dim() == 1 and dy.dim() >= 1
    require(fits, "the mask has one dimension, the gradient at least one", mask, dy)
    if has_values(mask):
        n = int(mask.sum())
        require(n == dy.shape[0], f"the gradient has the {n} rows that the mask keeps", dy)
    # A row of zeros follows those of the gradient, for the rows that the mask does not keep.
    rows = torch.cat((dy, dy.new_zeros((1, *dy.shape[1:]))))
    return rows.index_select(0, torch.where(mask, mask.cumsum(0) - 1, dy.shape[0]))


@operator("BooleanMaskLengths", types={"lengths": INTS, "mask": BOOL}, gradient="none")
def boolean_mask_lengths(lengths: Tensor, mask: Tensor) -> Tensor:
    """The lengths, counting only the elements where the mask is True."""
    require(
        lengths.dim() == 1 and mask.dim() == 1, "lengths and mask have one dimension", lengths, mask
    )
    segments = segment_ids(lengths, mask.numel())
    return lengths.new_zeros(lengths.shape).index_add(0, segments, mask.to(lengths.dtype))


@operator("BooleanUnmask", inputs="2n", types=None, effects=("values",), gradient="none")
def boolean_unmask(*masks_and_values: Tensor) -> Tensor:
    """Merge values selected by masks; inputs: a mask, its values, the next mask, ...

    Each element is the next value of the first mask that is True there.
    """
    masks, values = masks_and_values[::2], masks_and_values[1::2]
    for mask, value in zip(masks, values, strict=True):
        require(mask.dtype == torch.bool, "masks are of bools", mask.dtype)
        fits = mask.dim() == 1 and mask.shape == masks[0].shape
        require(fits, "masks have one dimension and the same size", mask, masks[0])
        require(value.dim() == 1, "values have one dimension", value)
        require(value.dtype == values[0].dtype, "values have the same type", value.dtype)
    taken = torch.zeros_like(masks[0])
    result = values[0].new_zeros(masks[0].shape)
    for mask, value in zip(masks, values, strict=True):
        fresh = (mask & ~taken).nonzero().view(-1)
        n = fresh.shape[0]
        require(n == value.numel(), f"there are {n} values, as the mask is the first one", value)
        result = copied_rows(result, fresh, value)
        taken = taken | mask
    require(bool(taken.all()), "every element is set in at least one mask")
    return result
