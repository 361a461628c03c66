# SPDX-License-Identifier: Apache-2.0
"""Operators that are classes run on CUDA where Caffe2 registers them for it.

Counters, queues and control flow are on the host; what they give out is on the device. Their inputs
are still being written when they run: what does not wait reads zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.files.databases import open_writer
from bridge.caffe2.proto import caffe2_pb2
from bridge.caffe2.utils import MakeArgument
from tests.helpers.host_waits import no_host_waits
from tests.helpers.operators import run_operator

pytestmark = pytest.mark.cuda
LAST = torch.cuda.device_count() - 1
OPTION = core.DeviceOption(caffe2_pb2.CUDA, LAST)
VALUES = np.array([1.0, 2.0, 3.0, 6.0], np.float32)


@pytest.fixture(autouse=True)
def late_x(fresh_workspace: None) -> Iterator[None]:
    """The blob x on the last device, whose values are written late on the current stream."""
    source = torch.from_numpy(VALUES).to(f"cuda:{LAST}")
    t = torch.zeros_like(source)
    workspace.FeedBlob("x", t)
    side = torch.cuda.Stream(LAST)
    torch.cuda.synchronize(LAST)
    with torch.cuda.stream(side), torch.cuda.device(0):
        with torch.cuda.device(LAST):
            torch.cuda._sleep(20_000_000)
        t.copy_(source)
        yield


def run(op_type: str, inputs: list[str], outputs: list[str], **arguments: Any) -> None:
    run_operator(op_type, inputs, outputs, device_option=OPTION, **arguments)


def values(name: str) -> Any:
    """Return the elements of a blob, which is on the device of the operators."""
    t = workspace.FetchTorch(name)
    assert t.device == torch.device("cuda", LAST)
    return t.tolist()


@pytest.mark.parametrize(
    ("op_type", "arguments"),
    [("Alias", {}), ("AliasWithName", {"arg": [MakeArgument("name", "n")]})],
)
def test_aliases_share_memory_on_cuda_and_refuse_host_memory(
    op_type: str, arguments: dict[str, Any]
) -> None:
    run(op_type, ["x"], ["y"], **arguments)
    assert workspace.FetchTorch("y").data_ptr() == workspace.FetchTorch("x").data_ptr()
    assert values("y") == VALUES.tolist()
    workspace.FeedBlob("host", VALUES)
    with pytest.raises(EnforceNotMet, match="CopyCPUToGPU"):
        run(op_type, ["host"], ["y"], **arguments)


def test_accumulate_adds_without_waiting() -> None:
    with no_host_waits():
        run("Accumulate", ["x"], ["y"])
        run("Accumulate", ["x"], ["y"], gamma=0.5)
    assert values("y") == (VALUES * 1.5).tolist()
    workspace.FeedBlob("z", VALUES)  # on the host: not what the output held
    run("Accumulate", ["x"], ["z"])
    assert values("z") == VALUES.tolist()


def test_coalesced_tensors_share_memory() -> None:
    run("UnsafeCoalesce", ["x", "x"], ["a", "b", "all"])
    assert values("all") == [*VALUES, *VALUES]
    workspace.FetchTorch("b").fill_(7)
    assert values("all") == [*VALUES, 7, 7, 7, 7]


def test_print_and_summarize_read_cuda_memory(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run("Print", ["x"], [])
    assert capfd.readouterr().err == "Tensor x of type float. Dims: (4,): 1,2,3,6\n"
    run("Summarize", ["x"], ["y"])
    assert values("y") == pytest.approx([1, 6, 3, np.std(VALUES, ddof=1)])


def test_counters_work_beside_cuda_blobs() -> None:
    run("CreateCounter", [], ["counter"], init_count=2)
    run("CountUp", ["counter"], ["before"])
    run("RetrieveCount", ["counter"], ["count"])
    run("CountDown", ["counter"], ["was_done"])
    run("ResetCounter", ["counter"], ["former"])
    run("CheckCounterDone", ["counter"], ["done"])
    names = ["before", "count", "was_done", "former", "done"]
    assert [values(name) for name in names] == [2, 3, False, 2, True]


def test_iterations_are_counted_on_the_host() -> None:
    workspace.RunOperatorOnce(core.CreateOperator("CreateMutex", [], ["mutex"]))
    run("Iter", [], ["count"])
    run("Iter", ["count"], ["count"])
    run("AtomicIter", ["mutex", "count"], ["count"])
    assert not workspace.FetchTorch("count").is_cuda
    assert workspace.FetchBlob("count").tolist() == [3]
    run("LearningRate", ["count"], ["rate"], base_lr=0.5, policy="fixed")
    assert np.ravel(values("rate")).tolist() == [0.5]


def test_queues_pass_cuda_tensors() -> None:
    run("CreateBlobsQueue", [], ["queue"], capacity=4)
    for scale in (1.0, 2.0, 3.0):
        run("Scale", ["x"], ["y"], scale=scale)
        run("SafeEnqueueBlobs", ["queue", "y"], ["y", "failed"])
        assert values("failed") is False
    run("Copy", ["x"], ["y"])
    run("EnqueueBlobs", ["queue", "y"], ["y"])
    run("DequeueBlobs", ["queue"], ["z"])
    assert values("z") == VALUES.tolist()
    run("SafeDequeueBlobs", ["queue"], ["z", "failed"], num_records=2)
    assert values("z") == [*(2 * VALUES), *(3 * VALUES)]
    run("CloseBlobsQueue", ["queue"], [])
    run("SafeDequeueBlobs", ["queue"], ["z", "failed"])
    assert values("z") == VALUES.tolist()
    run("SafeDequeueBlobs", ["queue"], ["z", "failed"])
    assert values("failed") is True


def test_if_and_while_run_nets_on_cuda() -> None:
    doubled, compared = core.Net("doubled"), core.Net("compared")
    with core.DeviceScope(OPTION):
        doubled.Scale("x", "x", scale=2.0)
        compared.ConstantFill([], "most", shape=[1], value=90.0)
        compared.SumElements("x", "sum")
        compared.LT(["sum", "most"], "again", broadcast=1)
    compared.Proto().external_output[:] = ["again"]
    workspace.RunNetOnce(compared)
    run("If", ["again"], [], then_net=doubled.Proto())
    assert values("x") == (2 * VALUES).tolist()
    run("While", ["again"], [], loop_net=doubled.Proto(), cond_net=compared.Proto())
    assert values("x") == (8 * VALUES).tolist()
    workspace.FeedBlob("again", np.array([True]))
    with pytest.raises(EnforceNotMet, match="CopyCPUToGPU"):
        run("If", ["again"], [], then_net=doubled.Proto())


def test_barriers_keep_values_and_free_empties_blobs() -> None:
    run("AsyncNetBarrier", ["x"], ["x"])
    assert values("x") == VALUES.tolist()
    run("Free", ["x"], ["x"])
    assert not workspace.Workspace.current.blobs["x"].is_tensor()


def test_tensors_of_a_database_go_to_cuda(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    with open_writer("minidb", path) as db:
        for i in range(2):
            record = caffe2_pb2.TensorProtos()
            numbers, text = record.protos.add(), record.protos.add()
            numbers.dims.append(2)
            numbers.data_type = core.DataType.FLOAT
            numbers.float_data.extend([i, i + 1])
            text.data_type = core.DataType.STRING
            text.string_data.append(b"%d" % i)
            db.put(b"%d" % i, record.SerializeToString())
    run("CreateDB", [], ["reader"], db=path, db_type="minidb")
    run("TensorProtosDBInput", ["reader"], ["numbers", "text"], batch_size=2)
    assert values("numbers") == [[0, 1], [1, 2]]
    assert workspace.FetchBlob("text").tolist() == [b"0", b"1"]


def python_net(function: Any, inputs: list[str], outputs: list[str], op_type: str) -> core.Net:
    net = core.Net("python")
    with core.DeviceScope(OPTION):
        net.Python(function)(inputs, outputs)
    net.Proto().op[0].type = op_type
    return net


def test_python_functions_have_copies_on_the_host() -> None:
    def function(inputs: Any, outputs: Any) -> None:
        assert isinstance(inputs[0].data, np.ndarray)
        assert inputs[1].data.tolist() == [5]
        inputs[0].data[:] += 1  # also output 0
        outputs[1].feed(np.array([b"text"], object))
        outputs[2].feed(inputs[0].data * 2)

    workspace.FeedBlob("host", np.array([5]))
    net = python_net(function, ["x", "host"], ["x", "text", "y"], "Python")
    given = workspace.FetchTorch("x")
    workspace.RunNetOnce(net)
    assert values("x") == (VALUES + 1).tolist()
    assert given.tolist() == (VALUES + 1).tolist()
    assert values("y") == (2 * VALUES + 2).tolist()
    assert workspace.FetchBlob("text").tolist() == [b"text"]


def test_python_functions_of_dlpack_have_the_tensors_themselves() -> None:
    def function(inputs: Any, outputs: Any) -> None:
        x = torch.from_dlpack(inputs[0])
        assert x.data_ptr() == given.data_ptr()
        outputs[0].feed(x * 2)
        outputs[1]._reshape([2])
        torch.from_dlpack(outputs[1]).fill_(7)

    given = workspace.FetchTorch("x")
    net = python_net(function, ["x"], ["y", "z"], "PythonDLPack")
    with no_host_waits():
        workspace.RunNetOnce(net)
    assert values("y") == (2 * VALUES).tolist()
    assert values("z") == [7, 7]


def test_gradients_of_python_functions_run_on_cuda() -> None:
    def square(inputs: Any, outputs: Any) -> None:
        outputs[0].feed(inputs[0].data ** 2)

    def gradient(inputs: Any, outputs: Any) -> None:
        outputs[0].feed(2 * inputs[0].data * inputs[2].data)

    net = core.Net("python")
    with core.DeviceScope(OPTION):
        net.Python(square, gradient)(["x"], ["y"])
        name = net.AddGradientOperators(["y"])["x"]
    workspace.RunNetOnce(net)
    assert values(str(name)) == (2 * VALUES).tolist()
