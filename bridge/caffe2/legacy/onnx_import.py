# SPDX-License-Identifier: Apache-2.0
"""Caffe2Backend: operators of Caffe2 for a node of ONNX, as ``caffe2.python.onnx.backend`` asks.

Operators that differ in names alone are converted there. Follows caffe2/onnx/backend.cc, PyTorch
1.8.1, except where that gave wrong values: ``auto_pad``, ``ceil_mode``, linear upsampling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.base.names import DummyName
from bridge.caffe2.legacy.onnx_node import CAFFE2_TYPES, CALLER, Node, filling, plain


class Caffe2Backend:
    """Converts nodes of ONNX to operators; new blobs are named by `dummy_name`."""

    def __init__(self, dummy_name: DummyName | None = None) -> None:
        self._names = dummy_name or DummyName()

    def support_onnx_import(self, op_type: str) -> bool:
        """Return whether nodes of a type need more than other names."""
        return op_type in _RULES

    def convert_node(
        self, node_str: bytes, value_infos_bytes: Sequence[bytes] = (), opset_version: int = 9
    ) -> list[list[bytes]]:
        """Return the bytes of the OperatorDefs of a node: none for the init net, and the others.

        node_str: the bytes of a NodeProto. value_infos_bytes: the bytes of the ValueInfoProtos that
        are known of its inputs.

        Raises EnforceNotMet: Caffe2 has no operator for it, or not with these attributes.
        """
        from onnx import NodeProto, ValueInfoProto

        infos = [ValueInfoProto.FromString(one) for one in value_infos_bytes]
        node = Node(NodeProto.FromString(node_str), infos, opset_version, self._names)
        _RULES.get(node.kind, plain)(node)
        return [[], [operator.SerializeToString() for operator in node.operators]]

    def prepare(self, *_: object) -> None:
        """Raise EnforceNotMet: models are prepared by ``caffe2.python.onnx.backend.prepare``."""
        raise EnforceNotMet(
            "Use caffe2.python.onnx.backend.prepare, which prepares the model in Python.",
            "Caffe2Backend.prepare",
        )

    def _build_tensor_filling_op(self, tensor: bytes, name: str = "") -> bytes:
        """Return the bytes of the OperatorDef that makes a TensorProto of ONNX."""
        from onnx import TensorProto

        value = TensorProto.FromString(tensor)
        return bytes(filling(value, name or None).SerializeToString())


def _constant(node: Node) -> None:
    import numpy as np
    from onnx import numpy_helper

    (name, value), *_ = node.attributes.items()
    if name != "value":
        element = {"f": np.float32, "i": np.int64, "s": np.object_}[name.removeprefix("value_")[0]]
        value = numpy_helper.from_array(np.array(value, element))
    node.operators.append(filling(value, node.outputs[0]))


def _constant_of_shape(node: Node) -> None:
    from onnx import numpy_helper

    tensor = node.take("value")
    kind = tensor.data_type if tensor is not None else 1
    value = numpy_helper.to_array(tensor).item() if tensor is not None else 0.0
    if kind not in (1, 6, 7, 9, 11):
        node.refuse(f"values of ONNX's type {kind}")
    node.add(
        "ConstantFill",
        node.inputs,
        node.outputs,
        value=value,
        input_as_shape=1,
        dtype=CAFFE2_TYPES[kind],
    )


def _windows(node: Node) -> None:
    """Convert a convolution or pooling."""
    padding = node.take("auto_pad", "NOTSET")
    if node.kind.startswith("Global"):
        node.attributes["global_pooling"] = 1
    elif "kernel_shape" not in node.attributes:
        weight = node.shapes.get(node.inputs[1]) if len(node.inputs) > 1 else None
        if weight is None:
            node.refuse("kernel without kernel_shape")
        else:
            node.attributes["kernel_shape"] = weight[2:]
    if padding == "SAME_UPPER" and node.kind != "ConvTranspose":
        node.attributes["legacy_pad"] = 2
    elif padding.startswith("SAME"):
        node.refuse(f"auto_pad={padding}")
    pads = node.attributes.get("pads", [])
    if node.take("ceil_mode", 0):
        kernel = node.attributes["kernel_shape"]
        apart = any(k < s for k, s in zip(kernel, node.attributes.get("strides", []), strict=False))
        if node.kind != "MaxPool" or pads[: len(pads) // 2] != pads[len(pads) // 2 :] or apart:
            node.refuse("ceil_mode with these windows")
        node.attributes["legacy_pad"] = 3
        node.attributes.setdefault("pads", [0] * (2 * len(kernel)))
    if node.kind != "Conv" and any(one != 1 for one in node.take("dilations", [])):
        node.refuse("dilations")
    if "output_shape" in node.attributes:
        node.refuse("output_shape")
    if node.kind == "MaxPool" and len(node.outputs) > 1:
        node.refuse("output of indices as ONNX counts them")
    plain(node)


def _with_extra_output(node: Node) -> None:
    """Convert an operator that has one more output in Caffe2."""
    node.outputs.append(node.fresh())
    plain(node)


def _gather(node: Node) -> None:
    axis = node.take("axis", 0)
    if axis == 1:
        node.add("BatchGather", node.inputs, node.outputs)
    else:
        node.add("Gather", node.inputs, node.outputs, **({"axis": axis} if axis else {}))


def _gemm(node: Node) -> None:
    a, b, *rest = node.inputs
    trans_a, trans_b = node.take("transA", 0), node.take("transB", 0)
    alpha, beta = node.take("alpha", 1.0), node.take("beta", 1.0)
    broadcast = node.take("broadcast", 0)
    if alpha != 1:
        scaled = node.fresh()
        node.add("Scale", [a], [scaled], scale=alpha)
        a = scaled
    c = rest[0] if rest else ""
    columns = node.shapes.get(b, [])[-2:]
    bias = node.shapes.get(c, [])
    one_per_column = len(bias) == 1 and (
        bias[0] > 1 or (len(columns) == 2 and columns[1 - trans_b] == 1)
    )
    if c and beta != 1:
        scaled = node.fresh()
        node.add("Scale", [c], [scaled], scale=beta)
        c = scaled
    if c and not trans_a and one_per_column and (node.opset >= 7 or broadcast):
        node.add("FC" if trans_b else "FCTransposed", [a, b, c], node.outputs)
        return
    product = node.fresh() if c else node.outputs[0]
    node.add("MatMul", [a, b], [product], trans_a=trans_a, trans_b=trans_b)
    if c:
        args = {"broadcast": broadcast} if node.opset < 7 else {}
        node.add("Add", [product, c], node.outputs, **args)


def _pad(node: Node) -> None:
    name = "paddings" if "paddings" in node.attributes else "pads"
    pads = list(node.take(name, []))
    if len(node.inputs) > 1:
        node.refuse("pads that the model computes")
    if len(pads) != 8 or any(pads[i] for i in (0, 1, 4, 5)) or min(pads) < 0:
        node.refuse(f"pads {pads}; it pads the last two of four dimensions, and does not crop")
    node.attributes["pads"] = [*pads[2:4], *pads[6:8]]
    plain(node)


def _softmax(node: Node) -> None:
    axis = node.take("axis", -1 if node.opset >= 13 else 1)
    if node.opset >= 13 and axis != -1 and node.positive(axis) != node.rank() - 1:
        node.refuse(f"axis {axis}, which is not the last, since opset 13")
    if node.kind == "Softmax":
        node.add("Softmax", node.inputs, node.outputs, axis=axis)
        return
    middle = node.fresh()
    node.add("Softmax", node.inputs, [middle], axis=axis)
    node.add("Log", [middle], node.outputs)


def _slice(node: Node) -> None:
    if len(node.inputs) > 1:
        _dynamic_slice(node)
        return
    starts, ends = node.take("starts"), node.take("ends")
    if any(step != 1 for step in node.take("steps", [])):
        node.refuse("steps")
    axes = [node.positive(axis) for axis in node.take("axes", range(len(starts)))]
    x = node.inputs[0]
    for i, (axis, start, end) in enumerate(zip(axes, starts, ends, strict=True)):
        # Caffe2 slices one dimension at a time, and counts from the end with -1 for the end itself.
        bounds = [min(max(one - (one < 0), -(2**31)), 2**31 - 1) for one in (start, end)]
        sliced = node.outputs[0] if i == len(axes) - 1 else node.fresh()
        first, last = [0] * axis + bounds[:1], [-1] * axis + bounds[1:]
        node.add("Slice", [x], [sliced], starts=first, ends=last)
        x = sliced


def _dynamic_slice(node: Node) -> None:
    if len(node.inputs) > 4:
        node.refuse("steps that the model computes")
    x, *bounds = node.inputs
    axes = bounds.pop() if len(bounds) > 2 else ""
    zero, rank, shape = node.fresh(), node.fresh(), node.fresh()
    node.add("ConstantFill", [], [zero], shape=[1], value=0, dtype=CAFFE2_TYPES[7])
    node.add("Shape", [x], [shape])
    node.add("Shape", [shape], [rank])
    for i in (0, 1):
        wide, below, one, shifted = (node.fresh() for _ in range(4))
        node.add("Cast", [bounds[i]], [wide], to=CAFFE2_TYPES[7])
        node.add("LT", [wide, zero], [below], broadcast=1)
        node.add("Cast", [below], [one], to=CAFFE2_TYPES[7])
        node.add("Sub", [wide, one], [shifted])
        if axes:
            whole = node.fresh()
            node.add(
                "ConstantFill", [rank], [whole], value=-i, dtype=CAFFE2_TYPES[7], input_as_shape=1
            )
            node.add("ScatterAssign", [whole, axes, shifted], [whole])
            shifted = whole
        bounds[i] = shifted
    node.add("Slice", [x, *bounds], node.outputs)


def _split(node: Node) -> None:
    node.take("num_outputs")
    node.attributes.setdefault("axis", 0)
    plain(node)


def _upsample(node: Node) -> None:
    mode = node.take("mode", "nearest")
    scales = node.take("scales")
    form = node.take("coordinate_transformation_mode", "asymmetric")
    rounding = node.take("nearest_mode", "floor")
    node.take("cubic_coeff_a")
    node.take("exclude_outside")
    node.take("extrapolation_value")
    if mode != "nearest" or form != "asymmetric" or rounding != "floor":
        node.refuse(
            f"mode {mode!r} with coordinates {form!r} and rounding {rounding!r}; it has nearest, "
            "asymmetric, floor"
        )
    if scales is not None:
        if len(scales) != 4 or list(scales[:2]) != [1, 1]:
            node.refuse(f"scales {list(scales)}; it scales the last two of four dimensions")
        node.attributes |= {"height_scale": float(scales[2]), "width_scale": float(scales[3])}
    elif node.kind == "Upsample" and len(node.inputs) == 2:
        last = node.fresh()
        node.add("Slice", node.inputs[1:], [last], starts=[2], ends=[-1])
        node.add("ResizeNearest", [node.inputs[0], last], node.outputs)
        return
    elif "height_scale" not in node.attributes:
        node.refuse("sizes in place of scales")
    node.add("ResizeNearest", node.inputs[:1], node.outputs, **node.attributes)


def _with_defaults(**defaults: float) -> Callable[[Node], None]:
    """Return the rule of an operator that differs in names and in the defaults of attributes."""

    def rule(node: Node) -> None:
        for name, value in defaults.items():
            node.attributes.setdefault(name, value)
        plain(node)

    return rule


def _dropout(node: Node) -> None:
    node.attributes.setdefault("is_test", 1)
    node.take("seed")
    if any(node.inputs[2:]):
        node.refuse("training_mode that the model computes")
    node.inputs = node.inputs[:1]
    if node.attributes["is_test"] and any(node.outputs[1:]):  # nothing is dropped
        node.add("ConstantFill", node.inputs, node.outputs[1:], value=1, dtype=CAFFE2_TYPES[9])
        node.outputs = node.outputs[:1]
    plain(node)


def _random_normal(node: Node) -> None:
    if "seed" in node.attributes:
        node.refuse("seed")
    if node.take("dtype", 1) != 1:
        node.refuse("dtype other than float32")
    if "scale" in node.attributes:
        node.attributes["std"] = node.take("scale")
    node.add("GaussianFill", node.inputs, node.outputs, **node.attributes)


def _aten(node: Node) -> None:
    """Add an ATen operator, which calls torch's own function."""
    if node.kind == "Where":
        node.add("ATen", node.inputs, node.outputs, operator="where")
        return
    middle = node.fresh()
    if node.kind == "NonZero":
        node.add("ATen", node.inputs, [middle], operator="nonzero")
        node.add("Transpose", [middle], node.outputs)
        return
    node.add("Exp", node.inputs, [middle])
    if "seed" in node.attributes:
        node.refuse("seed")
    count, kind = node.take("sample_size", 1), node.take("dtype", 6)
    drawn = node.fresh() if kind == 6 else node.outputs[0]
    node.add("ATen", [middle], [drawn], operator="multinomial", num_samples=count, replacement=1)
    if kind == 6:
        node.add("Cast", [drawn], node.outputs, to=CAFFE2_TYPES[6])


def _cast(node: Node) -> None:
    to = node.take("to")
    if isinstance(to, str):
        from onnx import TensorProto

        to = TensorProto.DataType.Value(to.upper())
    if to not in CAFFE2_TYPES:
        raise EnforceNotMet(f"Casting to {to!r} dtype is not supported by Caffe2.", CALLER)
    node.add("Cast", node.inputs, node.outputs, to=CAFFE2_TYPES[to])


def _axes(node: Node) -> None:
    """Convert an operator with axes, which are not negative in Caffe2."""
    if len(node.inputs) > 1:
        node.refuse("axes that the model computes")
    axes = node.attributes.get("axes")
    if axes is not None:
        added = len(axes) if node.kind == "Unsqueeze" else 0
        node.attributes["axes"] = [node.positive(axis, added) for axis in axes]
    if node.kind == "Squeeze" and axes is None:
        shape = node.shapes.get(node.inputs[0], [])
        node.attributes["axes"] = [i for i, size in enumerate(shape) if size == 1]
    plain(node)


def _attributes_only(node: Node) -> None:
    """Convert an operator whose further inputs are arguments in Caffe2."""
    if len([name for name in node.inputs if name]) > 1:
        node.refuse(f"arguments that the model computes: {node.inputs[1:]}")
    node.inputs = node.inputs[:1]
    plain(node)


def _mat_mul(node: Node) -> None:
    vectors = [len(node.shapes.get(name, [])) == 1 for name in node.inputs]
    product = node.fresh() if all(vectors) else node.outputs[0]
    node.add("BatchMatMul", node.inputs, [product], broadcast=1)
    if all(vectors):
        node.add("Squeeze", [product], node.outputs, dims=[0])


def _gelu(node: Node) -> None:
    if node.take("approximate", "none") == "tanh":
        node.attributes["fast_gelu"] = 1
    plain(node)


def _shape(node: Node) -> None:
    if node.take("start", 0) or node.take("end") is not None:
        node.refuse("start or end")
    plain(node)


def _p_relu(node: Node) -> None:
    x, slope = node.inputs
    shape, rank = node.shapes.get(slope, []), len(node.shapes.get(x, []))
    if len(shape) > 1:
        wide = [i for i, size in enumerate(shape) if size != 1]
        channels = not wide or (len(wide) == 1 and len(shape) - wide[0] == (rank or 4) - 1)
        if not channels:
            node.refuse(f"slope of shape {shape}; it has one per channel")
        flat, old = node.fresh(), node.fresh()
        node.add("Reshape", [slope], [flat, old], shape=[-1])
        slope = flat
    node.add("PRelu", [x, slope], node.outputs)


_RULES: dict[str, Callable[[Node], None]] = {
    "ArgMax": _with_defaults(axis=0),
    "ArgMin": _with_defaults(axis=0),
    "AveragePool": _windows,
    "BatchNormalization": _with_defaults(is_test=1),
    "Cast": _cast,
    "Clip": _attributes_only,
    "Concat": _with_extra_output,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Conv": _windows,
    "ConvTranspose": _windows,
    "Dropout": _dropout,
    "DynamicSlice": _dynamic_slice,
    "Gather": _gather,
    "Gemm": _gemm,
    "Gelu": _gelu,
    "GlobalAveragePool": _windows,
    "GlobalMaxPool": _windows,
    "Int8Concat": _with_extra_output,
    "Int8Reshape": _with_extra_output,
    "LRN": _with_defaults(alpha=1e-4, beta=0.75),
    "LogSoftmax": _softmax,
    "LpPool": _windows,
    "MatMul": _mat_mul,
    "MaxPool": _windows,
    "Multinomial": _aten,
    "NonZero": _aten,
    "PRelu": _p_relu,
    "Pad": _pad,
    "RandomNormal": _random_normal,
    "RandomNormalLike": _random_normal,
    "Reciprocal": lambda node: node.add("Pow", node.inputs, node.outputs, exponent=-1.0),
    "ReduceL1": _axes,
    "ReduceL2": _axes,
    "ReduceMax": _axes,
    "ReduceMean": _axes,
    "ReduceMin": _axes,
    "ReduceSum": _axes,
    "Reshape": _with_extra_output,
    "Resize": _upsample,
    "Scatter": _with_defaults(axis=0),
    "Shape": _shape,
    "Slice": _slice,
    "Softmax": _softmax,
    "Split": _split,
    "Squeeze": _axes,
    "TopK": _attributes_only,
    "Unsqueeze": _axes,
    "Upsample": _upsample,
    "Where": _aten,
}
