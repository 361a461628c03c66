# SPDX-License-Identifier: Apache-2.0
"""Each allocation of a call of the workspace may fail; its blobs and nets are then as before.

Messages are those of protobuf's implementation in Python here: the one in C ends the process when
it finds no memory; this alone does so, by a segmentation fault (7.36.2, CPython 3.11)::

    import _testcapi
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    for n in range(60):
        _testcapi.set_nomemory(n, n + 1)
        try:
            FileDescriptorProto.FromString(b"\\n\\x01x\\x22\\x03\\n\\x01m").message_type[0].name
        except MemoryError:
            pass
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bridge.caffe2 import core, workspace
from tests.helpers.isolate import isolated_with
from tests.helpers.out_of_memory import (
    blobs,
    check_call,
    nothing,
    require_failing_allocations,
    require_python_code,
)

require_failing_allocations()


def net_of(name: str, output: str) -> core.Net:
    net = core.Net(name)
    net.AddExternalOutput(net.Copy("x", output))
    return net


NET = net_of("net", "z")
OTHER = net_of("other", "z")
COPY = core.CreateOperator("Copy", "x", "z")
FILL = core.CreateOperator("ConstantFill", [], "x", shape=[2], value=1.0)
FC = core.CreateOperator("FC", ["f", "w", "b"], "g")
MATRIX = np.zeros((2, 2), np.float32)
EMPTY = core.Net("empty")
INIT = core.Net("init")
INIT.ConstantFill([], "w", shape=[1], value=3.0)


def prepare() -> None:
    workspace.StopImmediate()
    if workspace.CurrentWorkspace() != "default":
        workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()
    workspace.FeedBlob("x", np.arange(3.0, dtype=np.float32))
    workspace.FeedBlob("z", np.zeros(3, np.float32))
    workspace.FeedBlob("f", MATRIX)
    workspace.FeedBlob("w", MATRIX)
    workspace.FeedBlob("b", MATRIX[0])
    workspace.CreateNet(NET, overwrite=True)


def plan() -> core.Plan:
    made = core.Plan("plan")
    made.AddStep(core.execution_step("step", NET))
    return made


PLAN = plan()


CALLS: dict[str, Callable[[], object]] = {
    "CreateNet": lambda: workspace.CreateNet(OTHER),
    "CreateNet over one": lambda: workspace.CreateNet(NET, overwrite=True),
    "CreateNet with inputs": lambda: workspace.CreateNet(OTHER, input_blobs=["new", "newer"]),
    "RunNetOnce": lambda: workspace.RunNetOnce(OTHER),
    "RunOperatorOnce": lambda: workspace.RunOperatorOnce(COPY),
    "RunOperatorOnce of bytes": lambda: workspace.RunOperatorOnce(FILL.SerializeToString()),
    "RunOperatorMultiple": lambda: workspace.RunOperatorMultiple(COPY, 2),
    "RunOperatorsOnce": lambda: workspace.RunOperatorsOnce([COPY]),
    "RunPlan": lambda: workspace.RunPlan(PLAN),
    "BenchmarkNet": lambda: workspace.BenchmarkNet("net", 1, 1, True),
    "BenchmarkNetOnce": lambda: workspace.BenchmarkNetOnce(OTHER, 1, 1),
    "Predictor": lambda: workspace.Predictor(INIT, NET).run([MATRIX]),
    "InferShapesAndTypes": lambda: workspace.InferShapesAndTypes([OTHER]),
    "InferShapesAndTypes with sizes": lambda: workspace.InferShapesAndTypes([NET], {"x": [3]}),
    "GetOperatorCost": lambda: workspace.GetOperatorCost(FC, ["f", "w", "b"]),
    "FillRandomNetworkInputs": lambda: workspace.FillRandomNetworkInputs(
        NET, [[[2, 3]]], [["float"]]
    ),
    "ApplyTransform": lambda: workspace.ApplyTransform("ConvToNNPack", NET),
    "ApplyTransformIfFaster": lambda: workspace.ApplyTransformIfFaster(
        "ConvToNNPack", NET, EMPTY, warmup_runs=0, main_runs=1
    ),
    "StringifyProto": lambda: workspace.StringifyProto(NET),
    "names": lambda: (
        workspace.StringifyBlobName("x"),
        workspace.StringifyNetName(NET),
        workspace.GetNetName(NET),
        workspace.GetNameScope(),
    ),
    "Workspace.create_net": lambda: workspace.Workspace.current.create_net(OTHER),
    "Workspace.run": lambda: workspace.Workspace.current.run(COPY),
    "Workspace.run of a net": lambda: workspace.Workspace.current.run(OTHER),
    "RunOperatorImmediate": lambda: workspace.RunOperatorImmediate(FILL),
}


# Several runs, the first of which have had their effect when a later one fails.
RUNS_OFTEN = {"RunOperatorMultiple", "BenchmarkNet", "BenchmarkNetOnce", "ApplyTransformIfFaster"}


def names() -> Any:
    return workspace.CurrentWorkspace(), workspace.Workspaces(), workspace.Blobs(), workspace.Nets()


@isolated_with(PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python")
@pytest.mark.parametrize("name", CALLS)
def test_a_call_without_memory_changes_nothing_and_leaks_nothing(name: str) -> None:
    require_python_code()
    function = CALLS[name]
    around = names if name in RUNS_OFTEN else blobs
    call = nothing, lambda _: function()
    wrong: Any = check_call(call, prepare, around, python_may_leak=True)
    assert not wrong, "\n".join(wrong)
