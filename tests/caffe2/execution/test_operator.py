# SPDX-License-Identifier: Apache-2.0
"""What an operator author has: inputs, outputs, arguments, state."""

from typing import Any

import numpy as np
import pytest
import torch

from bridge import c10, caffe2
from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, workspace
from tests.helpers.operators import operator_class, run
from tests.helpers.workspaces import refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def feed(name: str, *values: float, dtype: Any = np.float32) -> None:
    workspace.FeedBlob(name, np.array(values, dtype=dtype))


def address(name: str) -> int:
    return workspace.Workspace.current.blobs[name].Get(caffe2.Tensor).raw_data()


def test_output_with_dims_is_allocated_and_keeps_a_buffer_that_fits() -> None:
    sizes = [[4], [2, 2], [3], [4]]
    seen = []

    def body(op: Any) -> None:
        y = op.Output(0, sizes[len(seen)], "float32")
        y.mutable_data()[:] = len(seen)
        seen.append((y.raw_data(), list(y.sizes())))

    for _ in sizes:
        run(body, [], ["y"])
    assert len({at for at, _ in seen}) == 1
    assert [one for _, one in seen] == sizes
    assert workspace.FetchBlob("y").tolist() == [3.0] * 4


@pytest.mark.parametrize("options", ["int32", c10.dtype("int32"), c10.int32, torch.int32])
def test_output_takes_options_of_every_form(options: Any) -> None:
    def body(op: Any) -> None:
        assert op.Output(0, [2], options).dtype() is c10.int32
        assert (
            op.Output(0, [2], dtype=options, device="cpu").dtype() is c10.int32
            if (not isinstance(options, c10.TensorOptions))
            else True
        )
        assert op.Output(1, (2,)).dtype() is c10.float32

    run(body, [], ["y", "z"])


def test_output_of_another_type_takes_the_same_bytes_where_they_suffice() -> None:
    feed("y", 1, 2, 3)
    before = address("y")
    run(lambda op: op.Output(0, [3], "int32").mutable_data().fill(7), [], ["y"])
    assert workspace.FetchBlob("y").tolist() == [7, 7, 7]
    assert address("y") == before


def test_x_output_shares_the_tensor() -> None:
    def body(op: Any) -> None:
        y = op.XOutput(0, [2], "float32")
        y.mutable_data()[:] = [1, 2]
        assert y.is_same(op.Output(0)) and y is not op.Output(0)
        assert op.OutputTensorOrUndefined(0).is_same(y)
        assert not op.OutputTensorOrUndefined(1).defined()

    run(body, [], ["y", "nothing"])
    assert workspace.FetchBlob("y").tolist() == [1, 2]


def test_old_style_output_is_resized_and_typed_by_the_operator() -> None:
    def body(op: Any) -> None:
        y = op.Output(0)
        assert y.numel() == 0 and not y.dtype()
        y.ResizeLike(op.Input(0))
        y.mutable_data("float32")[:] = op.Input(0).data("float32") + 1

    feed("x", 1, 2)
    run(body, ["x"], ["y"])
    assert workspace.FetchBlob("y").tolist() == [2, 3]


def test_an_operator_in_place_writes_the_memory_of_its_input() -> None:
    def body(op: Any) -> None:
        assert op.IsInputOutputAlias(0, 0) and not op.IsInputOutputAlias(1, 0)
        x = op.Input(0)
        y = op.Output(0, x.sizes(), x.dtype())
        assert y.is_same(x)
        y.mutable_data()[:] = 2 * x.data()

    feed("x", 1, 2)
    feed("other", 0)
    shared = workspace.FetchTorch("x")
    run(body, ["x", "other"], ["x"])
    assert shared.tolist() == [2, 4]


def test_memory_of_a_torch_tensor_is_written_as_any_other() -> None:
    tensor = torch.zeros(2)
    workspace.FeedBlob("y", tensor)
    run(lambda op: op.Output(0, [2], "float32").mutable_data().fill(5), [], ["y"])
    assert tensor.tolist() == [5, 5]


@pytest.mark.parametrize("old_style", [False, True])
def test_read_only_memory_is_left_and_the_output_gets_its_own(old_style: bool) -> None:
    array = np.zeros(2, np.float32)
    array.flags.writeable = False
    import bridge

    workspace.FeedBlob("y", bridge.from_dlpack(array))

    def body(op: Any) -> None:
        y = op.Output(0) if old_style else op.Output(0, [2], "float32")
        y.mutable_data("float32")[:] = 5

    run(body, [], ["y"])
    assert array.tolist() == [0, 0]
    assert workspace.FetchBlob("y").tolist() == [5, 5]


def test_output_tensor_copy_from_and_alias() -> None:
    def body(op: Any) -> None:
        x = op.Input(0)
        copy = op.OutputTensorCopyFrom(0, None, x)
        alias = op.OutputTensorAlias(1, x)
        assert copy.raw_data() != x.raw_data() == alias.raw_data()
        assert not alias.is_same(x)

    feed("x", 1, 2)
    run(body, ["x"], ["copy", "alias"])
    workspace.FetchTorch("x")[0] = 9
    assert workspace.FetchBlob("copy").tolist() == [1, 2]
    assert workspace.FetchBlob("alias").tolist() == [9, 2]


def test_copy_from_refuses_another_type() -> None:
    feed("x", 1, 2)
    with pytest.raises(EnforceNotMet) as raised:
        run(lambda op: op.OutputTensorCopyFrom(0, "int64", op.Input(0)), ["x"], ["y"])
    refused(raised.value, "float32", "int64")


def test_inputs_and_outputs_may_be_strings_and_objects() -> None:
    def body(op: Any) -> None:
        assert op.InputIsType(0, bytes) and not op.InputIsTensorType(0, "cpu")
        assert op.InputIsTensorType(1, "cpu") and op.InputIsType(1, caffe2.Tensor)
        assert op.Input(0, bytes) == b"text"
        assert op.Input(1).data(c10.string)[:] == [b"a", b"b"]
        op.OutputBlob(0).Reset(b"made")
        op.Output(1, [1], "string").mutable_data()[:] = [b"c"]
        assert op.OutputIsType(0, bytes) and op.OutputIsTensorType(1, "cpu")

    workspace.FeedBlob("plain", "text")
    workspace.FeedBlob("strings", np.array(["a", "b"]))
    run(body, ["plain", "strings"], ["y", "z"])
    assert workspace.FetchBlob("y") == b"made"
    assert workspace.FetchBlob("z").tolist() == [b"c"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda op: op.Input(1), ("no input 1",)),
        (lambda op: op.Input(-1), ("no input -1",)),
        (lambda op: op.Output(2), ("no output 2",)),
        (lambda op: op.Input("0"), ("'0'",)),
        (lambda op: op.Output(0, [-1]), ("-1",)),
        (lambda op: op.Output(0, None, "float32"), ("sizes",)),
        (lambda op: op.Input(0, bytes), ("blob 'x'", "input 0")),
        (lambda op: op.SetOutputTensor(0, 3), ("int",)),
        (lambda op: op.OutputTensorAlias(0, caffe2.Tensor([2], "cpu")), ("content",)),
    ],
)
def test_wrong_calls_are_refused_and_named(body: Any, words: tuple[str, ...]) -> None:
    feed("x", 1)
    with pytest.raises(EnforceNotMet) as raised:
        run(body, ["x"], ["y"])
    refused(raised.value, *words, "with inputs ['x'] and outputs ['y']")


def test_input_that_is_no_tensor_is_named() -> None:
    workspace.FeedBlob("x", "text")
    with pytest.raises(EnforceNotMet) as raised:
        run(lambda op: op.Input(0), ["x"], [])
    refused(raised.value, "Blob 'x' holds a string", "input 0", kind=TypeError)


def test_an_operator_knows_its_inputs_outputs_and_device() -> None:
    feed("x", 1)

    def body(op: Any) -> None:
        assert (op.InputSize(), op.OutputSize()) == (1, 2)
        assert op.Inputs() == [op.InputBlob(0)]
        assert op.Outputs() == [op.OutputBlob(0), op.OutputBlob(1)]
        assert op.device == "cpu"
        assert op.debug_def().output == ["y", "z"]

    run(body, ["x"], ["y", "z"])


def test_arguments_are_read_by_name_and_type() -> None:
    nested = core.Net("nested")
    nested.Copy("a", "b")

    def body(op: Any) -> None:
        one, many = op.GetSingleArgument, op.GetRepeatedArgument
        assert (one("i", 0), one("i", 0.0), one("flag", False), one("f", 0.0)) == (
            3,
            3.0,
            True,
            1.5,
        )
        assert (one("s", ""), one("s", b""), one("raw", ""), one("raw", b"")) == (
            "text",
            b"text",
            b"\xff",
            b"\xff",
        )
        assert one("none", 7) == 7 and one("none") is None and one("i") == 3
        assert many("ints") == [1, 2] and many("ints", [0.0]) == [1.0, 2.0]
        assert many("floats") == [0.5] and many("strings") == ["a", b"\xff"]
        assert many("none", (4, 5)) == [4, 5] and many("none") == [] and many("empty") == []
        assert many("i") == []
        assert op.HasArgument("empty") and not op.HasArgument("none")
        assert op.HasSingleArgumentOfType("i", int)
        assert not op.HasSingleArgumentOfType("ints", int)
        assert one("net").op[0].type == "Copy"
        many("ints").append(3)
        assert many("ints") == [1, 2]

    run(
        body,
        [],
        [],
        i=3,
        f=1.5,
        flag=True,
        s="text",
        raw=b"\xff",
        ints=[1, 2],
        floats=[0.5],
        strings=["a", b"\xff"],
        empty=[],
        net=nested.Proto(),
    )


@pytest.mark.parametrize(
    "body",
    [
        lambda op: op.GetSingleArgument("ints", 0),
        lambda op: op.GetSingleArgument("f", 0),
        lambda op: op.GetSingleArgument("s", 0.0),
        lambda op: op.GetSingleArgument("i", ""),
        lambda op: op.GetRepeatedArgument("strings", [1]),
        lambda op: op.GetRepeatedArgument("floats", [1]),
    ],
)
def test_arguments_of_another_type_are_refused(body: Any) -> None:
    with pytest.raises(EnforceNotMet) as raised:
        run(body, [], [], ints=[1], f=1.5, s="x", i=1, strings=["a"], floats=[1.5])
    refused(raised.value, "Argument", kind=TypeError)


def test_state_is_kept_by_a_net_and_by_multiple_runs_and_not_by_run_once() -> None:
    @operator_class
    class Count(caffe2.Operator):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.runs = self.GetSingleArgument("start", 0)

        def RunOnDevice(self) -> None:
            self.runs += 1
            self.Output(0, [1], "int64").mutable_data()[0] = self.runs

    op = core.CreateOperator(Count, [], "n", start=10)
    for _ in range(2):
        assert workspace.RunOperatorOnce(op)
        assert workspace.FetchBlob("n").tolist() == [11]
    assert workspace.RunOperatorMultiple(op, 3)
    assert workspace.FetchBlob("n").tolist() == [13]
    net = caffe2.proto.caffe2_pb2.NetDef(name="state", op=[op])
    workspace.CreateNet(net)
    workspace.RunNet("state", 2)
    workspace.RunNet("state")
    assert workspace.FetchBlob("n").tolist() == [13]


def test_a_member_tensor_keeps_its_memory_by_reinitialize_tensor() -> None:
    addresses = []

    @operator_class
    class Cached(caffe2.Operator):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.buffer = caffe2.Tensor()

        def RunOnDevice(self) -> None:
            caffe2.ReinitializeTensor(self.buffer, [4], "float32")
            addresses.append(self.buffer.raw_data())

    workspace.RunOperatorMultiple(core.CreateOperator(Cached, [], []), 3)
    assert len(set(addresses)) == 1


def test_a_message_that_is_changed_between_runs_is_read_again() -> None:
    feed("x", 1, 2)
    op = core.CreateOperator("ConstantFill", [], "y", shape=[1], value=1.0)
    workspace.RunOperatorOnce(op)
    op.arg[1].f = 2.0
    workspace.RunOperatorOnce(op)
    assert workspace.FetchBlob("y").tolist() == [2]
    op.output[0] = "z"
    workspace.RunOperatorOnce(op)
    assert workspace.FetchBlob("z").tolist() == [2]


def test_without_super_init_the_operator_says_so() -> None:
    @operator_class
    class Forgets(caffe2.Operator):
        def __init__(self, *args: Any) -> None:
            self.args = args

        def RunOnDevice(self) -> None:
            raise AssertionError("not reached")

    with pytest.raises(EnforceNotMet) as raised:
        workspace.RunOperatorOnce(core.CreateOperator(Forgets, [], "y"))
    refused(raised.value, "super().__init__(*args)")


def test_an_operator_is_not_made_anew_while_it_runs() -> None:
    more = core.CreateOperator("any", [], ["a", "b", "c", "d"])

    def body(op: Any) -> None:
        op.__init__(more)
        op.Output(3)

    with pytest.raises(EnforceNotMet, match="cannot be made anew"):
        run(body, [], ["y"])


def test_made_by_hand_an_operator_runs_in_the_workspace_given() -> None:
    class Fill(caffe2.Operator):
        def RunOnDevice(self) -> None:
            self.Output(0, [1], "float32").mutable_data()[0] = 3

    ws = workspace.Workspace()
    assert Fill(core.CreateOperator("any", [], "y"), ws).Run()
    assert ws.fetch_blob("y").tolist() == [3]
    assert not workspace.HasBlob("y")
