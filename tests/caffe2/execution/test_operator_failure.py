# SPDX-License-Identifier: Apache-2.0
"""An operator that fails says which it is, and leaves its outputs as they were."""

from typing import Any

import numpy as np
import pytest
import torch

from bridge import caffe2
from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2
from tests.helpers.operators import operator_of, run
from tests.helpers.workspaces import refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")


class Wrong(Exception):
    pass


def spoils(**attributes: Any) -> dict[str, Any]:
    """Ways to change output 0 before failing, by what they do."""
    return {
        "writes in place": lambda op: op.Output(0, [3], "float32").mutable_data().fill(7),
        "takes another size": lambda op: op.Output(0, [500], "float32").mutable_data().fill(7),
        "takes fewer": lambda op: op.Output(0, [2], "float32").mutable_data().fill(7),
        "takes another type": lambda op: op.Output(0, [3], "int32").mutable_data().fill(7),
        "takes a larger type": lambda op: op.Output(0, [3], "float64").mutable_data().fill(7),
        "takes strings": lambda op: op.Output(0, [3], "string").mutable_data(),
        "resizes in the old style": lambda op: op.Output(0).Resize(1),
        "frees": lambda op: op.Output(0).FreeMemory(),
        "extends": lambda op: op.Output(0).Extend(100),
        "becomes an alias": lambda op: op.OutputTensorAlias(0, caffe2.Tensor([1], [5.0])),
        "is set": lambda op: op.SetOutputTensor(0, caffe2.Tensor([1], [5.0])),
        "holds a string": lambda op: op.OutputBlob(0).Reset(b"text"),
        "holds nothing": lambda op: op.OutputBlob(0).Reset(),
        "is fed": lambda op: op.OutputBlob(0).feed(np.zeros(9)),
    }


@pytest.mark.parametrize("how", list(spoils()))
def test_the_output_is_what_it_was(how: str) -> None:
    def body(op: Any) -> None:
        spoils()[how](op)
        raise Wrong("spoilt")

    workspace.FeedBlob("y", np.array([1, 2, 3], np.float32))
    blob = workspace.Workspace.current.blobs["y"]
    tensor = blob.Get(caffe2.Tensor)
    shared = workspace.FetchTorch("y")
    before = (tensor.raw_data(), tensor.storage().nbytes(), tensor.storage().use_count())
    with pytest.raises(EnforceNotMet) as raised:
        run(body, [], ["y", "new"])
    assert isinstance(raised.value.__cause__, Wrong)
    assert workspace.FetchBlob("y").tolist() == [1, 2, 3]
    assert workspace.FetchBlob("y").dtype == np.float32
    assert blob.Get(caffe2.Tensor) is tensor
    after = (tensor.raw_data(), tensor.storage().nbytes(), tensor.storage().use_count())
    assert after == before
    shared[0] = 9
    assert workspace.FetchBlob("y").tolist() == [9, 2, 3]
    assert workspace.Blobs() == ["y"]
    # and is good for the next run
    run(lambda op: op.Output(0, [3], "float32").mutable_data().fill(4), [], ["y"])
    assert shared.tolist() == [4, 4, 4]


def test_a_fed_torch_tensor_is_what_it_was() -> None:
    tensor = torch.arange(3.0)
    workspace.FeedBlob("y", tensor)

    def body(op: Any) -> None:
        op.Output(0, [3], "float32").mutable_data().fill(7)
        raise Wrong

    with pytest.raises(EnforceNotMet):
        run(body, [], ["y"])
    assert workspace.FetchTorch("y") is tensor
    assert tensor.tolist() == [0, 1, 2]


def test_strings_are_what_they_were() -> None:
    workspace.FeedBlob("y", np.array(["a", "b"]))

    def body(op: Any) -> None:
        op.Output(0, [2], "string").mutable_data()[:] = [b"c", b"d"]
        raise Wrong

    with pytest.raises(EnforceNotMet):
        run(body, [], ["y"])
    assert workspace.FetchBlob("y").tolist() == [b"a", b"b"]


def test_an_input_in_place_is_what_it_was() -> None:
    workspace.FeedBlob("x", np.array([1, 2], np.float32))

    def body(op: Any) -> None:
        op.Output(0, [2], "float32").mutable_data().fill(7)
        raise Wrong

    with pytest.raises(EnforceNotMet):
        run(body, ["x"], ["x"])
    assert workspace.FetchBlob("x").tolist() == [1, 2]


@pytest.mark.parametrize("names", [["y", "y"], ["y", "alias"], ["alias", "y"]])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_outputs_that_share_memory_are_what_they_were(
    names: list[str], order: tuple[int, int]
) -> None:
    def body(op: Any) -> None:
        for value, i in enumerate(order):
            op.Output(i, [2], "float32").mutable_data().fill(7 + value)
        raise Wrong

    workspace.FeedBlob("y", np.array([1, 2], np.float32))
    workspace.RunOperatorOnce(core.CreateOperator("Alias", "y", "alias"))
    with pytest.raises(EnforceNotMet):
        run(body, [], names)
    assert workspace.FetchBlob("y").tolist() == workspace.FetchBlob("alias").tolist() == [1, 2]


def test_where_the_memory_of_one_output_is_gone_the_others_are_what_they_were() -> None:
    tensor = torch.arange(3.0)
    workspace.FeedBlob("gone", tensor)
    workspace.FeedBlob("y", np.array([1], np.float32))

    def body(op: Any) -> None:
        op.Output(1, [1], "float32").mutable_data().fill(7)
        op.Output(0)
        tensor.untyped_storage().resize_(0)
        raise Wrong

    with pytest.raises(EnforceNotMet, match="torch"):
        run(body, [], ["gone", "y"])
    assert workspace.FetchBlob("y").tolist() == [1]


def test_an_operator_that_writes_last_is_not_copied_and_gets_sizes_and_buffers_back() -> None:
    def body(op: Any) -> None:
        op.Output(0, [100], "int64").mutable_data().fill(7)
        raise Wrong

    workspace.FeedBlob("y", np.array([1, 2], np.float32))
    name = operator_of(body, writes_last=True)
    with pytest.raises(EnforceNotMet):
        workspace.RunOperatorOnce(core.CreateOperator(name, [], "y"))
    assert workspace.FetchBlob("y").tolist() == [1, 2]


@pytest.mark.parametrize("given", [False, 0])
def test_false_fails_the_run(given: Any) -> None:
    workspace.FeedBlob("y", np.array([1], np.float32))
    name = operator_of(lambda op: (op.Output(0, [2], "float32"), given)[1])
    with pytest.raises(EnforceNotMet) as raised:
        workspace.RunOperatorOnce(core.CreateOperator(name, [], "y", name="mine"))
    refused(raised.value, name, "'mine'", "['y']")
    assert workspace.FetchBlob("y").tolist() == [1]


@pytest.mark.parametrize("given", [True, None, 1])
def test_all_else_is_success(given: Any) -> None:
    name = operator_of(lambda op: given)
    assert workspace.RunOperatorOnce(core.CreateOperator(name, [], "y")) is True
    assert workspace.HasBlob("y")


@pytest.mark.parametrize(
    ("error", "kind"),
    [(ValueError("v"), ValueError), (TypeError("t"), TypeError), (KeyError("k"), KeyError)],
)
def test_the_error_is_of_the_kind_of_the_first_one(error: Exception, kind: Any) -> None:
    def body(op: Any) -> None:
        raise error

    with pytest.raises(EnforceNotMet) as raised:
        run(body, [], [])
    assert raised.value.__cause__ is error
    refused(raised.value, kind=kind)


def test_an_operator_that_cannot_be_made_creates_no_blob() -> None:
    def fails(self: Any, *args: Any) -> None:
        caffe2.Operator.__init__(self, *args)
        assert workspace.HasBlob("y")
        raise Wrong("in __init__")

    name = operator_of(lambda op: None, __init__=fails)
    with pytest.raises(EnforceNotMet) as raised:
        workspace.RunOperatorOnce(core.CreateOperator(name, [], "y"))
    refused(raised.value, "in __init__", name)
    assert workspace.Blobs() == []


def test_an_interrupt_passes_and_the_output_is_what_it_was() -> None:
    workspace.FeedBlob("y", np.array([1], np.float32))

    def body(op: Any) -> None:
        op.Output(0, [1], "float32").mutable_data().fill(7)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(body, [], ["y", "z"])
    assert workspace.FetchBlob("y").tolist() == [1]
    assert workspace.Blobs() == ["y"]


def test_a_class_whose_new_gives_something_else_is_refused_everywhere() -> None:
    name = operator_of(lambda op: None, __new__=lambda cls, *args: 3)
    op = core.CreateOperator(name, [], "y")
    net = caffe2_pb2.NetDef(name="odd", op=[op])
    for call in (
        lambda: workspace.RunOperatorOnce(op),
        lambda: workspace.RunNetOnce(net),
        lambda: workspace.Workspace(workspace.Workspace.current).run(net),
    ):
        with pytest.raises(EnforceNotMet, match="int"):
            call()
        assert workspace.Blobs() == []


def test_in_a_net_the_error_says_where_and_what_ran_before_stays() -> None:
    def fails(op: Any) -> None:
        op.Output(0, [1], "float32")
        raise Wrong("third")

    workspace.FeedBlob("x", np.array([1], np.float32))
    workspace.FeedBlob("c", np.array([5], np.float32))
    net = core.Net("where")
    net.Copy("x", "a")
    net.Copy("a", "b")
    bad = core.CreateOperator(operator_of(fails), ["b"], ["c"], name="bad one", debug_info="line 7")
    net.Proto().op.append(bad)
    net.Copy("x", "d")
    for call in (
        lambda: workspace.RunNetOnce(net),
        lambda: workspace.CreateNet(net) and workspace.RunNet(net),
        lambda: workspace.RunPlan(core.execution_step("s", net)),
    ):
        with pytest.raises(EnforceNotMet) as raised:
            call()
        refused(
            raised.value, bad.type, "'bad one'", "['b']", "['c']", "position 2", "'where'", "line 7"
        )
        assert isinstance(raised.value.__cause__, Wrong)
        assert workspace.FetchBlob("b").tolist() == [1]
        assert workspace.FetchBlob("c").tolist() == [5]


def test_allow_fail_gives_false_for_false_and_raises_for_errors() -> None:
    net = caffe2_pb2.NetDef(name="says no", op=[])
    net.op.append(core.CreateOperator(operator_of(lambda op: False), [], []))
    workspace.CreateNet(net)
    assert workspace.RunNet("says no", 1, True) is False
    with pytest.raises(EnforceNotMet):
        workspace.RunNet("says no")


def test_a_net_that_cannot_be_made_creates_no_blob_and_no_net() -> None:
    net = core.Net("half")
    net.ConstantFill([], "a", shape=[1])
    net.Copy("missing", "b")
    for call in (lambda: workspace.CreateNet(net), lambda: workspace.RunNetOnce(net)):
        with pytest.raises(EnforceNotMet) as raised:
            call()
        refused(raised.value, "'missing'", "position 1", kind=KeyError)
    with pytest.raises(EnforceNotMet):
        workspace.CreateNet(net, input_blobs=["other"])
    assert workspace.Blobs() == []
    assert workspace.Workspace.current.nets == {}


def test_a_run_within_a_run_restores_its_own_outputs_only() -> None:
    def inner(op: Any) -> None:
        op.Output(0, [1], "float32").mutable_data().fill(7)
        raise Wrong

    inner_name = operator_of(inner)

    def outer(op: Any) -> None:
        op.Output(0, [1], "float32").mutable_data().fill(3)
        with pytest.raises(EnforceNotMet):
            workspace.RunOperatorOnce(core.CreateOperator(inner_name, [], "inner"))

    workspace.FeedBlob("inner", np.array([1], np.float32))
    assert run(outer, [], ["y"])
    assert workspace.FetchBlob("y").tolist() == [3]
    assert workspace.FetchBlob("inner").tolist() == [1]


def test_an_error_of_python_is_told_with_the_inputs_and_arguments() -> None:
    workspace.FeedBlob("x", np.ones((2, 3), np.float32))
    op = core.CreateOperator(operator_of(lambda op: 1 // 0), ["x", "x"], [], axis=99, name="n")
    net = core.Net("net")
    net.Proto().op.append(op)
    for call in (lambda: workspace.RunOperatorOnce(op), lambda: workspace.RunNetOnce(net)):
        with pytest.raises(ZeroDivisionError) as raised:
            call()
        refused(raised.value, "float32, sizes [2, 3]", "axis=99", "division")
