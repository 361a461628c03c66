# SPDX-License-Identifier: Apache-2.0
"""Sparse features of several inputs merged into one list of features per example.

A feature is a key and a value, a list of values, or a map of values by keys. A "Single" input is
one feature, with its key in the argument `feature_ids` and a mask of the examples that have it. A
"Multi" input has several features per example, given by lengths. The result has the features of the
first example, input by input, then those of the second, and so on.

Follows caffe2/operators/feature_maps_ops.h, PyTorch 1.8.1, which reads out of bounds where lengths
and elements do not match; here this is an error.
"""

from __future__ import annotations

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.any_type_operator import AnyTypeOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import segment_ids
from bridge.caffe2.operators.base.torch_operator import (
    BOOL,
    INT32,
    INT64,
    NUMBERS_AND_BOOL,
    enforce,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FeatureMerger"]

VALUES = (*NUMBERS_AND_BOOL, c10.string)


def merged_order(examples: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the order in which the concatenated items of all inputs are merged."""
    return torch.sort(torch.cat(list(examples)), stable=True).indices


class FeatureMerger(AnyTypeOperator):
    """An operator on groups of inputs: each feature input consists of `parts` inputs."""

    parts = 1
    exact = False  # whether more elements than the sum of the lengths are an error

    def inputs(self) -> range:
        """Return the index of the first part of each feature input."""
        return range(0, self.InputSize() - self.InputSize() % self.parts, self.parts)

    def counts(self, i: int) -> torch.Tensor:
        """Return the lengths in input `i`, one per example or feature."""
        lengths = self.x(i, INT32).reshape(-1)
        enforce(bool((lengths >= 0).all()), f"Input {i}, the lengths, must not be negative.")
        return lengths

    def elements(self, i: int, numel: int, dtype: TypeMeta) -> torch.Tensor:
        """Return the first `numel` elements of input `i`, which have the type `dtype`.

        Raises EnforceNotMet: it has another type, or fewer elements, or more if `exact`.
        """
        tensor = self.Input(i)
        if tensor.dtype() is not dtype or dtype not in VALUES:
            raise EnforceTypeError(
                f"Input {i} has the type {tensor.dtype()}; {self._definition.type} takes {dtype} "
                f"there, which may be {', '.join(one.name for one in VALUES)}."
            )
        taken = self.load(i).reshape(-1)
        enforce(
            len(taken) == numel or (len(taken) > numel and not self.exact),
            f"Input {i} has {len(taken)} elements, but the lengths add up to {numel}.",
        )
        return taken[:numel]

    def example_count(self, per_example: Sequence[torch.Tensor]) -> int:
        """Return the number of examples. Raises EnforceNotMet: the inputs disagree."""
        found = {len(one) for one in per_example}
        enforce(
            len(found) == 1,
            f"All inputs must have the same number of examples, not {sorted(found)}.",
        )
        return found.pop()

    def store_merged(self, o: int, pieces: list[torch.Tensor], order: torch.Tensor, i: int) -> None:
        """Set output `o` to `pieces`, of the type of input `i`, in that order."""
        self.store(o, torch.cat(pieces)[order], self.Input(i).dtype())

    def store_lengths(self, counts: Sequence[torch.Tensor]) -> None:
        """Set output 0 to the number of features of each example."""
        self.put(0, torch.stack(list(counts)).sum(0, dtype=torch.int32))


class _Values(FeatureMerger):
    """A merger of values, the inputs `value_parts`, by the lengths of features."""

    value_parts: tuple[int, ...] = ()

    def merge_values(
        self, o: int, features: list[torch.Tensor], lengths: list[torch.Tensor]
    ) -> None:
        """Set outputs from `o` on to merged lengths and values.

        `features` are the examples of the features of each input, `lengths` those of their values.
        """
        order = merged_order(features)
        examples = [
            torch.repeat_interleave(one, n.long()) for one, n in zip(features, lengths, strict=True)
        ]
        value_order = merged_order(examples)
        merged = [
            [
                self.elements(place + part, len(one), self.Input(part).dtype())
                for place, one in zip(self.inputs(), examples, strict=True)
            ]
            for part in self.value_parts
        ]
        self.put(o, torch.cat(lengths)[order])
        for k, (part, pieces) in enumerate(zip(self.value_parts, merged, strict=True), o + 1):
            self.store_merged(k, pieces, value_order, part)


class _Single(_Values):
    """A merger of features with masks, the last part, and keys in `feature_ids`."""

    def presence(self) -> list[torch.Tensor]:
        """Return the mask of each input."""
        masks = [self.x(place + self.parts - 1, BOOL).reshape(-1) for place in self.inputs()]
        self.example_count(masks)
        return masks

    def keys(self, n: int) -> torch.Tensor:
        """Return the keys of the `n` inputs."""
        ids = self.GetRepeatedArgument("feature_ids", [0])
        ids = ids if self.HasArgument("feature_ids") else []
        enforce(len(ids) >= n, f"There are {len(ids)} feature_ids, but {n} features.")
        return torch.tensor(ids[:n], dtype=torch.int64)


@register_operator("MergeDenseFeatureTensors")
class MergeDenseFeatureTensors(_Single):
    """Inputs: values (examples, features), a mask of them.

    Outputs: lengths, keys, values.
    """

    def move(self) -> None:
        x, mask = self.Input(0), self.x(1, BOOL)
        enforce(x.dim() == 2, f"Input 0 must have two dimensions, not {x.dim()}.")
        enforce(list(mask.shape) == list(x.sizes()), "The mask must have the sizes of the values.")
        keys = self.keys(x.size(1))
        values = self.elements(0, x.numel(), x.dtype())[mask.reshape(-1)]
        self.put(0, mask.sum(1, dtype=torch.int32))
        self.put(1, keys.expand(x.size(0), -1)[mask])
        self.store(2, values, x.dtype())


@register_operator("MergeSingleScalarFeatureTensors")
class MergeSingleScalarFeatureTensors(_Single):
    """Inputs: values and mask of each feature. Outputs: lengths, keys, values."""

    parts = 2
    exact = True

    def move(self) -> None:
        masks = self.presence()
        keys = self.keys(len(masks))
        order = merged_order([mask.nonzero().view(-1) for mask in masks])
        values = [
            self.elements(place, len(mask), self.Input(0).dtype())[mask]
            for place, mask in zip(self.inputs(), masks, strict=True)
        ]
        self.store_lengths(masks)
        self.put(1, torch.repeat_interleave(keys, torch.stack(masks).sum(1))[order])
        self.store_merged(2, values, order, 0)


@register_operator("MergeSingleListFeatureTensors")
class MergeSingleListFeatureTensors(_Single):
    """Inputs: lengths, values and mask of each feature.

    Outputs: lengths, keys, lengths of the values, values.
    """

    parts = 3
    value_parts: tuple[int, ...] = (1,)

    def move(self) -> None:
        masks = self.presence()
        keys = self.keys(len(masks))
        lengths = [self.counts(place) for place in self.inputs()]
        self.example_count([*masks, *lengths])
        features = [mask.nonzero().view(-1) for mask in masks]
        kept = [one[mask] for one, mask in zip(lengths, masks, strict=True)]
        order = merged_order(features)
        self.merge_values(2, features, kept)
        self.store_lengths(masks)
        self.put(1, torch.repeat_interleave(keys, torch.stack(masks).sum(1))[order])


@register_operator("MergeSingleMapFeatureTensors")
class MergeSingleMapFeatureTensors(MergeSingleListFeatureTensors):
    """Inputs: lengths, keys, values and mask of each feature.

    Outputs: lengths, keys, then lengths, keys and values of the maps.
    """

    parts = 4
    value_parts = (1, 2)


class _Multi(_Values):
    """A merger of inputs with lengths, keys and more parts."""

    def features(self) -> tuple[list[torch.Tensor], list[torch.Tensor], list[torch.Tensor]]:
        """Return the lengths, the examples of features, and the keys of each input."""
        lengths = [self.counts(place) for place in self.inputs()]
        self.example_count(lengths)
        examples = [segment_ids(one) for one in lengths]
        keys = [self.x(place + 1, INT64).reshape(-1) for place in self.inputs()]
        for one, numbers in zip(examples, keys, strict=True):
            enforce(
                len(one) == len(numbers),
                f"The lengths add up to {len(one)}, but there are {len(numbers)} keys.",
            )
        return lengths, examples, keys


@register_operator("MergeMultiScalarFeatureTensors")
class MergeMultiScalarFeatureTensors(_Multi):
    """Inputs: lengths, keys and values of each input. Outputs: the same, merged."""

    parts = 3

    def move(self) -> None:
        lengths, examples, keys = self.features()
        order = merged_order(examples)
        values = [
            self.elements(place + 2, len(one), self.Input(2).dtype())
            for place, one in zip(self.inputs(), examples, strict=True)
        ]
        self.store_lengths(lengths)
        self.put(1, torch.cat(keys)[order])
        self.store_merged(2, values, order, 2)


@register_operator("MergeMultiListFeatureTensors")
class MergeMultiListFeatureTensors(_Multi):
    """Inputs: lengths, keys, lengths of lists, values. Outputs: the same, merged."""

    parts = 4
    value_parts: tuple[int, ...] = (3,)
    exact = True

    def move(self) -> None:
        lengths, examples, keys = self.features()
        inner = [self.counts(place + 2) for place in self.inputs()]
        for one, counts in zip(examples, inner, strict=True):
            enforce(
                len(one) == len(counts),
                f"The lengths add up to {len(one)}, but there are {len(counts)} features.",
            )
        order = merged_order(examples)
        self.merge_values(2, examples, inner)
        self.store_lengths(lengths)
        self.put(1, torch.cat(keys)[order])


@register_operator("MergeMultiMapFeatureTensors")
class MergeMultiMapFeatureTensors(MergeMultiListFeatureTensors):
    """Inputs: lengths, keys, lengths of maps, their keys and values.

    Outputs: the same, merged.
    """

    parts = 5
    value_parts = (3, 4)
