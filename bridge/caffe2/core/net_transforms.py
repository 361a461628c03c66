# SPDX-License-Identifier: Apache-2.0
"""Transforms of nets, by Caffe2's names: each returns a net that computes the same.

Follows caffe2/opt and caffe2/transforms, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.annotation import Any
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


# The transforms of `workspace.C.run_transform`, and of `workspace.ApplyTransform`.
GRAPH_TRANSFORMS: dict[str, Callable[[Any], None]] = {
    "AddNNPACK": lambda net: _to_nnpack(net, "Conv", "ConvRelu"),
    "DeadCodeElim": _remove_dead_code,
    "FuseNNPACKConvRelu": _fuse_conv_relu,
}
REGISTERED_TRANSFORMS: dict[str, Callable[[Any], None]] = {
    "ConvToNNPack": lambda net: _to_nnpack(net, "Conv"),
}
