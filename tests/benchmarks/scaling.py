# SPDX-License-Identifier: Apache-2.0
"""A conversion costs the same for any number of bytes, a blob and an operator among any number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

import bridge
from bridge import at, caffe2
from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2
from tests.benchmarks.harness import Effort, Row, Timer, compare, loop

FEW = 10
BLOBS: dict[str, Callable[..., Any]] = {
    "FeedBlob": workspace.FeedBlob,
    "FetchTorch": workspace.FetchTorch,
}


def routes(numel: int) -> dict[str, Timer]:
    """Give a timer for each zero-copy conversion of `numel` float32 elements.

    The memory is allocated and never touched, so the system need not have it all.
    """
    t = torch.empty(numel)
    n = np.empty(numel, np.float32)
    a = at.empty((numel,))
    c = caffe2.Tensor(a)
    name = f"of_{numel}"
    workspace.FeedBlob(name, t)
    return {
        "from_dlpack(torch)": loop("from_dlpack(t)", t=t, from_dlpack=bridge.from_dlpack),
        "from_dlpack(numpy)": loop("from_dlpack(n)", n=n, from_dlpack=bridge.from_dlpack),
        "to_torch()": loop("a.to_torch()", a=a),
        "numpy()": loop("a.numpy()", a=a),
        "np.from_dlpack(x)": loop("from_dlpack(a)", a=a, from_dlpack=np.from_dlpack),
        "torch.from_dlpack(x)": loop("from_dlpack(a)", a=a, from_dlpack=torch.from_dlpack),
        "caffe2.Tensor(at_tensor)": loop("Tensor(a)", a=a, Tensor=caffe2.Tensor),
        "at.Tensor(caffe2_tensor)": loop("Tensor(c)", c=c, Tensor=at.Tensor),
        "FeedBlob(torch)": loop("FeedBlob(name, t)", name=name, t=t, **BLOBS),
        "FetchTorch": loop("FetchTorch(name)", name=name, **BLOBS),
    }


def large_tensors(effort: Effort) -> Iterator[Row]:
    """Measure each conversion at `effort.huge` bytes over the same at 4 bytes."""
    small, large = routes(1), routes(effort.huge // 4)
    for route, timer in large.items():
        outcome = compare(timer, small[route], effort)
        yield Row(f"`{route}` of 1 GiB", "itself of 4 B", 1.3, 1.1, outcome)
    workspace.ResetWorkspace()


def many_blobs(effort: Effort) -> Iterator[Row]:
    """Measure feeding and fetching one blob among `effort.blobs` over one among ten."""
    t = torch.zeros(3)
    home = workspace.CurrentWorkspace()
    enter: dict[int, Callable[[], Any]] = {}
    for count in (FEW, effort.blobs):
        enter[count] = partial(workspace.SwitchWorkspace, f"with_{count}", True)
        enter[count]()
        for index in range(count):
            workspace.FeedBlob(f"blob_{index}", t)
    statements = {
        "FeedBlob(torch)": "FeedBlob('blob_7', t)",
        "FetchTorch": "FetchTorch('blob_7')",
    }
    for what, statement in statements.items():
        many, few = (
            loop(statement, before=enter[count], t=t, **BLOBS) for count in (effort.blobs, FEW)
        )
        yield Row(f"`{what}` with 1,000,000 blobs", "with 10", 1.5, 1.2, compare(many, few, effort))
    for switch in enter.values():
        switch()
        workspace.ResetWorkspace()
    workspace.SwitchWorkspace(home)


class BenchmarkNothing(caffe2.Operator):
    """An operator without work."""

    def RunOnDevice(self) -> None:
        """Do nothing."""


def long_nets(effort: Effort) -> Iterator[Row]:
    """Measure making and running a net of 10,000 operators over ten of 1,000."""
    caffe2.register_operator("BenchmarkNothing")(BenchmarkNothing)
    nets = {}
    for count in (1_000, 10_000):
        nets[count] = caffe2_pb2.NetDef(name=f"of_{count}")
        for i in range(count):
            one = core.CreateOperator("BenchmarkNothing", [], f"blob_{i}")
            nets[count].op.append(one)
        workspace.CreateNet(nets[count])
    for what, call in (("RunNet", workspace.RunNet), ("RunNetOnce", workspace.RunNetOnce)):
        argument = {count: f"of_{count}" if what == "RunNet" else nets[count] for count in nets}
        long = loop("call(net)", call=call, net=argument[10_000])
        short = loop("for _ in ten: call(net)", call=call, net=argument[1_000], ten=range(10))
        outcome = compare(long, short, effort)
        yield Row(f"`{what}` of 10,000 operators", "of 1,000, ten times", 1.5, 1.2, outcome)
    workspace.ResetWorkspace()


def rows(effort: Effort) -> Iterator[Row]:
    """Measure the kinds of growth."""
    yield from long_nets(effort)
    yield from large_tensors(effort)
    yield from many_blobs(effort)
