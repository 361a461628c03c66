# SPDX-License-Identifier: Apache-2.0
"""Gradients of the feature mergers: the merged gradients split into those of the inputs.

The last input is the gradient of the merged values; the inputs before it determine the example of
each value. There is one output per feature. Follows caffe2/operators/feature_maps_ops.h,
PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import OutputCount, operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.rows_and_segments import segment_ids
from bridge.caffe2.operators.segments.feature_maps import (
    elements,
    flat_lengths,
    merged_order,
    require_same_examples,
)


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
