# SPDX-License-Identifier: Apache-2.0
"""Sizes and types of outputs that Caffe2 knows by a rule, and that trying values does not show.

Follows the TensorInferenceFunctions of PyTorch 1.8.1.
"""

from __future__ import annotations

from math import prod

from bridge import c10
from bridge.annotation import Any, Array
from bridge.c10 import TypeMeta
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.execution.declaration import Arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from bridge.caffe2.execution.definition import Definition

    # The sizes and type of an input or output.
    Described = tuple[list[int], TypeMeta]
    # The same with the values, where they are known and few.
    Known = tuple[list[int], TypeMeta, Array | None]

# Types whose outputs have sizes that only values tell; a run on other values tells nothing.
_BY_VALUES = frozenset(("Expand", "Partition", "Range"))


def depends_on_values(definition: Definition) -> bool:
    """Return whether the sizes of the outputs depend on the values of inputs."""
    lengths = definition.type == "Split" and len(definition.inputs) > 1
    return lengths or definition.type in _BY_VALUES


def infer_by_rule(definition: Definition, known: dict[str, Known]) -> dict[str, Known]:
    """Return the outputs of an operator that a rule describes by name, without values.

    known: inputs by name. Outputs that depend on an input that is not known are left out.
    """
    rule = _RULES.get(definition.type)
    if rule is None:
        return {}
    inputs = [known[name][:2] if name in known else None for name in definition.inputs]
    try:
        outputs = rule(Arguments(definition), inputs)
    except IndexError:  # fewer inputs or dimensions than the operator takes
        return {}
    return {
        name: (*found, None)
        for name, found in zip(definition.outputs, outputs, strict=False)
        if found is not None
    }


def _batch_bucket_one_hot(_: Arguments, inputs: list[Any]) -> list[Described | None]:
    x, lengths, boundaries = inputs
    if None in inputs:
        return []
    return [([x[0][0], lengths[0][0] + boundaries[0][0]], c10.float32)]


def _concat(arguments: Arguments, inputs: list[Any]) -> list[Described | None]:
    # Caffe2 expects a new axis here, which its operator does not add unless the axis is given.
    if arguments.has("axis") or not arguments.single("add_axis", 0) or None in inputs:
        return []
    sizes, kind = inputs[0]
    axis = len(sizes) - 1 if arguments.single("order", "NCHW") == "NHWC" else 1
    return [([*sizes[:axis], len(inputs), *sizes[axis:]], kind), ([len(inputs)], c10.int32)]


def _constant_fill(arguments: Arguments, inputs: list[Any]) -> list[Described | None]:
    # Of float16, which Caffe2 knows here, and its operator leaves to Float16ConstantFill.
    if inputs or arguments.single("dtype", 1) != caffe2_pb2().TensorProto.FLOAT16:
        return []
    return [(arguments.repeated("shape", (0,)), c10.float16)]


def _gather_ranges(_: Arguments, inputs: list[Any]) -> list[Described | None]:
    data, ranges = inputs
    everything = None if data is None else ([prod(data[0])], data[1])
    return [everything, None if ranges is None else ([ranges[0][0]], ranges[1])]


def _half_to_float(_: Arguments, inputs: list[Any]) -> list[Described | None]:
    return [None if inputs[0] is None else (inputs[0][0], c10.float32)]


def _like_input(_: Arguments, inputs: list[Any]) -> list[Described | None]:
    return [inputs[0]]


def _last_n_window(arguments: Arguments, inputs: list[Any]) -> list[Described | None]:
    rows = inputs[2]
    if rows is None:
        return []
    sizes = [arguments.single("num_to_collect", -1), *rows[0][1:]]
    return [(sizes, rows[1]), inputs[1]]


def _learning_rate(_: Arguments, inputs: list[Any]) -> list[Described | None]:
    return [([1], c10.float32)]


def _reshape(_: Arguments, inputs: list[Any]) -> list[Described | None]:
    return [None, None if inputs[0] is None else ([len(inputs[0][0])], c10.int64)]


def _sparse_to_dense_mask(arguments: Arguments, inputs: list[Any]) -> list[Described | None]:
    if None in inputs[2:]:
        return []
    mask = len(arguments.repeated("mask", (0,)))
    shape = [*inputs[3][0][:1], mask] if len(inputs) > 3 else [mask]
    sizes, kind = inputs[2]
    return [([*shape, *sizes], kind), (shape, c10.bool)]


def _top_k(arguments: Arguments, inputs: list[Any]) -> list[Described | None]:
    # The indices are int64; Caffe2 says int32.
    if inputs[0] is None:
        return []
    sizes, kind = inputs[0]
    found = [*sizes[:-1], arguments.single("k", -1)]
    return [(found, kind), (found, c10.int32), ([prod(found)], c10.int32)]


def _unique(_: Arguments, inputs: list[Any]) -> list[Described | None]:
    return [None, None if inputs[0] is None else (inputs[0][0], c10.int32)]


_RULES: dict[str, Callable[[Arguments, list[Any]], list[Described | None]]] = {
    "BatchBucketOneHot": _batch_bucket_one_hot,
    "Concat": _concat,
    "ConstantFill": _constant_fill,
    "GatherRanges": _gather_ranges,
    "HalfToFloat": _half_to_float,
    "IndexHash": _like_input,
    "LastNWindowCollector": _last_n_window,
    "LearningRate": _learning_rate,
    "Percentile": _like_input,
    "Reshape": _reshape,
    "SparseToDenseMask": _sparse_to_dense_mask,
    "TopK": _top_k,
    "Unique": _unique,
}
