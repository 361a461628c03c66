# SPDX-License-Identifier: Apache-2.0
"""Today's onnx gets what Caffe2's backend needs of the old one."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.legacy.onnx_models import attributes_of, mapping, optimize, polish_model

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper, parser  # noqa: E402

MODEL = """
<ir_version: 8, opset_import: ["" : 18]>
graph (float[2, 3] x) => (float[2, 2] y, float[3] c)
<float[3] weight = {1, 2, 3}, int64[1] zero = {0}, int64[1] two = {2}, int64[1] one = {1}>
{
    doubled = Add(weight, weight)
    c = Neg(doubled)
    noise = RandomNormalLike(weight)
    product = Mul(x, doubled)
    sum = Add(product, noise)
    cut = Slice(sum, zero, two, one)
    y = Softmax(cut)
}
"""


def test_a_model_is_split_in_what_is_constant_and_the_rest() -> None:
    model = parser.parse_model(MODEL)
    init = optimize(model, ["fuse_consecutive_transposes", "split_init"]).graph
    predict = optimize(model, ["split_predict"]).graph
    assert [node.op_type for node in init.node] == ["Add", "Neg"]
    assert [one.name for one in init.output] == ["c", "doubled"]
    assert {one.name for one in init.input} == {"weight", "zero", "one", "two"}
    assert [node.output[0] for node in predict.node] == ["noise", "product", "sum", "cut", "y"]
    assert [one.name for one in predict.output] == ["y", "c"]
    assert {"x", "weight", "c", "doubled"} <= {one.name for one in predict.input}
    (weight,) = (one for one in predict.input if one.name == "weight")
    assert [one.dim_value for one in weight.type.tensor_type.shape.dim] == [3]
    assert len(model.graph.node) == 7, "the model stays"


def test_constant_inputs_are_attributes_again() -> None:
    nodes = {one.output[0]: one for one in polish_model(parser.parse_model(MODEL)).graph.node}
    assert list(nodes["cut"].input) == ["sum"]
    assert attributes_of(nodes["cut"]) == {"starts": [0], "ends": [2], "axes": [1]}
    assert attributes_of(nodes["y"]) == {"axis": -1}


def test_a_reshape_of_opset_1_has_no_shape_to_look_at() -> None:
    text = '<ir_version: 3, opset_import: ["" : 1]> agraph (float[2, 3] x) => (float[6] y)'
    model = parser.parse_model(f"{text} {{ y = Reshape<shape=[6]>(x) }}")
    assert attributes_of(polish_model(model).graph.node[0]) == {"shape": [6]}


def test_a_softmax_of_an_inner_axis_is_refused() -> None:
    text = '<ir_version: 8, opset_import: ["" : 18]> agraph (float[2, 3] x) => (float[2, 3] y)'
    model = parser.parse_model(f"{text} {{ y = Softmax<axis=0>(x) }}")
    with pytest.raises(EnforceNotMet, match="axis 0"):
        polish_model(model)


def test_outer_values_of_inner_graphs_are_noted() -> None:
    nodes = [
        helper.make_node("Add", ["outer", "weight"], ["z"]),
        helper.make_node("Neg", ["z"], ["y"]),
    ]
    inner = helper.make_graph(
        nodes,
        "inner",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ones(2, np.float32), "weight")],
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    graph = helper.make_graph([node], "graph", [], [])
    lifted = optimize(helper.make_model(graph), ["lift_lexical_references"]).graph.node[0]
    assert attributes_of(lifted)["__control_inputs"] == [b"outer"]


def test_other_passes_are_refused() -> None:
    with pytest.raises(EnforceNotMet, match="onnxoptimizer"):
        optimize(helper.make_model(helper.make_graph([], "g", [], [])), ["fuse_bn_into_conv"])


def test_types_are_found_both_ways() -> None:
    for element in (np.float32, np.int64, np.bool_):
        kind = mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(element)]
        assert mapping.TENSOR_TYPE_TO_NP_TYPE[kind] == np.dtype(element)
