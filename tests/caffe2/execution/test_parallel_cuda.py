# SPDX-License-Identifier: Apache-2.0
"""On a CUDA device: threads of nets and plans work on the streams that are current for the caller.

The caller's stream is busy with what the operators read, so that an operator on another stream
reads zeros.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("fresh_workspace")]
LONG = 60  # seconds; what should happen at once happens long before
N = 1 << 16


class Meeting:
    """Functions for operators that wait for each other, so that each has a thread."""

    def __init__(self, parties: int) -> None:
        self.barrier = threading.Barrier(parties)
        self.seen: list[tuple[int, ...]] = []

    def __call__(self, inputs: Any, outputs: Any) -> None:
        self.barrier.wait(LONG)
        self.seen.append(current())


def current() -> tuple[int, ...]:
    """Return torch's current device and its stream on each device."""
    streams = map(torch.cuda.current_stream, range(torch.cuda.device_count()))
    return torch.cuda.current_device(), *(stream.cuda_stream for stream in streams)


def by_net(kind: str) -> Callable[[Meeting], object]:
    def run(meeting: Meeting) -> None:
        net = core.Net("net")
        net.Proto().type, net.Proto().num_workers = kind, 3
        for name in "abc":
            net.Python(meeting)([], [name])
        workspace.RunNetOnce(net)

    return run


def step_of(meeting: Meeting) -> Any:
    steps = []
    for name in "abc":
        net = core.Net(name)
        net.Python(meeting)([], [name])
        steps.append(core.execution_step(name, net))
    return core.execution_step("all", steps, concurrent_substeps=True)


def by_step(meeting: Meeting) -> None:
    workspace.RunPlan(step_of(meeting))


def in_background(meeting: Meeting) -> None:
    running = workspace.RunPlanInBackground(step_of(meeting))
    running._thread.join(LONG)
    assert running.is_succeeded()


RUNS: dict[str, Callable[[Meeting], object]] = {
    "dag": by_net("dag"),
    "async_scheduling": by_net("async_scheduling"),
    "parallel": by_net("parallel"),
    "concurrent substeps": by_step,
    "background": in_background,
}


@pytest.mark.parametrize("how", RUNS)
def test_threads_have_the_callers_device_and_streams(how: str) -> None:
    count = torch.cuda.device_count()
    sides = [torch.cuda.Stream(device) for device in range(count)]
    expected = []
    meeting = Meeting(3)
    for device in range(count):
        with torch.cuda.stream(sides[0]), torch.cuda.stream(sides[-1]), torch.cuda.device(device):
            expected += [current()] * 3
            RUNS[how](meeting)
    with torch.cuda.device(count - 1):  # the default streams of another device
        expected += [current()] * 3
        RUNS[how](meeting)
    expected += [current()] * 3
    RUNS[how](meeting)  # and no other streams than these afterwards
    assert meeting.seen == expected


@pytest.mark.parametrize("kind", ["simple", "dag", "async_scheduling", "parallel"])
def test_operators_come_after_what_the_caller_queued(kind: str) -> None:
    net = core.Net("net")
    net.Proto().type, net.Proto().num_workers = kind, 4
    with core.DeviceScope(core.DeviceOption(caffe2_pb2.CUDA, 0)):
        for i in range(8):
            net.Scale("x", f"y{i}", scale=float(i))
        net.Sum([f"y{i}" for i in range(8)], "y")
    t = torch.zeros(N, device="cuda")
    workspace.FeedBlob("x", t)
    workspace.CreateNet(net)
    side = torch.cuda.Stream()
    for value in (1, 2):
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(100_000_000)
            t.fill_(value)
            workspace.RunNet(net)
            total = workspace.FetchTorch("y").sum()
            assert total.item() == 28 * value * N
