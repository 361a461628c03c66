# SPDX-License-Identifier: Apache-2.0
"""Nets of type "compiled" write what simple nets write."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
import torch

from bridge import c10
from bridge.caffe2 import core, workspace
from tests.helpers.isolate import isolated

pytestmark = [
    pytest.mark.usefixtures("fresh_workspace"),
    pytest.mark.skipif(
        not any(map(shutil.which, ("g++", "c++", "clang++"))),
        reason="torch compiles with a C++ compiler",
    ),
]

SIZES = {"w": (6, 4), "b": (6,), "w2": (3, 6), "b2": (3,)}


def feed(rows: int, seed: int = 0) -> None:
    random = np.random.default_rng(seed)
    for name, sizes in {"x": (rows, 4), "state": (rows, 3), **SIZES}.items():
        workspace.FeedBlob(name, random.normal(size=sizes).astype(np.float32))


def built(kind: str, *outputs: str) -> core.Net:
    net = core.Net(kind)
    net.Proto().type, net.Proto().name = kind, kind
    net.FC(["x", "w", "b"], "h")
    net.Relu("h", "h")
    net.FC(["h", "w2", "b2"], "y")
    net.Tanh("y", "state")  # overwrites an input
    net.Proto().external_output.extend(outputs)
    return net


def both(rows: int, *outputs: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the simple and the compiled net write."""
    found = []
    for kind in ("simple", "compiled"):
        feed(rows, seed=rows)
        if kind not in workspace.Nets():
            workspace.CreateNet(built(kind, *outputs))
        workspace.RunNet(kind)
        found.append({name: workspace.FetchBlob(name) for name in outputs or ("h", "y", "state")})
    return found[0], found[1]


@pytest.mark.parametrize("outputs", [(), ("state",)])
def test_compiled_nets_follow_changing_sizes(outputs: tuple[str, ...]) -> None:
    for rows in (2, 2, 5, 2):
        expected, actual = both(rows, *outputs)
        for name, value in expected.items():
            np.testing.assert_allclose(actual[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


def test_overwritten_inputs_keep_their_memory_and_inner_blobs_are_not_written() -> None:
    feed(2)
    workspace.CreateNet(built("compiled", "state"))
    held = workspace.FetchTorch("state")
    for _ in range(3):
        held.zero_()
        workspace.RunNet("compiled")
        assert workspace.FetchTorch("state").data_ptr() == held.data_ptr()
        assert held.abs().sum() > 0
    assert not workspace.Workspace.current.blobs["h"].IsType(c10.tensor)


def test_one_input_has_one_result_in_each_of_sixty_runs() -> None:
    feed(5)
    workspace.CreateNet(built("compiled", "y", "state"))
    seen = set()
    for turn in range(60):
        if turn % 20 == 10:  # inputs of other sizes in between
            feed(3)
            workspace.RunNet("compiled")
        feed(5)
        workspace.RunNet("compiled")
        seen.add(b"".join(workspace.FetchBlob(name).tobytes() for name in ("y", "state")))
        assert not workspace.Workspace.current.blobs["h"].IsType(c10.tensor)
    assert len(seen) == 1


def test_operators_that_torch_cannot_compile_run_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*arguments: Any) -> Any:
        raise RuntimeError("no compiler")

    monkeypatch.setattr("bridge.caffe2.execution.compiled._compiled_graph", refuse)
    feed(2)
    workspace.CreateNet(built("simple"))
    workspace.RunNet("simple")
    expected = workspace.FetchBlob("y")
    workspace.CreateNet(built("compiled"))
    with pytest.warns(RuntimeWarning, match="operators 0 to 3 .*no compiler"):
        workspace.RunNet("compiled")
    for _ in range(3):  # it says so once
        workspace.RunNet("compiled")
        np.testing.assert_array_equal(workspace.FetchBlob("y"), expected)


def test_sizes_beyond_the_most_run_by_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.caffe2.execution.compiled.MOST_SIZES", 1)
    workspace_of_two = [both(rows, "y") for rows in (2, 3, 2, 3)]
    for expected, actual in workspace_of_two:
        np.testing.assert_allclose(actual["y"], expected["y"], rtol=1e-5, atol=1e-6)
    for _, actual in workspace_of_two[2:]:
        first = workspace_of_two[len(actual["y"]) - 2][1]
        np.testing.assert_array_equal(actual["y"], first["y"])


def test_dropout_in_test_mode_is_a_part_of_a_segment() -> None:
    feed(2)
    net = built("compiled", "y", "z")
    net.Dropout("y", ["y", "mask"], is_test=1)
    net.Relu("y", "z")
    workspace.CreateNet(net)
    run = workspace.Workspace.current.nets["compiled"]._run_by
    assert len(run._parts) == 1
    workspace.RunNet("compiled")
    expected = np.maximum(workspace.FetchBlob("y"), 0)
    np.testing.assert_array_equal(workspace.FetchBlob("z"), expected)


def test_an_error_is_that_of_the_operator() -> None:
    feed(2)
    net = built("compiled")
    workspace.CreateNet(net)
    workspace.FeedBlob("w2", np.ones((3, 7), np.float32))
    with pytest.raises(c10.EnforceNotMet, match=r"'FC'.*position 2 of net 'compiled'"):
        workspace.RunNet(net)
    feed(2)
    workspace.RunNet(net)


def test_an_error_for_values_is_that_of_the_operator_and_nothing_is_written_before() -> None:
    net = core.Net("rows")
    net.Proto().type = "compiled"
    net.Add(["w", "step"], "w")
    net.Gather(["w", "indices"], "rows")
    net.Scale("rows", "y", scale=2.0)
    net.Proto().external_output.extend(["w", "y"])
    workspace.FeedBlob("w", np.zeros((4, 2), np.float32))
    workspace.FeedBlob("step", np.ones((4, 2), np.float32))
    workspace.FeedBlob("indices", np.array([1, 2], np.int32))
    workspace.CreateNet(net)
    for runs in range(1, 4):
        workspace.FeedBlob("indices", np.array([1, 2], np.int32))
        workspace.RunNet(net)
        assert workspace.FetchBlob("w").tolist() == [[2 * runs - 1] * 2] * 4
        workspace.FeedBlob("indices", np.array([1, 9], np.int32))
        with pytest.raises(c10.EnforceNotMet, match=r"'Gather'.*position 1 of net 'rows'"):
            workspace.RunNet(net)
        assert workspace.FetchBlob("y").tolist() == [[4 * runs - 2] * 2] * 2
        # as of a simple net, whose operators before have run
        assert workspace.FetchBlob("w").tolist() == [[2 * runs] * 2] * 4


def test_blobs_may_swap_their_values() -> None:
    net = core.Net("swap")
    net.Proto().type = "compiled"
    net.StopGradient("x", "old")
    net.Negative("x", "x")
    net.StopGradient("y", "kept")
    net.StopGradient("old", "y")
    net.Add(["kept", "x"], "x")
    net.Proto().external_output.extend(["x", "y"])
    workspace.FeedBlob("x", np.array([1, 2], np.float32))
    workspace.FeedBlob("y", np.array([30, 40], np.float32))
    workspace.RunNetOnce(net)
    assert workspace.FetchBlob("x").tolist() == [29, 38]
    assert workspace.FetchBlob("y").tolist() == [1, 2]


def test_a_blob_that_shares_the_memory_of_an_overwritten_one_has_its_new_value() -> None:
    net = core.Net("shared")
    net.Proto().type = "compiled"
    net.Negative("x", "x")
    net.Scale("y", "z", scale=3.0)
    net.Proto().external_output.extend(["x", "z"])
    values = torch.tensor([1.0, 2.0, 3.0])
    workspace.FeedBlob("x", values[:2])
    workspace.FeedBlob("y", values[1:])
    for sign in (-1, 1):
        workspace.RunNetOnce(net)
        assert workspace.FetchBlob("x").tolist() == [sign * 1, sign * 2]
        assert workspace.FetchBlob("z").tolist() == [sign * 6, 9]


@pytest.mark.parametrize("shift", [0, 1])
def test_an_output_in_the_memory_of_an_input_changes_it_for_later_operators(shift: int) -> None:
    memory, found = torch.empty(5, 4), {}
    workspace.FeedBlob("x", memory)
    for kind in ("simple", "compiled"):
        net = core.Net(kind)
        net.Proto().type = kind
        net.Sigmoid("x", "y")
        net.Tanh("x", "z")
        net.Exp("y", "w")
        workspace.CreateNet(net)
        for run in range(3):
            memory.copy_(torch.arange(20.0).reshape(5, 4))
            workspace.FeedBlob("x", memory[:4])
            workspace.FeedBlob("y", memory[shift : 4 + shift])
            workspace.RunNet(net)
            found[kind, run] = np.stack([workspace.FetchBlob(name) for name in "xyzw"])
    for values in found.values():
        np.testing.assert_allclose(values, found["simple", 0], rtol=1e-6)


def test_operators_that_cannot_be_compiled_run_between_segments() -> None:
    seen = []
    net = core.Net("mixed")
    net.Proto().type = "compiled"
    net.Tanh("x", "a")
    net.Sigmoid("a", "b")
    net.Python(lambda inputs, outputs: seen.append(inputs[0].data.copy()))(["b"], ["c"])
    net.Relu("b", "d")
    net.Tanh("d", "e")
    net.Proto().external_output.append("e")
    feed(2)
    workspace.RunNetOnce(net)
    middle = 1 / (1 + np.exp(-np.tanh(workspace.FetchBlob("x"))))
    np.testing.assert_allclose(seen[0], middle, rtol=1e-5)
    np.testing.assert_allclose(workspace.FetchBlob("e"), np.tanh(middle), rtol=1e-5)


def test_training_updates_parameters_in_their_memory() -> None:
    feed(2)
    net = core.Net("training")
    net.FC(["x", "w", "b"], "h")
    net.Tanh("h", "y")
    net.ConstantFill("y", "y_grad", value=1.0)
    net.AddGradientOperators({"y": "y_grad"})
    net.Proto().op.append(core.CreateOperator("Scale", ["w_grad"], ["step"], scale=-0.1))
    net.Proto().op.append(core.CreateOperator("Add", ["w", "step"], ["w"]))
    for kind in ("simple", "compiled"):
        feed(2)
        net.Proto().type = kind
        net.Proto().name = kind
        workspace.CreateNet(net)
        address = workspace.FetchTorch("w").data_ptr()
        for _ in range(3):
            workspace.RunNet(kind)
        assert workspace.FetchTorch("w").data_ptr() == address
        if kind == "simple":
            expected = workspace.FetchBlob("w")
    np.testing.assert_allclose(workspace.FetchBlob("w"), expected, rtol=1e-5)


@pytest.mark.parametrize("size", [4, 200])
@pytest.mark.parametrize("writer", [("Gather", ["z", "rows"], {}), ("Shape", ["z"], {})])
@pytest.mark.parametrize("kind", ["simple", "compiled"])
def test_the_alias_of_a_blob_that_is_overwritten_by_less_has_its_elements_from_run_2_on(
    kind: str, writer: tuple[str, list[str], dict[str, object]], size: int
) -> None:
    # As in Caffe2, where a buffer that is large enough is kept, whatever type it had.
    op_type, inputs, arguments = writer
    net = core.Net("alias")
    net.Proto().type = kind
    net.Alias("t", "x")
    getattr(net, op_type)(inputs, "t", **arguments)
    net.Copy("t", "y")
    net.Proto().external_output.extend(["t", "x", "y"])
    z = np.arange(4 * size, dtype=np.float32).reshape(4, size) + 1
    workspace.FeedBlob("z", z)
    workspace.FeedBlob("rows", np.array([1], np.int32))
    workspace.FeedBlob("t", np.zeros((2, size), np.float32))
    workspace.CreateNet(net)
    workspace.RunNet(net)  # the sizes are not known before: `t` gets other memory
    for _ in range(4):
        workspace.FeedBlob("t", np.zeros((2, size), np.float32))
        workspace.RunNet(net)
        written = np.array(z[1:2] if op_type == "Gather" else z.shape)
        expected = written.tobytes().ljust(8 * size, b"\0")
        assert workspace.FetchBlob("x").tobytes() == expected
        np.testing.assert_array_equal(workspace.FetchBlob("y"), written)


ROWS = np.arange(24, dtype=np.float32).reshape(8, 3) + 1
IDS = np.array([0, 0, 1, 1, 2, 2, 0, 0], np.int32)
# An operator, its inputs beside ROWS, and those that it refuses for their elements.
REFUSED_ELEMENTS: list[tuple[str, list[Any], list[Any], dict[str, Any]]] = [
    ("NanCheck", [], [], {}),
    ("Gather", [[1, 2]], [[1, -9]], {}),
    ("Gather", [[1, 2]], [[1, 8]], {}),
    ("LengthsSum", [[4, 4]], [[4, 3]], {}),
    ("LengthsMax", [[4, 4]], [[4, 5]], {}),
    ("LengthsMean", [[4, 4]], [[9, -1]], {}),
    ("SparseLengthsSum", [[0, 1, 2], [1, 2]], [[0, 1, -2], [1, 2]], {}),
    ("SparseLengthsSum", [[0, 1, 2], [1, 2]], [[0, 1, 2], [1, 3]], {}),
    ("UnsortedSegmentSum", [IDS], [IDS - 1], {"num_segments": 3}),
    ("BatchPermutation", [range(8)], [[0] * 8], {}),
    ("SquareRootDivide", [range(8)], [range(-1, 7)], {}),
    ("LabelCrossEntropy", [IDS], [IDS + 1], {}),
]


@pytest.mark.parametrize(("op_type", "given", "refused", "arguments"), REFUSED_ELEMENTS)
def test_elements_that_an_operator_refuses_are_refused_in_a_compiled_net(
    op_type: str,
    given: list[Any],
    refused: list[Any],
    arguments: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The graph as it is: what is compiled takes seconds, and is torch's affair.
    target = "bridge.caffe2.execution.compiled._compiled_graph"
    monkeypatch.setattr(target, lambda graph, tensors: graph)
    net = core.Net("refused")
    net.Proto().type = "compiled"
    net.Relu("x", "r")
    names = ["r", *(f"i{i}" for i in range(len(given)))]
    getattr(net, op_type)(names, "y", **arguments)
    net.Proto().external_output.append("y")

    def feed_rows(rows: Any, others: list[Any]) -> None:
        workspace.FeedBlob("x", rows)
        for i, one in enumerate(others):
            workspace.FeedBlob(f"i{i}", np.array(one, np.int32))

    feed_rows(ROWS, given)
    workspace.CreateNet(net)
    for _ in range(2):
        feed_rows(ROWS, given)
        workspace.RunNet(net)
        feed_rows(ROWS if refused else ROWS * np.float32("inf"), refused)
        with pytest.raises(c10.EnforceNotMet, match=f"'{op_type}'.*position 1 of net 'refused"):
            workspace.RunNet(net)


@isolated
def test_a_compiled_net_divides_integers_as_other_nets_do() -> None:
    net = core.Net("quotient")
    net.Proto().type = "compiled"
    net.Div(["a", "b"], "c")
    net.Copy("c", "d")
    net.Proto().external_output.append("d")
    lowest = np.iinfo(np.int32).min
    workspace.FeedBlob("a", np.array([lowest, lowest, 7, -7], np.int32))
    workspace.FeedBlob("b", np.array([-1, 1, 2, 2], np.int32))
    workspace.CreateNet(net)
    workspace.RunNet(net)
    assert workspace.FetchBlob("d").tolist() == [lowest, lowest, 3, -3]
    workspace.FeedBlob("b", np.array([-1, 1, 0, 2], np.int32))
    with pytest.raises(c10.EnforceNotMet, match="no integer is divided by zero"):
        workspace.RunNet(net)
