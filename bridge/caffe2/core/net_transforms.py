# SPDX-License-Identifier: Apache-2.0
"""Transforms of nets, by Caffe2's names: each returns a net that computes the same.

Follows caffe2/opt and caffe2/transforms, PyTorch 1.8.1. Unlike there, results of convolutions that
are fused on MKL-DNN keep their names.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.annotation import Any
from bridge.caffe2.base.device_option import on_mkldnn
from bridge.caffe2.core.cloning import blob_names, rename
from bridge.caffe2.definitions.argument_values import MakeArgument


def only_reader(net: Any, position: int) -> int | None:
    """Return the position of the operator that reads the first output of another.

    None unless exactly one reads that value, once, and the net does not return it.
    """
    name = net.op[position].output[0]
    found: list[int] = []
    for i in range(position + 1, len(net.op)):
        found += [i] * list(net.op[i].input).count(name)
        if name in net.op[i].output:
            break
    else:
        if name in net.external_output:
            return None
    return found[0] if len(found) == 1 else None


def new_blob_name(net: Any, wanted: str) -> str:
    """Return `wanted`, or that with a number that makes it a name which no blob of the net has."""
    used = blob_names(net)
    name, number = wanted, 0
    while name in used:
        name, number = f"{wanted}_{number}", number + 1
    return name


def _to_nnpack(net: Any, *types: str) -> None:
    """Set the engine of operators of these types to NNPACK, which is torch's own choice here."""
    for operator in net.op:
        if operator.type in types:
            operator.engine = "NNPACK"


def _fuse_conv_relu(net: Any) -> None:
    """Make each Relu that alone reads a convolution of engine NNPACK part of it."""
    position = 0
    while position < len(net.op):
        conv = net.op[position]
        if conv.type == "Conv" and conv.engine == "NNPACK":
            reader = only_reader(net, position)
            if reader is not None and net.op[reader].type == "Relu":
                _fuse(net, position, reader)
        position += 1


def _fuse(net: Any, position: int, reader: int) -> None:
    """Remove a Relu at `reader`, and have the convolution at `position` compute it."""
    conv, old = net.op[position], net.op[reader].output[0]
    result = conv.output[0]
    last = next((i for i in range(reader + 1, len(net.op)) if old in net.op[i].output), len(net.op))
    returned = last == len(net.op) and old in net.external_output
    if old != result:
        # The name of the Relu's output, unless others use it meanwhile.
        between = [name for op in net.op[position:reader] for name in (*op.input, *op.output)]
        if old not in between:
            result = old
        elif returned:
            return
        else:
            result = new_blob_name(net, f"{old}_fused")
            for i in range(reader + 1, min(last + 1, len(net.op))):
                rename(net.op[i].input, {old: result})
    conv.output[0] = result
    conv.arg.append(MakeArgument("activation", "Relu"))
    del net.op[reader]


def _remove_dead_code(net: Any) -> None:
    """Remove operators whose outputs are not read and not returned by the net."""
    needed = set(net.external_output)
    kept = []
    for operator in reversed(net.op):
        if not operator.output or needed.intersection(operator.output):
            needed.difference_update(set(operator.output) - set(operator.input))
            needed.update(operator.input)
            kept.append(operator)
    operators = [type(operator).FromString(operator.SerializeToString()) for operator in kept]
    del net.op[:]
    net.op.extend(reversed(operators))


_RELU, _SUM, _SUM_RELU = 1, 2, 3  # values of the argument `fusion_type`


def fuse_convolutions(net: Any) -> None:
    """Make the Sum or Add of a convolution, and the Relu of either, part of the convolution.

    The value added is overwritten by the result, so nothing else may read it.
    """
    position = 0
    while position < len(net.op):
        conv = net.op[position]
        is_conv = conv.type == "Conv" and on_mkldnn(conv.device_option)
        if not (is_conv and _fuse_sum(net, position)):
            if is_conv:
                _fuse_relu(net, position)
            position += 1


def _reader(net: Any, position: int, *types: str) -> int | None:
    """Return the position of the only reader of a value, if it is of these types, on MKL-DNN."""
    reader = only_reader(net, position)
    if (
        reader is None
        or net.op[reader].type not in types
        or not on_mkldnn(net.op[reader].device_option)
    ):
        return None
    return reader


def _fuse_relu(net: Any, position: int) -> None:
    reader = _reader(net, position, "Relu")
    if reader is None:
        return
    conv, name = net.op[position], net.op[reader].output[0]
    if name == conv.output[0] or not _is_used(net, name, position, reader):
        _become(conv, _RELU, list(conv.input), name)
        del net.op[reader]


def _fuse_sum(net: Any, position: int) -> bool:
    """Fuse a convolution into the sum of its result, at the sum's position; return whether."""
    reader = _reader(net, position, "Sum", "Add")
    if reader is None or len(net.op[reader].input) != 2 or net.op[reader].arg:
        return False
    conv, total = net.op[position], net.op[reader]
    other = next(name for name in total.input if name != conv.output[0])
    if any(set(conv.input) & set(net.op[i].output) for i in range(position + 1, reader)):
        return False
    relu = _reader(net, reader, "Relu")
    last, name, kind = reader, total.output[0], _SUM
    if relu is not None and not _is_used(net, net.op[relu].output[0], reader + 1, relu):
        last, name, kind = relu, net.op[relu].output[0], _SUM_RELU
    if name in conv.input:
        return False
    if name != other:
        made = next((i for i in reversed(range(reader)) if other in net.op[i].output), None)
        if made is None or other in net.op[made].input or _is_used(net, name, made, reader):
            return False
        if list(net.op[made].output).index(other) or only_reader(net, made) != reader:
            return False
        net.op[made].output[0] = name
    _become(total, kind, [*conv.input, name], name)
    total.arg.extend(conv.arg)
    if last != reader:
        del net.op[last]
    del net.op[position]
    return True


def _is_used(net: Any, name: str, begin: int, end: int) -> bool:
    """Return whether one of the operators [begin, end) reads or writes a blob."""
    return any(name in (*op.input, *op.output) for op in net.op[begin:end])


def _become(operator: Any, kind: int, inputs: list[str], output: str) -> None:
    operator.type = "ConvFusion"
    operator.arg.append(MakeArgument("fusion_type", kind))
    del operator.input[:]
    operator.input.extend(inputs)
    operator.output[0] = output


# The transforms of `workspace.C.run_transform`, and of `workspace.ApplyTransform`.
GRAPH_TRANSFORMS: dict[str, Callable[[Any], None]] = {
    "AddNNPACK": lambda net: _to_nnpack(net, "Conv", "ConvRelu"),
    "DeadCodeElim": _remove_dead_code,
    "FuseNNPACKConvRelu": _fuse_conv_relu,
}
REGISTERED_TRANSFORMS: dict[str, Callable[[Any], None]] = {
    "ConvToNNPack": lambda net: _to_nnpack(net, "Conv"),
}
