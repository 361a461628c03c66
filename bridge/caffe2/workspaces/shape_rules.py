# SPDX-License-Identifier: Apache-2.0
"""Sizes and types of outputs that follow from those of the inputs, though values decide elements.

For operators whose functions read values, and so cannot run without memory. Follows the
TensorInferenceFunctions of caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

import math

from bridge import c10

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bridge.c10 import TypeMeta
    from bridge.caffe2.execution.definition import Definition
    from bridge.caffe2.workspaces.meta_inference import Known

    Output = tuple[list[int], TypeMeta] | None

__all__ = ["by_rule", "depends_on_values"]

# Types whose outputs have sizes that only values tell; a run on other values tells nothing.
_BY_VALUES = frozenset(("Expand", "GatherRanges", "Partition", "Range"))


def depends_on_values(definition: Definition) -> bool:
    """Return whether the sizes of the outputs depend on the values of inputs."""
    lengths = definition.type == "Split" and len(definition.inputs) > 1
    return lengths or definition.type in _BY_VALUES


def by_rule(definition: Definition, known: dict[str, Known]) -> dict[str, Known]:
    """Return the outputs that a rule describes, without values; empty if there is no rule."""
    rule = _RULES.get(definition.type)
    if rule is None:
        return {}
    inputs = [known[name] for name in definition.inputs]
    try:
        found = rule(definition, inputs)
    except (IndexError, KeyError):  # fewer inputs or dimensions than the operator takes
        return {}
    return {
        name: (*output, None)
        for name, output in zip(definition.outputs, found, strict=False)
        if output is not None
    }


def _like_input(definition: Definition, inputs: Sequence[Known]) -> list[Output]:
    return [inputs[0][:2]]


def _batch_bucket_one_hot(definition: Definition, inputs: Sequence[Known]) -> list[Output]:
    sizes, meta, _ = inputs[0]
    return [([sizes[0], inputs[1][0][0] + inputs[2][0][0]], meta)]


def _gather_ranges(definition: Definition, inputs: Sequence[Known]) -> list[Output]:
    """Return the most that the ranges can have: all elements."""
    data, ranges = inputs
    return [([math.prod(data[0])], data[1]), (ranges[0][:1], ranges[1])]


def _sparse_to_dense_mask(definition: Definition, inputs: Sequence[Known]) -> list[Output]:
    mask = len(definition.arguments["mask"]["ints"])
    shape = [*inputs[3][0][:1], mask] if len(inputs) > 3 else [mask]
    sizes, meta, _ = inputs[2]
    return [([*shape, *sizes], meta), (shape, c10.bool)]


def _unique(definition: Definition, inputs: Sequence[Known]) -> list[Output]:
    return [None, (inputs[0][0], c10.int32)]


def _reshape(definition: Definition, inputs: Sequence[Known]) -> list[Output]:
    return [None, ([len(inputs[0][0])], c10.int64)]


_RULES: dict[str, Callable[[Definition, Sequence[Known]], list[Output]]] = {
    "BatchBucketOneHot": _batch_bucket_one_hot,
    "GatherRanges": _gather_ranges,
    "IndexHash": _like_input,
    "Percentile": _like_input,
    "Reshape": _reshape,
    "SparseToDenseMask": _sparse_to_dense_mask,
    "Unique": _unique,
}
