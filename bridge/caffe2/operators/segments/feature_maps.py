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

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import OperatorType, OutputCount, operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base.checks import BOOL, INT32, INT64, NUMBERS_AND_BOOL, require
from bridge.caffe2.operators.base.rows_and_segments import check_lengths, segment_ids

VALUES = (*NUMBERS_AND_BOOL, c10.string)


def _order(examples: Sequence[Tensor]) -> Tensor:
    """Return the order in which the concatenated items of all inputs are merged."""
    return torch.sort(torch.cat(list(examples)), stable=True).indices


def _flat_lengths(given: Sequence[Tensor]) -> list[Tensor]:
    """Return lengths in one dimension each. Raises EnforceNotMet: negative, or not int32."""
    for one in given:
        require(one.dtype == torch.int32, "lengths are int32", one.dtype)
        check_lengths(one.reshape(-1))
    return [one.reshape(-1) for one in given]


def _masks(given: Sequence[Tensor]) -> list[Tensor]:
    for one in given:
        require(one.dtype == torch.bool, "masks are bool", one.dtype)
    masks = [one.reshape(-1) for one in given]
    _require_same_examples(masks)
    return masks


def _require_same_examples(per_example: Sequence[Tensor]) -> None:
    found = {one.shape[0] for one in per_example}
    require(len(found) == 1, "all features have the same number of examples", sorted(found))


def _elements(values: Tensor, n: int, exact: bool) -> Tensor:
    """Return the first `n` elements of the values.

    Raises EnforceNotMet: there are fewer, or more if `exact`.
    """
    taken = values.reshape(-1)
    count = taken.shape[0]
    require(
        count == n or (count > n and not exact), f"there are {n} elements, as lengths say", values
    )
    return taken[:n]


def _per_value(examples: Sequence[Tensor], lengths: Sequence[Tensor]) -> list[Tensor]:
    """Return the example of each value, from those of features and their numbers of values."""
    for one, counts in zip(examples, lengths, strict=True):
        require(one.shape[0] == counts.shape[0], f"there are {one.shape[0]} features", counts)
    return [
        torch.repeat_interleave(one, n.long()) for one, n in zip(examples, lengths, strict=True)
    ]


def _merged(examples: list[Tensor], values: Sequence[Tensor], exact: bool) -> Tensor:
    """Return the merged values of all inputs; `examples` are those of the values."""
    pairs = zip(values, examples, strict=True)
    found = [_elements(x, one.shape[0], exact) for x, one in pairs]
    return torch.cat(found)[_order(examples)]


def _keys(feature_ids: list[int] | None, n: int, mask: Tensor) -> Tensor:
    ids = feature_ids or []
    require(len(ids) >= n, f"there are feature_ids for {n} features", ids)
    return torch.tensor(ids[:n], dtype=torch.int64, device=mask.device)


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


class _Kind(NamedTuple):
    """The inputs of a kind of features.

    `types`: of the inputs of one feature. `needed`: those that the gradient reads; it is that of
    input `wanted`, from that of output `given`. `rearranges`: as in `operator`.
    """

    types: list[Any]
    needed: tuple[int, ...]
    wanted: int
    given: int
    rearranges: dict[int, int]


# fmt: off
_KINDS = {
    "MultiList": _Kind([INT32, INT64, INT32, VALUES], (0, 2), 3, 3, {3: 3}),
    "MultiMap": _Kind([INT32, INT64, INT32, VALUES, VALUES], (0, 2), 4, 4, {3: 3, 4: 4}),
    "MultiScalar": _Kind([INT32, INT64, VALUES], (0,), 2, 2, {2: 2}),
    "SingleList": _Kind([INT32, VALUES, BOOL], (0, 2), 1, 3, {3: 1}),
    "SingleMap": _Kind([INT32, VALUES, VALUES, BOOL], (0, 3), 2, 4, {3: 1, 4: 2}),
    "SingleScalar": _Kind([VALUES, BOOL], (1,), 0, 2, {2: 0}),
}
# fmt: on


def _kind_of(op_type: str) -> str:
    return op_type.removeprefix("Merge").partition("FeatureTensors")[0]


def _merged_gradient(maker: GradientMaker) -> None:
    kind = _KINDS[_kind_of(maker.op.type)]
    features = range(0, len(maker.op.input), len(kind.types))
    maker.add(
        maker.op.type + "Gradient",
        [*(maker.I(at + i) for at in features for i in kind.needed), maker.GO(kind.given)],
        [maker.GI(at + kind.wanted) for at in features],
    )


def _merge_single(
    *features: Tensor, feature_ids: list[int] | None = None, kind: OperatorType
) -> tuple[Tensor, ...]:
    """Features: values, mask; of lists and maps lengths, for maps keys, values, mask.

    Outputs: lengths, keys, then lengths, keys of maps, and values of the lists or maps.
    """
    n = len(_KINDS[_kind_of(kind)].types)
    masks = _masks(features[n - 1 :: n])
    examples = [mask.nonzero().view(-1) for mask in masks]
    keys = _keys(feature_ids, len(masks), masks[0])
    numbers = torch.repeat_interleave(keys, torch.stack(masks).sum(1))
    merged = torch.stack(masks).sum(0, dtype=torch.int32), numbers[_order(examples)]
    pairs = zip(features[::n], masks, strict=True)
    if n == 2:
        values = [_elements(x, mask.shape[0], exact=True)[mask] for x, mask in pairs]
        return *merged, _merged(examples, values, exact=True)
    lengths = _flat_lengths(features[::n])
    _require_same_examples([*masks, *lengths])
    lengths = [one[mask] for one, mask in zip(lengths, masks, strict=True)]
    each = _per_value(examples, lengths)
    parts = [_merged(each, features[i::n], exact=False) for i in range(1, n - 1)]
    return *merged, torch.cat(lengths)[_order(examples)], *parts


def _merge_multi(*features: Tensor, kind: OperatorType) -> tuple[Tensor, ...]:
    """Features: lengths, keys, values; of lists and maps lengths of them, keys of maps, values.

    Outputs: the same, merged.
    """
    n = len(_KINDS[_kind_of(kind)].types)
    counts, keys = _flat_lengths(features[::n]), features[1::n]
    _require_same_examples(counts)
    examples = [segment_ids(one) for one in counts]
    for one, names in zip(examples, keys, strict=True):
        require(one.shape[0] == names.numel(), f"there are {one.shape[0]} keys", names)
    count = torch.stack(counts).sum(0, dtype=torch.int32)
    merged = count, _merged(examples, keys, exact=True)
    if n == 3:
        return *merged, _merged(examples, features[2::n], exact=False)
    lengths = _flat_lengths(features[2::n])
    each = _per_value(examples, lengths)
    parts = [_merged(each, features[i::n], exact=True) for i in range(3, n)]
    return *merged, torch.cat(lengths)[_order(examples)], *parts


def _gradient(
    *features_and_gradient: Tensor, kind: OperatorType, outputs: OutputCount
) -> list[Tensor]:
    """Features: mask, or lengths, or lengths and mask, or lengths of the features and of values.

    The gradients of the values, each in the order of its input; 0 for examples without the feature.
    """
    *features, merged = features_and_gradient
    name = _kind_of(kind)
    masks: list[Tensor] = []
    if name == "SingleScalar":
        masks = _masks(features)
        examples = [mask.nonzero().view(-1) for mask in masks]
    elif name == "MultiScalar":
        lengths = _flat_lengths(features)
        _require_same_examples(lengths)
        examples = [segment_ids(one) for one in lengths]
    else:
        lengths = _flat_lengths(features[::2])
        others = _masks(features[1::2]) if name.startswith("Single") else []
        _require_same_examples([*lengths, *others])
        if others:
            examples = [segment_ids(one * mask) for one, mask in zip(lengths, others, strict=True)]
        else:
            counts = _flat_lengths(features[1::2])
            examples = _per_value([segment_ids(one) for one in lengths], counts)
    require(outputs == len(examples), "there is one output per feature", outputs, len(examples))
    kinds = (torch.int32, torch.int64, torch.float32, torch.float64, torch.bool)
    require(merged.dtype in kinds, "gradients are numbers, bool or strings", merged.dtype)
    order = _order(examples)
    given = _elements(merged, order.shape[0], exact=False)
    apart = given.new_zeros(order.shape[0]).index_copy(0, order, given)
    pieces = list(torch.split(apart, [one.shape[0] for one in examples]))
    if not masks:
        return pieces
    return [
        piece.new_zeros(mask.shape).masked_scatter(mask, piece)
        for mask, piece in zip(features, pieces, strict=True)
    ]


for _name, _kind in _KINDS.items():
    _size = len(_kind.types)
    operator(
        f"Merge{_name}FeatureTensors",
        types={"features": _kind.types},
        inputs=f"{_size}n",
        outputs=3 if "Scalar" in _name else _size + (_name[0] == "S"),
        rearranges=_kind.rearranges,
        effects=("values",),
        gradient=_merged_gradient,
    )(_merge_single if _name.startswith("Single") else _merge_multi)
    operator(
        f"Merge{_name}FeatureTensorsGradient",
        types=None,
        inputs="2-*" if "Scalar" in _name else "2n+1",
        effects=("values",),
    )(_gradient)
