# SPDX-License-Identifier: Apache-2.0
"""Sparse features of several inputs merged into one list of features per example.

A feature is a key and a value, a list of values, or a map of values by keys. A "Single" input is
one feature, with its key in the argument `feature_ids` and a mask of the examples that have it. A
"Multi" input has several features per example, given by lengths. The result has the features of the
first example, input by input, then those of the second, and so on. A feature consists of several
inputs of the operator, one after the other.

Follows caffe2/operators/feature_maps_ops.h, PyTorch 1.8.1, which reads out of bounds where lengths
and elements do not match; here this is an error.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import OperatorType, OutputCount, operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base.checks import BOOL, INT32, INT64, NUMBERS_AND_BOOL, require
from bridge.caffe2.operators.base.rows_and_segments import check_lengths, segment_ids

VALUES = (*NUMBERS_AND_BOOL, c10.string)


def merged_order(examples: Sequence[Tensor]) -> Tensor:
    """Return the order in which the concatenated items of all inputs are merged."""
    return torch.sort(torch.cat(list(examples)), stable=True).indices


def flat_lengths(lengths: Tensor) -> Tensor:
    """Return lengths in one dimension. Raises EnforceNotMet: one is negative."""
    flat = lengths.reshape(-1)
    check_lengths(flat)
    return flat


def require_same_examples(per_example: Sequence[Tensor]) -> None:
    """Raise EnforceNotMet unless all tensors have the same number of examples."""
    found = {one.shape[0] for one in per_example}
    require(len(found) == 1, "all features have the same number of examples", sorted(found))


def elements(values: Tensor, n: int, exact: bool) -> Tensor:
    """Return the first `n` elements of the values.

    Raises EnforceNotMet: there are fewer, or more if `exact`.
    """
    taken = values.reshape(-1)
    count = taken.shape[0]
    require(
        count == n or (count > n and not exact), f"there are {n} elements, as lengths say", values
    )
    return taken[:n]


def _count(per_example: Sequence[Tensor]) -> Tensor:
    """Return the number of features of each example."""
    return torch.stack(list(per_example)).sum(0, dtype=torch.int32)


def _keys(feature_ids: list[int] | None, n: int, mask: Tensor) -> Tensor:
    ids = feature_ids or []
    require(len(ids) >= n, f"there are feature_ids for {n} features", ids)
    return torch.tensor(ids[:n], dtype=torch.int64, device=mask.device)


def _merged_values(
    examples: list[Tensor], lengths: list[Tensor], *parts: Sequence[Tensor], exact: bool
) -> tuple[Tensor, ...]:
    """Return merged lengths of features, and for each of `parts` the merged values.

    `examples` are those of the features of each input, `lengths` those of their values.
    """
    of_values = [
        torch.repeat_interleave(one, n.long()) for one, n in zip(examples, lengths, strict=True)
    ]
    order = merged_order(of_values)
    merged = [
        torch.cat(
            [elements(x, one.shape[0], exact) for x, one in zip(part, of_values, strict=True)]
        )
        for part in parts
    ]
    return torch.cat(lengths)[merged_order(examples)], *(one[order] for one in merged)


@operator(
    "MergeDenseFeatureTensors",
    types={"values": VALUES, "mask": BOOL},
    rearranges={2: 0},
    effects=("values",),
)
def merge_dense_feature_tensors(
    values: Tensor, mask: Tensor, *, feature_ids: list[int] | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """(values (examples, features), mask) -> lengths, keys, values."""
    require(values.dim() == 2, "the values have two dimensions", values)
    require(mask.shape == values.shape, "the mask has the sizes of the values", mask, values)
    keys = _keys(feature_ids, values.shape[1], mask)
    return mask.sum(1, dtype=torch.int32), keys.expand(values.shape)[mask], values[mask]


def _masks(given: Sequence[Tensor]) -> list[Tensor]:
    masks = [mask.reshape(-1) for mask in given]
    require_same_examples(masks)
    return masks


def _single(
    masks: list[Tensor], feature_ids: list[int] | None
) -> tuple[Tensor, Tensor, list[Tensor], Tensor]:
    """Return the lengths and keys of features, the examples of each input, and their order."""
    keys = _keys(feature_ids, len(masks), masks[0])
    examples = [mask.nonzero().view(-1) for mask in masks]
    order = merged_order(examples)
    numbers = torch.repeat_interleave(keys, torch.stack(masks).sum(1))
    return _count(masks), numbers[order], examples, order


_MERGED: dict[str, tuple[int, tuple[int, ...], int, int]] = {
    "MergeMultiListFeatureTensors": (4, (0, 2), 3, 3),
    "MergeMultiMapFeatureTensors": (5, (0, 2), 4, 4),
    "MergeMultiScalarFeatureTensors": (3, (0,), 2, 2),
    "MergeSingleListFeatureTensors": (3, (0, 2), 1, 3),
    "MergeSingleMapFeatureTensors": (4, (0, 3), 2, 4),
    "MergeSingleScalarFeatureTensors": (2, (1,), 0, 2),
}


def _merged_gradient(maker: GradientMaker) -> None:
    count, needed, wanted, given = _MERGED[maker.op.type]
    features = range(0, len(maker.op.input), count)
    maker.add(
        maker.op.type + "Gradient",
        [*(maker.I(at + i) for at in features for i in needed), maker.GO(given)],
        [maker.GI(at + wanted) for at in features],
    )


_merge = functools.partial(operator, effects=("values",), gradient=_merged_gradient)


@_merge(
    "MergeSingleScalarFeatureTensors",
    types={"features": [VALUES, BOOL]},
    inputs="2n",
    rearranges={2: 0},
)
def merge_single_scalar_feature_tensors(
    *features: Tensor, feature_ids: list[int] | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Features: values, mask. Outputs: lengths, keys, values."""
    masks = _masks(features[1::2])
    lengths, keys, _, order = _single(masks, feature_ids)
    values = [
        elements(x, mask.shape[0], exact=True)[mask]
        for x, mask in zip(features[::2], masks, strict=True)
    ]
    return lengths, keys, torch.cat(values)[order]


def _single_lengths(given: Sequence[Tensor], masks: list[Tensor]) -> list[Tensor]:
    """Return the lengths of the features that the examples have."""
    lengths = [flat_lengths(one) for one in given]
    require_same_examples([*masks, *lengths])
    return [one[mask] for one, mask in zip(lengths, masks, strict=True)]


@_merge(
    "MergeSingleListFeatureTensors",
    types={"features": [INT32, VALUES, BOOL]},
    inputs="3n",
    outputs=4,
    rearranges={3: 1},
)
@_merge(
    "MergeSingleMapFeatureTensors",
    types={"features": [INT32, VALUES, VALUES, BOOL]},
    inputs="4n",
    outputs=5,
    rearranges={3: 1, 4: 2},
)
def merge_single_feature_tensors(
    *features: Tensor, feature_ids: list[int] | None = None, kind: OperatorType
) -> tuple[Tensor, ...]:
    """Features: lengths, for maps keys, values, mask.

    Outputs: lengths, keys, then lengths, keys of maps, and values of the lists or maps.
    """
    n = _MERGED[kind][0]
    masks = _masks(features[n - 1 :: n])
    lengths = _single_lengths(features[::n], masks)
    count, keys, examples, _ = _single(masks, feature_ids)
    parts = (features[i::n] for i in range(1, n - 1))
    return count, keys, *_merged_values(examples, lengths, *parts, exact=False)


def _multi(
    lengths: Sequence[Tensor], keys: Sequence[Tensor]
) -> tuple[Tensor, Tensor, list[Tensor], Tensor]:
    """Return the merged lengths and keys, the examples of each input, and their order."""
    counts = [flat_lengths(one) for one in lengths]
    require_same_examples(counts)
    examples = [segment_ids(one) for one in counts]
    for one, names in zip(examples, keys, strict=True):
        require(one.shape[0] == names.numel(), f"there are {one.shape[0]} keys", names)
    order = merged_order(examples)
    return _count(counts), torch.cat([one.reshape(-1) for one in keys])[order], examples, order


@_merge(
    "MergeMultiScalarFeatureTensors",
    types={"features": [INT32, INT64, VALUES]},
    inputs="3n",
    rearranges={2: 2},
)
def merge_multi_scalar_feature_tensors(*features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Features: lengths, keys and values. Outputs: the same, merged."""
    count, keys, examples, order = _multi(features[::3], features[1::3])
    values = [
        elements(x, one.shape[0], exact=False)
        for x, one in zip(features[2::3], examples, strict=True)
    ]
    return count, keys, torch.cat(values)[order]


@_merge(
    "MergeMultiListFeatureTensors",
    types={"features": [INT32, INT64, INT32, VALUES]},
    inputs="4n",
    outputs=4,
    rearranges={3: 3},
)
@_merge(
    "MergeMultiMapFeatureTensors",
    types={"features": [INT32, INT64, INT32, VALUES, VALUES]},
    inputs="5n",
    outputs=5,
    rearranges={3: 3, 4: 4},
)
def merge_multi_feature_tensors(*features: Tensor, kind: OperatorType) -> tuple[Tensor, ...]:
    """Features: lengths, keys, lengths of lists or maps, keys of maps, values.

    Outputs: the same, merged.
    """
    n = _MERGED[kind][0]
    count, keys, examples, _ = _multi(features[::n], features[1::n])
    lengths = [flat_lengths(one) for one in features[2::n]]
    for one, counts in zip(examples, lengths, strict=True):
        require(one.shape[0] == counts.shape[0], f"there are {one.shape[0]} features", counts)
    parts = (features[i::n] for i in range(3, n))
    return count, keys, *_merged_values(examples, lengths, *parts, exact=True)


def _apart(examples: list[Tensor], merged: Tensor, outputs: int) -> list[Tensor]:
    """Return the merged gradients in the order of the inputs, as one tensor per input."""
    require(outputs == len(examples), "there is one output per feature", outputs, len(examples))
    kinds = (torch.int32, torch.int64, torch.float32, torch.float64, torch.bool)
    require(merged.dtype in kinds, "gradients are numbers, bool or strings", merged.dtype)
    order = merged_order(examples)
    given = elements(merged, order.shape[0], exact=False)
    apart = given.new_zeros(order.shape[0]).index_copy(0, order, given)
    return list(torch.split(apart, [one.shape[0] for one in examples]))


def _flat_lengths(given: Sequence[Tensor]) -> list[Tensor]:
    for one in given:
        require(one.dtype == torch.int32, "lengths are int32", one.dtype)
    lengths = [flat_lengths(one) for one in given]
    require_same_examples(lengths)
    return lengths


def _require_masks(given: Sequence[Tensor]) -> None:
    for one in given:
        require(one.dtype == torch.bool, "masks are bool", one.dtype)


@operator("MergeSingleScalarFeatureTensorsGradient", types=None, inputs="2-*", effects=("values",))
def merge_single_scalar_feature_tensors_gradient(
    *masks_and_gradient: Tensor, outputs: OutputCount
) -> list[Tensor]:
    """Inputs: masks, gradient. 0 for examples without the feature."""
    *masks, merged = masks_and_gradient
    _require_masks(masks)
    require_same_examples([mask.reshape(-1) for mask in masks])
    pieces = _apart([mask.reshape(-1).nonzero().view(-1) for mask in masks], merged, outputs)
    return [
        piece.new_zeros(mask.shape).masked_scatter(mask, piece)
        for mask, piece in zip(masks, pieces, strict=True)
    ]


@operator("MergeSingleListFeatureTensorsGradient", types=None, inputs="2n+1", effects=("values",))
@operator("MergeSingleMapFeatureTensorsGradient", types=None, inputs="2n+1", effects=("values",))
def merge_single_list_feature_tensors_gradient(
    *features_and_gradient: Tensor, outputs: OutputCount
) -> list[Tensor]:
    """Features: lengths and mask."""
    *features, merged = features_and_gradient
    _require_masks(features[1::2])
    masks = [mask.reshape(-1) for mask in features[1::2]]
    lengths = _flat_lengths(features[::2])
    require_same_examples([*lengths, *masks])
    examples = [segment_ids(one * mask) for one, mask in zip(lengths, masks, strict=True)]
    return _apart(examples, merged, outputs)


@operator("MergeMultiScalarFeatureTensorsGradient", types=None, inputs="2-*", effects=("values",))
def merge_multi_scalar_feature_tensors_gradient(
    *lengths_and_gradient: Tensor, outputs: OutputCount
) -> list[Tensor]:
    """Inputs: the lengths of each feature, the gradient."""
    *lengths, merged = lengths_and_gradient
    return _apart([segment_ids(one) for one in _flat_lengths(lengths)], merged, outputs)


@operator("MergeMultiListFeatureTensorsGradient", types=None, inputs="2n+1", effects=("values",))
@operator("MergeMultiMapFeatureTensorsGradient", types=None, inputs="2n+1", effects=("values",))
def merge_multi_list_feature_tensors_gradient(
    *features_and_gradient: Tensor, outputs: OutputCount
) -> list[Tensor]:
    """Features: lengths of the features and of their values."""
    *features, merged = features_and_gradient
    lengths = _flat_lengths(features[::2])
    examples = []
    for one, given in zip(lengths, features[1::2], strict=True):
        require(given.dtype == torch.int32, "lengths are int32", given.dtype)
        inner, ids = flat_lengths(given), segment_ids(one)
        require(ids.shape[0] == inner.shape[0], f"there are {ids.shape[0]} features", inner)
        examples.append(torch.repeat_interleave(ids, inner.long()))
    return _apart(examples, merged, outputs)
