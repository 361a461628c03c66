# SPDX-License-Identifier: Apache-2.0
"""Gradients of the feature mergers: the merged gradients split into those of the inputs.

The last input is the gradient of the merged values; the inputs before it determine the example of
each value. Follows caffe2/operators/feature_maps_ops.h, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import segment_ids
from bridge.caffe2.operators.base.torch_operator import BOOL, enforce
from bridge.caffe2.operators.segments.feature_maps import FeatureMerger, merged_order

__all__: list[str] = []


class _Unmerge(FeatureMerger):
    """The merged gradients in the order of the inputs, one output per input."""

    def move(self) -> None:
        last = self.InputSize() - 1
        dtype = self.Input(last).dtype()
        examples = [self.examples(place) for place in self.inputs()]
        enforce(self.OutputSize() == len(examples), "There must be one output per input.")
        order = merged_order(examples)
        merged = self.elements(last, len(order), dtype)
        apart = merged.new_empty(len(order)).index_copy_(0, order, merged)
        pieces = apart.split([len(one) for one in examples])
        for o, piece in enumerate(pieces):
            self.store(o, self.output_of(o, piece), dtype)

    def inputs(self) -> range:
        """Return the index of the first part of each input; the last input is the gradient."""
        return range(0, self.InputSize() - 1, self.parts)

    def examples(self, place: int) -> torch.Tensor:
        """Return the example of each value of the input whose first part is `place`."""
        raise NotImplementedError

    def output_of(self, o: int, piece: torch.Tensor) -> torch.Tensor:
        """Return output `o`, given the gradients of its values."""
        return piece.clone()


@register_operator("MergeSingleScalarFeatureTensorsGradient")
class MergeSingleScalarFeatureTensorsGradient(_Unmerge):
    """Inputs: masks, gradient; 0 for examples without the feature."""

    def examples(self, place: int) -> torch.Tensor:
        """Return the examples that have the feature."""
        enforce(
            self.Input(place).numel() == self.Input(0).numel(),
            "All masks must have the same number of examples.",
        )
        return self.x(place, BOOL).reshape(-1).nonzero().view(-1)

    def output_of(self, o: int, piece: torch.Tensor) -> torch.Tensor:
        """Return one gradient per example."""
        mask = self.x(o, BOOL)
        blank = 0
        if self.has_strings(self.InputSize() - 1):
            blank = len(self._items)
            self._items.append(b"")
        return piece.new_full(mask.shape, blank).masked_scatter_(mask, piece)


class _SingleValues(_Unmerge):
    """Inputs: lengths and mask of each feature, the gradient."""

    parts = 2

    def examples(self, place: int) -> torch.Tensor:
        """Return the examples of values."""
        lengths, mask = self.counts(place), self.x(place + 1, BOOL).reshape(-1)
        self.example_count([lengths, mask, self.counts(0)])
        return segment_ids(lengths * mask)


@register_operator("MergeSingleListFeatureTensorsGradient")
class MergeSingleListFeatureTensorsGradient(_SingleValues):
    """Inputs: lengths and mask of each feature, the gradient."""


@register_operator("MergeSingleMapFeatureTensorsGradient")
class MergeSingleMapFeatureTensorsGradient(_SingleValues):
    """Inputs: lengths and mask of each feature, the gradient."""


@register_operator("MergeMultiScalarFeatureTensorsGradient")
class MergeMultiScalarFeatureTensorsGradient(_Unmerge):
    """Inputs: the lengths of each input, the gradient."""

    def examples(self, place: int) -> torch.Tensor:
        """Return the examples of features."""
        lengths = self.counts(place)
        self.example_count([lengths, self.counts(0)])
        return segment_ids(lengths)


class _MultiValues(_Unmerge):
    """Inputs: lengths of the features and of their values of each input, the gradient."""

    parts = 2

    def examples(self, place: int) -> torch.Tensor:
        """Return the examples of values."""
        lengths, inner = self.counts(place), self.counts(place + 1)
        self.example_count([lengths, self.counts(0)])
        features = segment_ids(lengths)
        enforce(
            len(features) == len(inner),
            f"The lengths add up to {len(features)}, but there are {len(inner)} features.",
        )
        return torch.repeat_interleave(features, inner.long())


@register_operator("MergeMultiListFeatureTensorsGradient")
class MergeMultiListFeatureTensorsGradient(_MultiValues):
    """Inputs: lengths of features and of their values, the gradient."""


@register_operator("MergeMultiMapFeatureTensorsGradient")
class MergeMultiMapFeatureTensorsGradient(_MultiValues):
    """Inputs: lengths of features and of their values, the gradient."""
