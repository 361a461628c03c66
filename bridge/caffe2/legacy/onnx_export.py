# SPDX-License-Identifier: Apache-2.0
"""export_to_onnx: nodes of ONNX for an operator, as ``caffe2.python.onnx.frontend`` asks.

The nodes are those of opset 9, as that frontend's models are. Follows caffe2/onnx/onnx_exporter.cc,
PyTorch 1.8.1; more operators have their names in ONNX.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.base.messages import as_message
from bridge.caffe2.base.names import DummyName
from bridge.caffe2.definitions.argument_values import ArgsToDict
from bridge.caffe2.legacy.onnx_node import CAFFE2_TYPES, RENAMED

_CALLER = "export_to_onnx"
_ONNX_TYPES = {caffe2: onnx for onnx, caffe2 in CAFFE2_TYPES.items() if onnx != 8}
# Arguments that say how to compute, not what.
_LEFT_OUT = ("cudnn_exhaustive_search", "exhaustive_search", "use_cudnn", "ws_nbytes_limit")


class _Operator:
    """An operator, and the nodes and constants that have been made of it."""

    def __init__(self, message: Any, shapes: Mapping[str, Sequence[int]], names: DummyName) -> None:
        self.kind, self.name = message.type, message.name
        self.inputs, self.outputs = list(message.input), list(message.output)
        self.args = {k: v for k, v in ArgsToDict(message.arg).items() if k not in _LEFT_OUT}
        self.shapes, self.fresh = shapes, names.new_dummy_name
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        if self.text("order", "NCHW") == "NHWC" and self.kind != "Concat":
            self.refuse("order NHWC")

    def refuse(self, what: str) -> None:
        """Raise EnforceNotMet: ONNX has not got something."""
        raise EnforceNotMet(
            f"ONNX has no {self.kind} with {what} (outputs {self.outputs}). Convert the net "
            "with `bridge caffe2 convert`, which writes ONNX by torch.onnx.",
            _CALLER,
        )

    def text(self, name: str, default: str) -> str:
        """Return an argument that is a text, and leave it out of the others."""
        value = self.args.pop(name, default)
        return value.decode() if isinstance(value, bytes) else str(value)

    def shape(self, name: str) -> list[int]:
        """Return the shape of a blob; refuse if it is not known."""
        if name not in self.shapes:
            self.refuse(f"{name!r} of an unknown shape")
        return list(self.shapes[name])

    def add(
        self, kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> None:
        """Add a node."""
        from onnx import helper

        made = helper.make_node(kind, list(inputs), list(outputs), name=self.name, **attributes)
        self.nodes.append(made)

    def constant(self, values: Sequence[int]) -> str:
        """Add a constant of int64 and return its name."""
        from onnx import TensorProto, helper

        name = self.fresh()
        self.constants.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], values))
        return name

    def reshape(self, x: str, shape: Sequence[int], output: str = "") -> str:
        """Add a Reshape and return its output."""
        output = output or self.fresh()
        self.add("Reshape", [x, self.constant(shape)], [output])
        return output


def support_onnx_export(op: str) -> bool:
    """Return whether operators of a type have nodes here."""
    return op in _RULES


def export_to_onnx(
    dummy_name: DummyName, c2_op: bytes, shapes: Mapping[str, Sequence[int]]
) -> tuple[list[bytes], list[bytes]]:
    """Return the bytes of the NodeProtos of an operator, and of the TensorProtos of constants.

    dummy_name: names new blobs. c2_op: the bytes of an OperatorDef. shapes: those of its blobs.

    Raises EnforceNotMet: ONNX has no node for it, or not with these arguments.
    """
    operator = _Operator(as_message(c2_op, "OperatorDef", _CALLER), shapes, dummy_name)
    _RULES[operator.kind](operator)
    nodes = [one.SerializeToString() for one in operator.nodes]
    return nodes, [one.SerializeToString() for one in operator.constants]


def _plain(kind: str, **renamed: str) -> Callable[[_Operator], None]:
    """Return the rule of an operator that differs in names alone."""

    def rule(op: _Operator) -> None:
        op.args.pop("is_test", None)
        op.add(kind, op.inputs, op.outputs, **{renamed.get(k, k): v for k, v in op.args.items()})

    return rule


def _elementwise(kind: str) -> Callable[[_Operator], None]:
    """Return the rule of an operator of two inputs, whose second one may begin at an axis."""

    def rule(op: _Operator) -> None:
        a, b = op.inputs
        op.text("axis_str", "")
        axis = op.args.pop("axis", None)
        if axis is not None and op.args.get("broadcast"):
            rank, own = len(op.shape(a)), len(op.shape(b))
            axis = axis if axis >= 0 else rank + axis
            if axis + own < rank:
                wide = op.fresh()
                op.add("Unsqueeze", [b], [wide], axes=list(range(own, rank - axis)))
                b = wide
        op.add(kind, [a, b], op.outputs)

    return rule


def _windows(op: _Operator) -> None:
    """Convert a convolution or pooling."""
    kind, rank = op.kind.rstrip("D").rstrip("123"), len(op.shape(op.inputs[0])) - 2
    args = op.args
    made: dict[str, Any] = {}
    if args.get("global_pooling"):
        op.add(f"Global{kind}", op.inputs, op.outputs)
        return
    for one, many, name, sides in (
        ("kernel", "kernels", "kernel_shape", "hw"),
        ("stride", "strides", "strides", "hw"),
        ("dilation", "dilations", "dilations", "hw"),
        ("adj", "adjs", "output_padding", "hw"),
        ("pad", "pads", "pads", "tlbr"),
    ):
        values = [args.get(f"{one}_{side}") for side in sides]
        if many in args:
            made[name] = list(args[many])
        elif one in args:
            made[name] = [args[one]] * (2 * rank if one == "pad" else rank)
        elif None not in values:
            made[name] = values
    made |= {k: args[k] for k in ("group", "count_include_pad") if k in args}
    padding = args.get("legacy_pad", 0)
    if padding == 2:
        made.pop("pads", None)
        made["auto_pad"] = "SAME_UPPER"
    elif padding == 1:
        made.pop("pads", None)
    elif padding == 3 and kind != "MaxPool":
        op.refuse("legacy_pad=3, which rounds the size up")
    elif padding == 3:
        made["pads"] = _padded_at_the_end(op, made, rank)
    op.add(kind, op.inputs, op.outputs, **made)


def _padded_at_the_end(op: _Operator, made: Mapping[str, Any], rank: int) -> list[int]:
    """Return the pads that make the size of the output what it is."""
    before = made.get("pads", [0] * (2 * rank))[:rank]
    strides = made.get("strides", [1] * rank)
    sizes = zip(op.shape(op.inputs[0])[2:], op.shape(op.outputs[0])[2:], strict=True)
    after = [
        (out - 1) * stride + kernel - size - pad
        for (size, out), stride, kernel, pad in zip(
            sizes, strides, made["kernel_shape"], before, strict=True
        )
    ]
    return [*before, *(max(one, 0) for one in after)]


def _fc(op: _Operator) -> None:
    x, w, b = op.inputs
    transposed = op.kind == "FCTransposed"
    axis, axis_w = op.args.get("axis", 1), op.args.get("axis_w", 1)
    shape, weight = op.shape(x), op.shape(w)
    axis = axis if axis >= 0 else axis + len(shape)
    if len(shape) > 2 or axis != 1:
        x = op.reshape(x, [-1, math.prod(shape[axis:])])
    if len(weight) > 2:
        w = op.reshape(w, [math.prod(weight[:axis_w]), math.prod(weight[axis_w:])])
    product = op.outputs[0] if axis == 1 else op.fresh()
    op.add("Gemm", [x, w, b], [product], transB=int(not transposed))
    if axis != 1:
        whole, first, joined = op.fresh(), op.fresh(), op.fresh()
        op.add("Shape", op.inputs[:1], [whole])
        op.add("Slice", [whole], [first], starts=[0], ends=[axis])
        op.add("Concat", [first, op.constant([-1])], [joined], axis=0)
        op.add("Reshape", [product, joined], op.outputs)


def _concat(op: _Operator) -> None:
    from onnx import TensorProto, helper

    default = 3 if op.text("order", "NCHW") == "NHWC" else 1
    axis, added = op.args.get("axis", default), op.args.get("add_axis", 0)
    shape = op.shape(op.inputs[0])
    axis = axis if axis >= 0 else axis + len(shape) + bool(added)
    if added:  # each input gets the new axis
        parts = [op.fresh() for _ in op.inputs]
        for name, part in zip(op.inputs, parts, strict=True):
            op.add("Unsqueeze", [name], [part], axes=[axis])
    else:
        parts = op.inputs
    op.add("Concat", parts, op.outputs[:1], axis=axis)
    if len(op.outputs) > 1:
        sizes = [1 if added else op.shape(name)[axis] for name in op.inputs]
        value = helper.make_tensor("split_info", TensorProto.INT32, [len(sizes)], sizes)
        op.add("Constant", [], op.outputs[1:], value=value)


def _merge_dim(op: _Operator) -> None:
    shape = op.shape(op.inputs[0])
    op.reshape(op.inputs[0], [-1, *shape[2:]], op.outputs[0])


def _reshape(op: _Operator) -> None:
    if len(op.inputs) > 1:
        op.add("Reshape", op.inputs, op.outputs[:1])
    else:
        op.reshape(op.inputs[0], op.args.get("shape", []), op.outputs[0])
    if len(op.outputs) > 1:  # the shape before
        op.add("Shape", op.inputs[:1], op.outputs[1:])


def _slice(op: _Operator) -> None:
    if len(op.inputs) > 1:
        op.refuse("bounds that the net computes")
    starts, ends = op.args["starts"], op.args["ends"]
    shape = op.shape(op.inputs[0])
    # Caffe2 counts from the end with -1 for the end itself.
    bounds = [
        [value if value >= 0 else size + value + 1 for value, size in zip(one, shape, strict=False)]
        for one in (starts, ends)
    ]
    op.add(
        "Slice", op.inputs, op.outputs, starts=bounds[0], ends=bounds[1], axes=range(len(starts))
    )


def _channel_shuffle(op: _Operator) -> None:
    n, c, *rest = op.shape(op.inputs[0])
    group = op.args.get("group", 1)
    grouped = op.reshape(op.inputs[0], [n, group, c // group, *rest])
    turned = op.fresh()
    order = [0, 2, 1, *range(3, 3 + len(rest))]
    op.add("Transpose", [grouped], [turned], perm=order)
    op.reshape(turned, [n, c, *rest], op.outputs[0])


def _reduce_mean(op: _Operator) -> None:
    if len(op.inputs) > 1:
        op.refuse("lengths")
    rank, count = len(op.shape(op.inputs[0])), op.args.get("num_reduce_dim", 1)
    axes = range(count) if op.kind == "ReduceFrontMean" else range(rank - count, rank)
    op.add("ReduceMean", op.inputs, op.outputs, axes=list(axes), keepdims=0)


def _resize(op: _Operator) -> None:
    from onnx import TensorProto, helper

    if len(op.inputs) > 1:
        op.refuse("scales that the net computes")
    scales = [1.0, 1.0, op.args.get("height_scale", 1.0), op.args.get("width_scale", 1.0)]
    name = op.fresh()
    value = helper.make_tensor("scales", TensorProto.FLOAT, [4], scales)
    op.add("Constant", [], [name], value=value)
    op.add("Upsample", [op.inputs[0], name], op.outputs, mode="nearest")


def _elementwise_linear(op: _Operator) -> None:
    x, w, b = op.inputs
    shape, axis = op.shape(x), op.args.get("axis", 1)
    axis = axis if axis >= 0 else axis + len(shape)
    flat = axis != len(shape) - 1
    if flat:
        x = op.reshape(x, [-1, math.prod(shape[axis:])])
    product = op.fresh()
    total = op.fresh() if flat else op.outputs[0]
    op.add("Mul", [x, w], [product])
    op.add("Add", [product, b], [total])
    if flat:
        whole = op.fresh()
        op.add("Shape", op.inputs[:1], [whole])
        op.add("Reshape", [total, whole], op.outputs)


def _cast(op: _Operator) -> None:
    from bridge.caffe2.proto import caffe2_pb2

    to = op.args["to"]
    if isinstance(to, bytes | str):
        name = op.text("to", "").upper()
        known = caffe2_pb2.TensorProto.DataType.items()
        to = dict(known).get(name, name)
    if to not in _ONNX_TYPES:
        raise EnforceNotMet(f"Casting to {to!r} dtype is not supported by ONNX.", _CALLER)
    op.add("Cast", op.inputs, op.outputs, to=_ONNX_TYPES[to])


def _arg_max(op: _Operator) -> None:
    rank = len(op.shape(op.inputs[0]))
    axis = op.args.get("axis", -1)
    keep = op.args.get("keepdims", 1)
    op.add(
        op.kind, op.inputs, op.outputs, axis=axis if axis >= 0 else rank + axis, keepdims=int(keep)
    )


def _batch_mat_mul(op: _Operator) -> None:
    inputs = list(op.inputs)
    for i, name in enumerate(("trans_a", "trans_b")):
        if op.args.get(name):
            rank, turned = len(op.shape(inputs[i])), op.fresh()
            order = [*range(rank - 2), rank - 1, rank - 2]
            op.add("Transpose", [inputs[i]], [turned], perm=order)
            inputs[i] = turned
    op.add("MatMul", inputs, op.outputs)


def _p_relu(op: _Operator) -> None:
    x, slope = op.inputs
    rank = len(op.shape(x))
    if rank > 2 and op.shape(slope) != [1]:
        wide = op.fresh()
        op.add("Unsqueeze", [slope], [wide], axes=list(range(1, rank - 1)))
        slope = wide
    op.add("PRelu", [x, slope], op.outputs)


def _batch_normalization(op: _Operator) -> None:
    if not op.args.get("is_test"):
        op.refuse("is_test=0")
    _plain("BatchNormalization")(op)


_NAMES = {caffe2: onnx for onnx, caffe2 in RENAMED.items() if not onnx.startswith("Global")}
_RULES: dict[str, Callable[[_Operator], None]] = {
    **{
        name: _plain(_NAMES.get(name, name))
        for name in (
            *("Abs", "Clip", "Copy", "Cos", "Dropout", "Elu", "Exp", "Flatten", "Floor", "Gather"),
            *("InstanceNorm", "LeakyRelu", "Log", "Max", "Min", "Negative", "Not", "NumpyTile"),
            *("Relu", "Sigmoid", "Sin", "Softmax", "Softplus", "Softsign", "Split", "Sqrt", "Sum"),
            "Tanh",
        )
    },
    **{
        name: _elementwise(_NAMES.get(name, name))
        for name in ("Add", "And", "Div", "EQ", "GT", "LT", "Mul", "Or", "Sub", "Xor")
    },
    **{
        f"{name}{size}": _windows
        for name in ("AveragePool", "Conv", "ConvTranspose", "MaxPool")
        for size in ("", "1D", "2D", "3D")
    },
    "ArgMax": _arg_max,
    "ArgMin": _arg_max,
    "BatchMatMul": _batch_mat_mul,
    "Cast": _cast,
    "ChannelShuffle": _channel_shuffle,
    "Concat": _concat,
    "ElementwiseLinear": _elementwise_linear,
    "ExpandDims": _plain("Unsqueeze", dims="axes"),
    "FC": _fc,
    "FCTransposed": _fc,
    "LRN": lambda op: op.add("LRN", op.inputs, op.outputs[:1], **op.args),
    "MatMul": _batch_mat_mul,
    "MergeDim": _merge_dim,
    "PRelu": _p_relu,
    "ReduceBackMean": _reduce_mean,
    "ReduceFrontMean": _reduce_mean,
    "Reshape": _reshape,
    "ResizeNearest": _resize,
    "Selu": _plain("Selu", scale="gamma"),
    "Slice": _slice,
    "SpatialBN": _batch_normalization,
    "Squeeze": _plain("Squeeze", dims="axes"),
    "Transpose": _plain("Transpose", axes="perm"),
}
