# SPDX-License-Identifier: Apache-2.0
"""On a CUDA device: nets on any stream and any device, in graphs, with gradients, as on the host.

What a net reads is still being written when it is run; what does not wait reads zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2
from tests.helpers.host_waits import no_host_waits

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("fresh_workspace")]
N = 64
LAST = torch.cuda.device_count() - 1


def layers(net: core.Net, x: str) -> str:
    """Add what keeps its values on the device; return the name of the result."""
    y = net.Relu(x, "relu")
    y = net.Scale(y, "scaled", scale=2.0)
    y = net.Add([y, x], "added")
    y = net.Sum([y, x, x], "sum")
    y = net.Sigmoid(y, "sigmoid")
    return str(net.Mul([y, x], "y"))


def expected(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    net = core.Net("host")
    layers(net, "host_x")
    workspace.FeedBlob("host_x", x)
    workspace.RunNetOnce(net)
    return np.asarray(workspace.FetchBlob("y"))


def on_device(device: int) -> core.Net:
    net = core.Net("net")
    with core.DeviceScope(core.DeviceOption(caffe2_pb2.CUDA, device)):
        layers(net, "x")
    return net


RUNS: dict[str, Callable[[core.Net], object]] = {
    "RunNetOnce": workspace.RunNetOnce,
    "RunNet": lambda net: (workspace.CreateNet(net, True), workspace.RunNet(net)),
    "RunNet again": lambda net: (
        workspace.CreateNet(net, True),
        [workspace.RunNet(net) for _ in range(5)],
    ),
    "operators": lambda net: [workspace.RunOperatorOnce(op) for op in net.Proto().op],
    "plan": lambda net: workspace.RunPlan(core.execution_step("step", net)),
}


@pytest.mark.parametrize("device", sorted({0, LAST}))
@pytest.mark.parametrize("how", RUNS)
def test_a_net_runs_on_the_current_stream_of_its_device(how: str, device: int) -> None:
    values = np.linspace(-2, 2, N, dtype=np.float32)
    wanted = expected(values)
    source = torch.from_numpy(values).to(f"cuda:{device}")
    t = torch.zeros(N, device=f"cuda:{device}")
    workspace.FeedBlob("x", t)
    net = on_device(device)
    side = torch.cuda.Stream(device)
    torch.cuda.synchronize(device)
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)
        t.copy_(source)
        with torch.cuda.device(0):  # the current device is not the net's
            RUNS[how](net)
        y = workspace.FetchTorch("y")
        assert y.device.index == device
        np.testing.assert_allclose(y.cpu().numpy(), wanted, rtol=1e-6)


def test_the_host_waits_for_no_operator() -> None:
    workspace.FeedBlob("x", torch.ones(N, device="cuda"))
    net = on_device(0)
    workspace.CreateNet(net)
    for _ in range(5):  # what is loaded and recorded once
        workspace.RunNet(net)
    torch.cuda.synchronize()
    with no_host_waits():
        for _ in range(3):
            workspace.RunNet(net)


def test_a_net_is_captured_in_a_graph() -> None:
    t = torch.ones(N, device="cuda")
    workspace.FeedBlob("x", t)
    net = on_device(0)
    workspace.CreateNet(net)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            workspace.RunNet(net)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        workspace.RunNet(net)
        y = workspace.FetchTorch("y")
    for value in (1.0, -0.5, 3.0):
        t.fill_(value)
        graph.replay()
        torch.cuda.synchronize()
        found = y.cpu().numpy()
        np.testing.assert_allclose(found, expected(np.full(N, value, np.float32)), rtol=1e-6)


def test_gradients_on_the_device_equal_the_gradients_on_the_host() -> None:
    found = {}
    values = np.linspace(-2, 2, N, dtype=np.float32)
    for device in ("cpu", f"cuda:{LAST}"):
        workspace.ResetWorkspace()
        net = core.Net("net")
        option = core.DeviceOption(caffe2_pb2.CUDA, LAST) if device != "cpu" else None
        with core.DeviceScope(option or core.DeviceOption(caffe2_pb2.CPU)):
            y = layers(net, "x")
            net.AddGradientOperators([y])
        t = torch.zeros(N, device=device)
        workspace.FeedBlob("x", t)
        side = torch.cuda.Stream(LAST)
        torch.cuda.synchronize(LAST)
        with torch.cuda.stream(side):
            if device != "cpu":
                torch.cuda._sleep(100_000_000)
            t.copy_(torch.from_numpy(values))
            workspace.RunNetOnce(net)
            gradient = workspace.FetchTorch("x_grad")
            assert gradient.device == t.device
            found[device] = gradient.cpu().numpy()
    np.testing.assert_allclose(found[f"cuda:{LAST}"], found["cpu"], rtol=1e-5)


def test_a_net_copies_between_host_and_device() -> None:
    net = core.Net("net")
    with core.DeviceScope(core.DeviceOption(caffe2_pb2.CUDA, LAST)):
        net.CopyCPUToGPU("host", "x")
        layers(net, "x")
        net.CopyGPUToCPU("y", "back")
    values = np.linspace(-2, 2, N, dtype=np.float32)
    workspace.FeedBlob("host", values)
    side = torch.cuda.Stream(LAST)
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)
        workspace.RunNetOnce(net)
        np.testing.assert_allclose(workspace.FetchBlob("back"), expected(values), rtol=1e-6)


def test_inputs_of_another_device_are_refused() -> None:
    net = on_device(LAST)
    workspace.FeedBlob("x", np.ones(N, np.float32))
    workspace.FeedBlob("y", np.zeros(1, np.float32))
    with pytest.raises(bridge.c10.EnforceNotMet, match="CopyCPUToGPU"):
        workspace.RunNetOnce(net)
    assert workspace.FetchBlob("y").tolist() == [0]


def test_a_module_of_a_net_runs_and_differentiates_on_any_stream() -> None:
    values = np.linspace(-2, 2, N, dtype=np.float32)
    wanted = expected(values)
    net = core.Net("net")
    with core.DeviceScope(core.DeviceOption(caffe2_pb2.CUDA, 0)):
        layers(net, "x")
    net.Proto().external_input[:] = ["x"]
    net.Proto().external_output[:] = ["y"]
    module = bridge.caffe2.to_module(net)
    t = torch.zeros(N, device="cuda", requires_grad=True)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)
        with torch.no_grad():
            t.copy_(torch.from_numpy(values))
        y = module(t)
        y.sum().backward()
        np.testing.assert_allclose(y.detach().cpu().numpy(), wanted, rtol=1e-6)
        assert t.grad is not None
        assert t.grad.abs().sum().item() > 0
