# SPDX-License-Identifier: Apache-2.0
"""Rows partitioned by keys, and merged again."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import OutputCount, operator
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base.checks import INT32, INTS, require
from bridge.caffe2.operators.base.rows_and_segments import copied_rows, segment_ids


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
    given = maker.given[0]
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
