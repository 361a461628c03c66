# SPDX-License-Identifier: Apache-2.0
"""Elements selected by bool masks, rows partitioned by keys; and both merged again."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import OutputCount, operator
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base.checks import (
    BOOL,
    INT32,
    INTS,
    NUMBERS_AND_BOOL,
    require,
    require_all,
)
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
    n = dy.shape[0]
    require_all(mask.sum() == n, f"the mask keeps the {n} rows that the gradient has", mask)
    # A row of zeros follows those of the gradient, for the rows that the mask does not keep.
    rows = torch.cat((dy, dy.new_zeros((1, *dy.shape[1:]))))
    return rows.index_select(0, torch.where(mask, mask.cumsum(0) - 1, n))


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


def _parts_of(outputs: int, inputs: int) -> int:
    require(outputs % inputs == 0, "the outputs are a multiple of the inputs", outputs, inputs)
    return outputs // inputs


def _partitioned(
    keys: Tensor, others: tuple[Tensor, ...], parts: int, pack: int
) -> tuple[Tensor, list[list[Tensor]]]:
    """Return the part of each key, and for each part the rows of keys and others in it."""
    flat = torch.remainder(keys, parts).reshape(-1)
    masks = [flat == part for part in range(parts)]
    found: list[list[Tensor]] = [[] for _ in masks]
    for i, x in enumerate((keys, *others)):
        require(
            x.shape[: keys.dim()] == keys.shape, "the sizes of inputs begin as those of keys", x
        )
        rows = x.reshape(keys.numel(), *x.shape[keys.dim() :])
        if not i and pack:
            rows = torch.div(rows - flat, parts, rounding_mode="trunc")
        for part, mask in enumerate(masks):
            found[part].append(rows[mask])
    return flat, found


@operator(
    "Partition",
    inputs="1-*",
    outputs="1-*",
    types={"keys": INTS, "others": None},
    rearranges="by input",
    effects=("values",),
    gradient="none",
)
def partition(
    keys: Tensor, *others: Tensor, pack_first_input: int = 0, outputs: OutputCount = 1
) -> tuple[Tensor, ...]:
    """Partition keys, and the rows that belong to them, by the remainder of the keys."""
    require(keys.dim() >= 1, "the keys have at least one dimension", keys)
    parts = _parts_of(outputs, 1 + len(others))
    found = _partitioned(keys, others, parts, pack_first_input)[1]
    return tuple([one for part in found for one in part])


@operator(
    "LengthsPartition",
    inputs="2-*",
    outputs="2-*",
    types={"lengths": INT32, "keys": INTS, "others": None},
    rearranges="by input",
    effects=("values",),
    gradient="none",
)
def lengths_partition(
    lengths: Tensor,
    keys: Tensor,
    *others: Tensor,
    pack_first_input: int = 0,
    outputs: OutputCount = 2,
) -> tuple[Tensor, ...]:
    """Partition segments of keys, and the rows that belong to them, with their lengths."""
    require(keys.dim() == 1, "the keys have one dimension", keys)
    parts = _parts_of(outputs, 2 + len(others))
    if parts == 1:
        return lengths, keys, *others
    lengths = lengths.reshape(-1)
    n = lengths.shape[0]
    ids = segment_ids(lengths, keys.numel())
    flat, found = _partitioned(keys, others, parts, pack_first_input)
    results: list[Tensor] = []
    for part, rows in enumerate(found):
        results.append(torch.bincount(ids[flat == part], minlength=n).int())
        results += rows
    return tuple(results)


def _gather_by_key_gradient(maker: GradientMaker) -> None:
    """Partition the gradient into the rows of each table that they were gathered from."""
    given = maker.output_gradients[0]
    is_sparse = isinstance(given, GradientSlice)
    inputs = [maker.I(0), *(map(str, given) if isinstance(given, GradientSlice) else [maker.GO(0)])]
    outputs = []
    for i in range(1, len(maker.op.input)):
        names = list(maker.GI_slice(i)) if is_sparse else [maker.GI(i)]
        outputs += [f"_{names[0]}_keys", *names]
    arguments = {"pack_first_input": maker.argument("pack_first_input", 0)}
    maker.add("Partition", inputs, outputs, arguments)


@operator(
    "GatherByKey",
    inputs="2-*",
    types={"keys": INTS, "parts": "parts"},
    effects=("values",),
    gradient=_gather_by_key_gradient,
)
def gather_by_key(keys: Tensor, *parts: Tensor) -> Tensor:
    """The inverse of Partition: the rows of inputs 1, 2, ... in the order of the keys."""
    require(keys.dim() == 1, "the keys have one dimension", keys)
    first = parts[0]
    for part in parts:
        fits = part.dtype == first.dtype and part.dim() >= 1 and part.shape[1:] == first.shape[1:]
        require(fits, "the parts have the same type and row sizes", part, first)
    flat = torch.remainder(keys, len(parts))
    result = first.new_zeros((keys.shape[0], *first.shape[1:]))
    for i, part in enumerate(parts):
        places = (flat == i).nonzero().view(-1)
        n = places.shape[0]
        require(n == part.shape[0], f"{n} rows belong to input {i + 1}", part)
        result = copied_rows(result, places, part)
    return result
