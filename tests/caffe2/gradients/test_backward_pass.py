# SPDX-License-Identifier: Apache-2.0
"""Gradients that users register, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core

Registry = core.GradientRegistry


@pytest.fixture(autouse=True)
def kept(fresh_workspace: None) -> Iterator[None]:
    before = dict(Registry.gradient_registry_)
    yield
    Registry.gradient_registry_.clear()
    Registry.gradient_registry_.update(before)


def halved(op: Any, g_output: Any) -> Any:
    gradient = f"{op.input[0]}_grad"
    return core.CreateOperator("Scale", g_output, [gradient], scale=0.5), [gradient]


def test_a_registered_function_makes_the_gradient_of_its_type() -> None:
    assert Registry.RegisterGradient("Halved")(halved) is halved
    op = core.CreateOperator("Halved", ["x"], ["y"])
    made, gradients = Registry.GetGradientForOp(op, [core.BlobReference("dy")])
    assert [one.type for one in made] == ["Scale"]
    assert gradients == ["x_grad"]


def test_built_in_goes_first_and_registered_where_that_cannot_be_made() -> None:
    Registry.RegisterGradient("Relu")(halved)
    Registry.RegisterGradient("Floor")(halved)
    for op_type, made_type in {"Relu": "ReluGradient", "Floor": "Scale"}.items():
        op = core.CreateOperator(op_type, ["x"], ["y"])
        assert Registry.GetGradientForOp(op, ["dy"])[0][0].type == made_type


def test_another_number_of_gradients_than_inputs_is_refused() -> None:
    Registry.RegisterGradient("Halved")(lambda op, given: (None, [None, None]))
    op = core.CreateOperator("Halved", ["x"], ["y"])
    with pytest.raises(EnforceNotMet, match=r"returned 2 gradients for 1 inputs"):
        Registry.GetBackwardPass([op], ["y"])


def test_none_and_lists_of_operators() -> None:
    Registry.RegisterGradient("Halved")(lambda op, given: (None, [None]))
    op = core.CreateOperator("Halved", ["x"], ["y"])
    assert Registry.GetGradientForOp(op, ["dy"]) == ([], [None])


@pytest.mark.parametrize(
    ("op_type", "message"),
    [
        ("NoSuchType", "have no gradient"),
        ("Floor", "not implemented"),
        ("Accuracy", "is not defined"),
        ("Add", "schema"),
        ("Cast", "from_type"),
    ],
)
def test_operators_without_a_gradient_are_refused(op_type: str, message: str) -> None:
    inputs = ["x", "y"] if op_type == "Accuracy" else ["x"]
    op = core.CreateOperator(op_type, inputs, ["z"])
    with pytest.raises(EnforceNotMet, match=message) as error:
        Registry.GetGradientForOp(op, ["dz"])
    assert f"creating gradient for [{op_type}]" in str(error.value)


def test_an_error_of_a_registered_function_keeps_its_kind() -> None:
    def fails(op: Any, given: Any) -> Any:
        raise ValueError("because")

    Registry.RegisterGradient("Fails")(fails)
    op = core.CreateOperator("Fails", ["x"], ["y"])
    with pytest.raises(ValueError, match="because") as error:
        Registry.GetGradientForOp(op, ["dy"])
    assert isinstance(error.value, EnforceNotMet)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="not int"):
        Registry.RegisterGradient("X")(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="2 gradients are given for 1 outputs"):
        Registry.GetGradientForOp(core.CreateOperator("Relu", ["x"], ["y"]), ["a", "b"])
    net = core.Net("wrong")
    net.Relu("x", "y")
    with pytest.raises(TypeError, match="list or a dict"):
        net.AddGradientOperators("y")


def test_sparse_where_dense_is_needed_is_refused() -> None:
    op = core.CreateOperator("Relu", ["x"], ["y"])
    with pytest.raises(EnforceNotMet, match="sparse one"):
        Registry.GetGradientForOp(op, [core.GradientSlice("i", "v")])


def test_a_net_is_as_before_when_its_gradients_are_refused() -> None:
    net = core.Net("refused")
    net.Relu("x", "y")
    net.Floor("y", "z")
    before = net.Proto().SerializeToString()
    with pytest.raises(EnforceNotMet):
        net.AddGradientOperators(["z"])
    assert net.Proto().SerializeToString() == before


def test_blob_that_is_written_over_is_refused() -> None:
    net = core.Net("over")
    net.Sin("x", "y")
    net.Relu("x", "x")
    with pytest.raises(EnforceNotMet, match="version 0 of 'x', but currently we have version 1"):
        net.AddGradientOperators(["y"])


def test_stop_gradient_that_nothing_uses_is_refused() -> None:
    net = core.Net("orphan")
    net.StopGradient("x", "y")
    with pytest.raises(ValueError, match="orphan"):
        net.AddGradientOperators(["y"])


def test_dense_and_sparse_gradients_of_one_blob_are_refused() -> None:
    net = core.Net("mix")
    net.Gather(["x", "ids"], "a")
    net.Copy("x", "b")
    net.DotProduct(["a", "b"], "c")
    with pytest.raises(EnforceNotMet, match="mix of sparse and dense"):
        net.AddGradientOperators(["c"])


def test_the_ir_counts_the_versions_of_blobs() -> None:
    net = core.Net("versions")
    net.Relu("x", "y")
    net.Relu("y", "y")
    first, second = core.IR(net.Proto().op).ssa
    assert isinstance(first, core.OpSSA)
    assert (first.in_versions, first.out_versions) == ({"x": 0}, {"y": 0})
    assert (second.in_versions, second.out_versions) == ({"y": 0}, {"y": 1})
    assert core.IR(net.Proto().op).frontier == {"x": 0, "y": 1}


def test_the_place_of_a_gradient_in_a_list_is_found() -> None:
    listed = ["a", core.GradientSlice("indices", "values"), None]
    assert [core.GetIndexFromGradientList(listed, name) for name in ("a", "values", "b")] == [
        0,
        1,
        None,
    ]
    assert core.GradGenMeta("op", 0, None, None).grad_op == "op"
    assert core.SparseGradGenMeta(*range(6)).idx_values == 3


@pytest.mark.parametrize("name", ["a_grad", "given"])
def test_gradient_of_a_pass_that_is_given_is_replaced_as_in_caffe2(name: str) -> None:
    operators = [
        core.CreateOperator(*one)
        for one in (("Relu", "x", "a"), ("Tanh", "a", "y"), ("Sigmoid", "a", "z"))
    ]
    given = {"y": "y_grad", "z": "z_grad", "a": name}
    found, gradients = core.GradientRegistry.GetBackwardPass(operators, given)
    assert [(op.type, [*op.input], [*op.output]) for op in found] == [
        ("SigmoidGradient", ["z", "z_grad"], ["a_grad"]),
        ("TanhGradient", ["y", "y_grad"], ["_a_grad_autosplit_0"]),
        ("Sum", ["a_grad", "_a_grad_autosplit_0"], ["a_grad"]),
        ("ReluGradient", ["a", "a_grad"], ["x_grad"]),
    ]
    assert gradients["a"] == "a_grad"
