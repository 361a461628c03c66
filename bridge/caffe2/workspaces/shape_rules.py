# SPDX-License-Identifier: Apache-2.0
"""Sizes and types of outputs that Caffe2 knows by a rule, and that trying values does not show.

Follows the TensorInferenceFunctions of PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.c10 import TypeMeta, float32, int32
from bridge.caffe2.execution.declaration import Arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from bridge.caffe2.execution.definition import Definition
    from bridge.caffe2.workspaces.meta_inference import Known

__all__ = ["infer_by_rule"]

# The sizes and type of an input or output.
Described = tuple[list[int], TypeMeta]


def infer_by_rule(definition: Definition, known: dict[str, Known]) -> dict[str, Known] | None:
    """Return the outputs of an operator by name, without values; None if there is no rule.

    known: inputs by name. Outputs that depend on an input that is not known are left out.
    """
    rule = _RULES.get(definition.type)
    if rule is None:
        return None
    inputs = [known[name][:2] if name in known else None for name in definition.inputs]
    outputs = rule(Arguments(definition), inputs)
    if outputs is None:
        return None
    return {
        name: (*found, None)
        for name, found in zip(definition.outputs, outputs, strict=False)
        if found is not None
    }


def _batch_bucket_one_hot(_: Arguments, inputs: list[Any]) -> list[Described | None]:
    x, lengths, boundaries = inputs
    if None in inputs:
        return []
    return [([x[0][0], lengths[0][0] + boundaries[0][0]], float32)]


def _concat(arguments: Arguments, inputs: list[Any]) -> list[Described | None] | None:
    # Caffe2 expects a new axis here, which its operator does not add unless the axis is given.
    if arguments.has("axis") or not arguments.single("add_axis", 0) or None in inputs:
        return None
    sizes, kind = inputs[0]
    axis = len(sizes) - 1 if arguments.single("order", "NCHW") == "NHWC" else 1
    return [([*sizes[:axis], len(inputs), *sizes[axis:]], kind), ([len(inputs)], int32)]


def _gather_ranges(_: Arguments, inputs: list[Any]) -> list[Described | None]:
    data, ranges = inputs
    return [data, None if ranges is None else ([ranges[0][0]], int32)]


def _half_to_float(_: Arguments, inputs: list[Any]) -> list[Described | None]:
    return [None if inputs[0] is None else (inputs[0][0], float32)]


def _index_hash(_: Arguments, inputs: list[Any]) -> list[Described | None]:
    return [inputs[0]]


def _last_n_window(arguments: Arguments, inputs: list[Any]) -> list[Described | None]:
    rows = inputs[2]
    if rows is None:
        return []
    sizes = [arguments.single("num_to_collect", -1), *rows[0][1:]]
    return [(sizes, rows[1]), inputs[1]]


def _learning_rate(_: Arguments, inputs: list[Any]) -> list[Described | None]:
    return [([1], float32)]


_RULES: dict[str, Callable[[Arguments, list[Any]], list[Described | None] | None]] = {
    "BatchBucketOneHot": _batch_bucket_one_hot,
    "Concat": _concat,
    "GatherRanges": _gather_ranges,
    "HalfToFloat": _half_to_float,
    "IndexHash": _index_hash,
    "LastNWindowCollector": _last_n_window,
    "LearningRate": _learning_rate,
}
