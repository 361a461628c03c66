# SPDX-License-Identifier: Apache-2.0
"""Nets that were written for a GPU become modules and files on a machine without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridge import caffe2
from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")

ABSENT = core.DeviceOption(caffe2_pb2.CUDA, 200)


def nets(by_net: bool) -> tuple[core.Net, core.Net]:
    """Return a net and its init net, whose options are those of nets or of operators."""
    init, net = core.Net("init"), core.Net("net")
    with core.DeviceScope(core.DeviceOption(caffe2_pb2.CPU) if by_net else ABSENT):
        init.GivenTensorFill([], "w", shape=[2, 3], values=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        init.ConstantFill([], "b", shape=[2], value=1.0)
        net.FC(["x", "w", "b"], "y")
        net.Relu("y", "z")
    if by_net:
        for one in (init, net):
            one.Proto().device_option.CopyFrom(ABSENT)
            for operator in one.Proto().op:
                operator.ClearField("device_option")
    return net, init


@pytest.mark.parametrize("by_net", [False, True])
def test_a_module_runs_where_its_tensors_are(by_net: bool) -> None:
    net, init = nets(by_net)
    before = net.Proto().SerializeToString()
    with pytest.warns(UserWarning, match=r"'(init|net).*' is to run on 'cuda:200'") as caught:
        module = caffe2.to_module(net, init)
    assert len(caught) == 2
    assert module(torch.ones(1, 3)).tolist() == [[7.0, 16.0]]
    assert net.Proto().SerializeToString() == before
    with pytest.raises(RuntimeError, match="torch sees"):
        workspace.RunNetOnce(init)


def test_options_in_nets_of_arguments_are_dropped_too() -> None:
    step = core.Net("step")
    with core.DeviceScope(ABSENT):
        step.Negative("x", "y")
    net = core.Net("branch")
    operator = core.CreateOperator("If", ["condition", "x"], ["y"], then_net=step.Proto())
    net.Proto().op.append(operator)
    workspace.FeedBlob("condition", np.array(True))
    with pytest.warns(UserWarning, match="cuda:200"):
        module = caffe2.to_module(net, inputs=["condition", "x"], outputs=["y"])
    assert module(torch.tensor(True), torch.ones(2)).tolist() == [-1.0, -1.0]


def test_nets_in_files_are_converted(tmp_path: Path, capsys: Any) -> None:
    from bridge.shell.main import main

    net, init = nets(False)
    for name, one in (("net", net), ("init", init)):
        (tmp_path / f"{name}.pb").write_bytes(one.Proto().SerializeToString())
    paths = [str(tmp_path / "net.pb"), "--init-net", str(tmp_path / "init.pb")]
    made = str(tmp_path / "net.pt2")
    with pytest.warns(UserWarning, match="cuda:200"):
        assert main(["caffe2", "convert", *paths, "--input", "x=1,3", "-o", made]) in (0, None)
    program = torch.export.load(made)
    assert program.module()(torch.ones(1, 3)).tolist() == [[7.0, 16.0]]
    weights = str(tmp_path / "weights.npz")
    with pytest.warns(UserWarning, match="cuda:200"):
        assert main(["caffe2", "convert", paths[2], "-o", weights]) in (0, None)
    assert np.load(weights)["b"].tolist() == [1.0, 1.0]


def test_copies_to_and_from_an_absent_gpu_are_copies() -> None:
    net = core.Net("copies")
    with core.DeviceScope(ABSENT):
        net.CopyCPUToGPU("x", "on_gpu")
        net.Negative("on_gpu", "negative")
        net.CopyGPUToCPU("negative", "y")
    with pytest.warns(UserWarning, match="cuda:200"):
        module = caffe2.to_module(net, inputs=["x"], outputs=["y"])
    assert module(torch.ones(2)).tolist() == [-1.0, -1.0]
    assert [one.type for one in net.Proto().op][::2] == ["CopyCPUToGPU", "CopyGPUToCPU"]
