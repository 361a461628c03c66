# SPDX-License-Identifier: Apache-2.0
"""Operators of Caffe2 become nodes of ONNX that compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.c_extension import DummyName, export_to_onnx, support_onnx_export

onnx = pytest.importorskip("onnx")

from onnx import NodeProto, TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402


def array(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def exported(operator: Any, shapes: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    nodes, constants = export_to_onnx(DummyName(), operator.SerializeToString(), shapes)
    return (
        [NodeProto.FromString(one) for one in nodes],
        [TensorProto.FromString(one) for one in constants],
    )


X = array(2, 4, 6, 7)
SIDES = {"pad_t": 1, "pad_l": 0, "pad_b": 2, "pad_r": 1}
OPERATORS: list[tuple[str, list[Any], int, dict[str, Any]]] = [
    ("Add", [X, array(4)], 1, {"broadcast": 1, "axis": 1}),
    ("Add", [X, array(7)], 1, {"broadcast": 1}),
    ("ArgMax", [X], 1, {"keepdims": 0}),
    ("AveragePool", [X], 1, {"kernel": 3, "stride": 2, "pad": 1}),
    ("BatchMatMul", [array(2, 3, 4), array(2, 5, 4)], 1, {"trans_b": 1}),
    ("Cast", [X], 1, {"to": "int32"}),
    ("Cast", [X], 1, {"to": core.DataType.DOUBLE}),
    ("ChannelShuffle", [X], 1, {"group": 2}),
    ("Clip", [X], 1, {"min": -0.5, "max": 0.25}),
    ("Concat", [array(2, 3), array(2, 3)], 2, {"axis": -1, "add_axis": 1}),
    ("Concat", [array(2, 3), array(2, 4)], 2, {"axis": 1}),
    ("Conv", [X, array(6, 2, 3, 2), array(6)], 1, {"kernels": [3, 2], "group": 2, "pad": 1}),
    ("Conv2D", [X, array(6, 4, 3, 2)], 1, {"kernel_h": 3, "kernel_w": 2, **SIDES}),
    ("ConvTranspose", [X, array(4, 3, 3, 3)], 1, {"kernel": 3, "stride": 2, "adj": 1}),
    ("Copy", [X], 1, {}),
    ("EQ", [np.arange(3), np.array([0, 2, 2])], 1, {}),
    ("ElementwiseLinear", [X, array(42), array(42)], 1, {"axis": 2}),
    ("Elu", [X], 1, {"alpha": 0.5}),
    ("ExpandDims", [X], 1, {"dims": [0, 2]}),
    ("FC", [X, array(5, 168), array(5)], 1, {}),
    ("FC", [X, array(5, 42), array(5)], 1, {"axis": 2}),
    ("FCTransposed", [array(3, 2), array(2, 5), array(5)], 1, {}),
    ("Flatten", [X], 1, {}),
    ("LeakyRelu", [X], 1, {"alpha": 0.2}),
    ("MatMul", [array(3, 2), array(3, 4)], 1, {"trans_a": 1}),
    ("MaxPool", [X], 1, {"kernel": 3, "stride": 2, "legacy_pad": 3}),
    ("MaxPool", [X], 1, {"kernel_h": 2, "kernel_w": 3, "stride": 2, "legacy_pad": 2}),
    ("MaxPool", [X], 1, {"global_pooling": 1}),
    ("MergeDim", [X], 1, {}),
    ("Negative", [X], 1, {}),
    ("PRelu", [X, array(4)], 1, {}),
    ("ReduceBackMean", [X], 1, {"num_reduce_dim": 2}),
    ("ReduceFrontMean", [X], 1, {}),
    ("Relu", [X], 1, {"order": "NCHW", "cudnn_exhaustive_search": 1}),
    ("Reshape", [X], 2, {"shape": [0, -1]}),
    ("ResizeNearest", [X], 1, {"width_scale": 2.0, "height_scale": 3.0}),
    ("Selu", [X], 1, {"alpha": 1.5, "scale": 2.0}),
    ("Slice", [X], 1, {"starts": [0, 1], "ends": [-1, -2]}),
    ("Softmax", [X], 1, {"axis": 3}),
    ("Split", [X], 2, {"axis": 3, "split": [3, 4]}),
    ("Squeeze", [X[:1]], 1, {"dims": [0]}),
    ("Transpose", [X], 1, {"axes": [1, 0, 3, 2]}),
]


@pytest.mark.parametrize(
    ("kind", "inputs", "count", "args"), OPERATORS, ids=[f"{o[0]}-{o[3]}" for o in OPERATORS]
)
def test_onnx_computes_what_caffe2_does(
    kind: str, inputs: list[Any], count: int, args: dict[str, Any]
) -> None:
    names, outputs = [f"x{i}" for i in range(len(inputs))], ["y", "z"][:count]
    feeds = dict(zip(names, inputs, strict=True))
    for name, value in feeds.items():
        workspace.FeedBlob(name, value)
    operator = core.CreateOperator(kind, names, outputs, **args)
    workspace.RunOperatorOnce(operator)
    expected = [workspace.FetchBlob(name) for name in outputs]
    assert support_onnx_export(kind)
    shapes = {name: workspace.FetchBlob(name).shape for name in [*names, *outputs]}
    nodes, constants = exported(operator, shapes)
    graph = helper.make_graph(
        nodes,
        "graph",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
            for n, v in feeds.items()
        ],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)])
    for ours, theirs in zip(expected, ReferenceEvaluator(model).run(None, feeds), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
        assert ours.shape == theirs.shape


def test_local_response_normalization_is_a_node() -> None:
    operator = core.CreateOperator(
        "LRN", ["x"], ["y", "scale"], size=5, order="NCHW", cudnn_exhaustive_search=False
    )
    (node,), _ = exported(operator, {})
    assert (node.op_type, list(node.output)) == ("LRN", ["y"])
    assert [one.name for one in node.attribute] == ["size"]


def test_normalization_in_inference_is_a_node() -> None:
    operator = core.CreateOperator(
        "SpatialBN", ["x", "s", "b", "m", "v"], ["y"], is_test=1, epsilon=0.25, order="NCHW"
    )
    (node,), constants = exported(operator, {})
    assert constants == [] and node.op_type == "BatchNormalization"
    assert [(one.name, one.f) for one in node.attribute] == [("epsilon", 0.25)]


@pytest.mark.parametrize(
    ("kind", "inputs", "args", "words"),
    [
        ("AveragePool", ["x"], {"kernel": 3, "stride": 2, "legacy_pad": 3}, "legacy_pad=3"),
        ("Cast", ["x"], {"to": "string"}, "Casting to 4"),
        ("Conv", ["x", "w"], {"kernel": 3, "order": "NHWC"}, "order NHWC"),
        ("FC", ["x", "w", "unknown"], {}, None),
        ("PRelu", ["x", "unknown"], {}, "unknown shape"),
        ("ReduceBackMean", ["x", "w"], {}, "lengths"),
        ("Slice", ["x", "w", "w"], {}, "the net computes"),
        ("SpatialBN", ["x"] * 5, {"is_test": 0}, "is_test=0"),
    ],
)
def test_what_onnx_cannot_say_is_refused(
    kind: str, inputs: list[str], args: dict[str, Any], words: str | None
) -> None:
    operator = core.CreateOperator(kind, inputs, ["y"], **args)
    shapes = {"x": (2, 4, 6, 7), "w": (5, 168), "y": (2, 4, 3, 3)}
    if words is None:  # the shape of a bias does not matter
        assert exported(operator, shapes)
        return
    with pytest.raises(EnforceNotMet, match=words):
        exported(operator, shapes)
