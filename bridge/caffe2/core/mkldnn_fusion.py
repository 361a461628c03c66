# SPDX-License-Identifier: Apache-2.0
"""Convolutions on MKL-DNN that add another blob, and apply Relu, in one operator: ConvFusion.

Follows fuseConvSumForIdeep and fuseActivationForIdeep, caffe2/opt/optimize_ideep.cc, PyTorch 1.8.1.
Unlike there, results keep their names.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.caffe2.base.device_option import on_mkldnn
from bridge.caffe2.core.net_transforms import only_reader
from bridge.caffe2.definitions.argument_values import MakeArgument

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
