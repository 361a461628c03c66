# SPDX-License-Identifier: Apache-2.0
"""Nodes of ONNX become operators of Caffe2 that compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import workspace
from bridge.caffe2.c_extension import Caffe2Backend
from bridge.caffe2.proto import caffe2_pb2

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

F = TensorProto.FLOAT


def array(*shape: int, like: type = np.float32) -> np.ndarray[Any, Any]:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(like)


def info(name: str, value: np.ndarray[Any, Any]) -> Any:
    kind = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(name, kind, value.shape)


def converted(node: Any, inputs: list[Any], opset: int = 9) -> list[Any]:
    """Return the operators of a node whose inputs are known."""
    infos = [info(n, v).SerializeToString() for n, v in zip(node.input, inputs, strict=True) if n]
    init, operators = Caffe2Backend().convert_node(node.SerializeToString(), infos, opset)
    assert init == []
    return [caffe2_pb2.OperatorDef.FromString(one) for one in operators]


def run(node: Any, inputs: list[Any], opset: int = 9) -> list[Any]:
    """Return what Caffe2 computes for a node."""
    for name, value in zip(node.input, inputs, strict=True):
        workspace.FeedBlob(name, value)
    for operator in converted(node, inputs, opset):
        workspace.RunOperatorOnce(operator)
    return [workspace.FetchBlob(name) for name in node.output]


def reference(node: Any, inputs: list[Any], opset: int = 9) -> list[Any]:
    """Return what onnx.reference computes for it."""
    graph = helper.make_graph(
        [node],
        "graph",
        [info(n, v) for n, v in zip(node.input, inputs, strict=True)],
        [helper.make_tensor_value_info(name, F, None) for name in node.output],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return list(ReferenceEvaluator(model).run(None, dict(zip(node.input, inputs, strict=True))))


X = array(2, 4, 6, 7)
NODES: list[tuple[str, list[Any], int, dict[str, Any]]] = [
    ("ArgMax", [X], 9, {}),
    ("ArgMin", [X], 9, {"axis": -1, "keepdims": 0}),
    ("AveragePool", [X], 9, {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1]}),
    ("AveragePool", [X], 9, {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1}),
    ("BatchNormalization", [X, *(abs(array(4)) for _ in range(4))], 15, {"epsilon": 0.1}),
    ("Cast", [X], 9, {"to": 7}),
    ("Clip", [X], 6, {"min": -0.5, "max": 0.5}),
    ("Concat", [X, X], 9, {"axis": -2}),
    ("Conv", [X, array(6, 2, 3, 3), array(6)], 9, {"group": 2, "pads": [1, 0, 2, 1]}),
    ("Conv", [X, array(6, 4, 3, 2)], 9, {"auto_pad": "SAME_UPPER", "strides": [2, 1]}),
    ("Conv", [X[..., 0], array(6, 4, 3)], 9, {"dilations": [2]}),
    ("ConvTranspose", [X, array(4, 3, 3, 3)], 9, {"strides": [2, 2], "output_padding": [1, 0]}),
    ("Elu", [X], 9, {"alpha": 0.3}),
    ("Equal", [np.arange(4), np.array([0, 2, 2, 3])], 9, {}),
    ("Flatten", [X], 9, {"axis": 2}),
    ("Gather", [X, np.array([[1, 0]])], 9, {}),
    ("Gather", [X, np.array([3, 0])], 9, {"axis": 1}),
    ("Gather", [X, np.array([3, 0])], 9, {"axis": 2}),
    ("Gemm", [array(3, 2), array(2, 4), array(3, 4)], 9, {"alpha": 0.5, "beta": 2.0}),
    ("Gemm", [array(2, 3), array(4, 2), array(4)], 9, {"transA": 1, "transB": 1}),
    ("Gemm", [array(3, 2), array(4, 2), array(4)], 9, {"transB": 1, "beta": 3.0}),
    ("Gemm", [array(3, 2), array(2, 4), array(4)], 9, {}),
    ("Gemm", [array(3, 2), array(2, 4), array(1)], 9, {}),
    ("Gemm", [array(3, 2), array(2, 4)], 13, {}),
    ("GlobalAveragePool", [X], 9, {}),
    ("GlobalMaxPool", [X], 9, {}),
    ("LogSoftmax", [X[0, 0]], 9, {}),
    ("MatMul", [X, array(7, 3)], 9, {}),
    ("MatMul", [array(3), array(3)], 9, {}),
    ("MaxPool", [X], 9, {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0, 1, 1, 0]}),
    ("MaxPool", [X], 10, {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1}),
    ("MaxPool", [X], 10, {"kernel_shape": [2, 3], "dilations": [1, 1], "storage_order": 0}),
    ("Neg", [X], 9, {}),
    ("NonZero", [np.array([[1.0, 0, 2]], np.float32)], 9, {}),
    ("PRelu", [X, array(4, 1, 1)], 9, {}),
    ("Pad", [X], 9, {"pads": [0, 0, 1, 0, 0, 0, 2, 3], "value": 2.0}),
    ("Reciprocal", [abs(X) + 1], 9, {}),
    ("ReduceMean", [X], 9, {"axes": [-1, 1], "keepdims": 0}),
    ("ReduceSum", [X], 9, {"axes": [2]}),
    ("Reshape", [X, np.array([0, -1, 7])], 9, {}),
    ("Selu", [X], 9, {"alpha": 1.5, "gamma": 2.0}),
    ("Slice", [X], 9, {"starts": [1, -3], "ends": [2**63 - 1, -1], "axes": [1, -1]}),
    ("Slice", [X], 9, {"starts": [0, 1], "ends": [1, 4]}),
    ("Slice", [X, np.array([-3]), np.array([-1]), np.array([3])], 10, {}),
    ("Slice", [X, np.array([0, -3]), np.array([2, 4])], 10, {}),
    ("Softmax", [X[0, 0]], 13, {"axis": -1}),
    ("Softmax", [X[0, 0]], 13, {"axis": 1}),
    ("Squeeze", [X[:1, :, :1]], 9, {"axes": [-2, 0]}),
    ("Transpose", [X], 9, {"perm": [0, 3, 1, 2]}),
    ("Unsqueeze", [X], 9, {"axes": [0, -1]}),
    ("Upsample", [X, np.array([1, 1, 2, 3], np.float32)], 9, {}),
    ("Where", [X > 0, X, -X], 9, {}),
]


@pytest.mark.parametrize(
    ("kind", "inputs", "opset", "attributes"), NODES, ids=[f"{n[0]}-{n[3]}" for n in NODES]
)
def test_it_computes_what_onnx_says(
    kind: str, inputs: list[Any], opset: int, attributes: dict[str, Any]
) -> None:
    node = helper.make_node(kind, [f"x{i}" for i in range(len(inputs))], ["y"], **attributes)
    for ours, theirs in zip(run(node, inputs, opset), reference(node, inputs, opset), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape


@pytest.mark.parametrize(
    ("transposed", "bias", "kinds"),
    [
        (1, (3,), ["Scale", "Scale", "FC"]),
        (0, (3,), ["Scale", "Scale", "FCTransposed"]),
        (0, (2, 3), ["Scale", "Scale", "MatMul", "Add"]),
    ],
)
def test_gemm_with_a_bias_is_fully_connected(
    transposed: int, bias: tuple[int, ...], kinds: list[str]
) -> None:
    node = helper.make_node("Gemm", ["a", "b", "c"], ["y"], alpha=2.0, beta=3.0, transB=transposed)
    inputs = [array(2, 5), array(3, 5) if transposed else array(5, 3), array(*bias)]
    assert [one.type for one in converted(node, inputs)] == kinds


@pytest.mark.parametrize(
    ("attributes", "value"),
    [
        ({"value": numpy_helper.from_array(np.array([[1.5, 2]], np.float32))}, [[1.5, 2]]),
        ({"value": numpy_helper.from_array(np.array([True, False]))}, [True, False]),
        ({"value_int": 3}, 3),
        ({"value_floats": [1.0, 2.0]}, [1.0, 2.0]),
    ],
)
def test_constants_are_made(attributes: dict[str, Any], value: Any) -> None:
    (made,) = run(helper.make_node("Constant", [], ["y"], **attributes), [])
    np.testing.assert_array_equal(made, value)


@pytest.mark.parametrize("element", [np.float32, np.int64, np.int32, np.bool_, np.float64])
def test_a_constant_of_a_computed_shape_has_its_type(element: Any) -> None:
    value = numpy_helper.from_array(np.array([1], element))
    node = helper.make_node("ConstantOfShape", ["shape"], ["y"], value=value)
    (made,) = run(node, [np.array([2, 3])])
    assert made.shape == (2, 3) and made.dtype == element and made.all()


def test_local_response_normalization_has_the_defaults_of_onnx() -> None:
    torch = pytest.importorskip("torch")
    (y,) = run(helper.make_node("LRN", ["x"], ["y"], size=3), [X])
    expected = torch.nn.functional.local_response_norm(torch.from_numpy(X), 3)
    np.testing.assert_allclose(y, expected.numpy(), rtol=1e-5)


def test_dropout_in_inference_keeps_all() -> None:
    node = helper.make_node("Dropout", ["x"], ["y", "mask"], ratio=0.9)
    y, mask = run(node, [X])
    np.testing.assert_array_equal(y, X)
    assert mask.shape == X.shape and mask.all()


@pytest.mark.parametrize(
    ("kind", "inputs", "opset", "attributes", "words"),
    [
        ("Acosh", [X], 9, {}, "translate op Acosh"),
        ("Add", [X, X], 9, {"foo": 42}, "unexpected argument foo"),
        ("AveragePool", [X], 10, {"kernel_shape": [2, 2], "ceil_mode": 1}, "ceil_mode"),
        ("Cast", [X], 13, {"to": 16}, "16"),
        ("Conv", [X, X], 9, {"auto_pad": "SAME_LOWER"}, "SAME_LOWER"),
        ("Clip", [X, array(), array()], 11, {}, "the model computes"),
        ("MaxPool", [X], 10, {"kernel_shape": [2, 2], "dilations": [2, 2]}, "dilations"),
        ("Pad", [X], 9, {"pads": [1, 0, 0, 0, 0, 0, 0, 0]}, "pads the last two"),
        ("Reshape", [X, np.array([1])], 14, {"allowzero": 1}, "allowzero"),
        ("Resize", [X], 13, {"mode": "linear"}, "linear"),
        ("Slice", [X], 10, {"starts": [0], "ends": [4], "steps": [2]}, "steps"),
        ("Softmax", [X], 13, {"axis": 1}, "axis 1"),
        ("Upsample", [X], 7, {"mode": "linear", "scales": [1.0, 1.0, 2.0, 2.0]}, "linear"),
    ],
)
def test_what_caffe2_cannot_do_is_refused(
    kind: str, inputs: list[Any], opset: int, attributes: dict[str, Any], words: str
) -> None:
    node = helper.make_node(kind, [f"x{i}" for i in range(len(inputs))], ["y"], **attributes)
    with pytest.raises(EnforceNotMet, match=words):
        converted(node, inputs, opset)


def test_models_are_prepared_elsewhere() -> None:
    with pytest.raises(EnforceNotMet, match=r"caffe2\.python\.onnx\.backend\.prepare"):
        Caffe2Backend().prepare(b"", "CPU", [])


def test_only_nodes_that_need_it_are_converted_here() -> None:
    backend = Caffe2Backend()
    assert backend.support_onnx_import("Conv") and not backend.support_onnx_import("LSTM")
