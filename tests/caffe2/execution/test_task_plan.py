# SPDX-License-Identifier: Apache-2.0
"""Which nets run in several threads, and which operators run as one task."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")

TYPES = ["dag", "async_scheduling", "parallel"]
SMALL, LARGE = (16, 16), (256, 512)


def towers(kind: str, name: str = "towers") -> core.Net:
    """Return a net of two independent branches of four layers on the blob ``x``."""
    net = core.Net(name)
    net.Proto().type, net.Proto().num_workers = kind, 2
    for tower in "ab":
        before = "x"
        for i in range(4):
            before = net.FC([before, "w", "b"], f"{name}_{tower}{i}")
    return net


def feed(rows: int, width: int) -> None:
    random = np.random.default_rng(0)
    workspace.FeedBlob("x", random.normal(size=(rows, width)).astype(np.float32))
    workspace.FeedBlob("w", random.normal(size=(width, width)).astype(np.float32) / width)
    workspace.FeedBlob("b", np.zeros(width, np.float32))


def threads() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name.startswith("caffe2-net")}


@pytest.mark.parametrize("kind", TYPES)
def test_small_branches_run_in_the_callers_thread(kind: str) -> None:
    before = threads()
    feed(*SMALL)
    net = towers(kind)
    workspace.CreateNet(net)
    for _ in range(140):
        workspace.RunNet(net)
    assert threads() <= before


@pytest.mark.parametrize("kind", TYPES)
def test_large_branches_run_in_threads_and_compute_the_same(kind: str) -> None:
    before = threads()
    feed(*LARGE)
    net, simple = towers(kind), towers("simple", "simple")
    for one in (net, simple):
        workspace.CreateNet(one)
        for _ in range(3):
            workspace.RunNet(one)
    assert threads() - before
    for tower in "ab":
        expected = workspace.FetchBlob(f"simple_{tower}3")
        np.testing.assert_array_equal(workspace.FetchBlob(f"towers_{tower}3"), expected)


def test_blobs_that_grow_bring_threads() -> None:
    before = threads()
    feed(*SMALL)
    net = towers("dag")
    workspace.CreateNet(net)
    workspace.RunNet(net)
    workspace.RunNet(net)
    feed(*LARGE)
    for _ in range(520):  # sizes are looked at once in 513 runs
        workspace.RunNet(net)
    assert threads() - before


def test_an_operator_that_waits_runs_beside_small_ones() -> None:
    """The record is put in by what stands after operators on what is taken out."""
    init = core.Net("init")
    init.CreateBlobsQueue([], "queue", capacity=1, num_blobs=1)
    workspace.RunNetOnce(init)
    workspace.FeedBlob("x", np.ones(4, np.float32))
    net = core.Net("net")
    net.Proto().type, net.Proto().num_workers = "dag", 2
    net.DequeueBlobs("queue", "taken")
    net.Scale("taken", "a", scale=2.0)
    net.Negative("taken", "b")
    net.Scale("x", "given", scale=3.0)
    net.Negative("given", "c")
    net.EnqueueBlobs(["queue", "given"], "given")
    workspace.CreateNet(net)
    for _ in range(4):
        workspace.RunNet(net)
    assert workspace.FetchBlob("a").tolist() == [6.0] * 4
