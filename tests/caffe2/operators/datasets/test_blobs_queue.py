# SPDX-License-Identifier: Apache-2.0
"""Queues of blobs between threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import core, workspace
from tests.helpers.operators import run_operator

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_a_reader_waits_for_a_writer() -> None:
    run_operator("CreateBlobsQueue", [], ["q"], capacity=2)
    n = 50
    taken: list[int] = []

    def take() -> None:
        for _ in range(n):
            run_operator("DequeueBlobs", ["q"], ["out"], timeout_secs=300.0)
            taken.append(int(workspace.FetchBlob("out")[0]))

    reader = threading.Thread(target=take)
    reader.start()
    for i in range(n):
        workspace.FeedBlob("in", np.array([i]))
        run_operator("EnqueueBlobs", ["q", "in"], ["in"])
    reader.join(300)
    assert not reader.is_alive()
    assert taken == list(range(n))


def test_closing_wakes_those_who_wait() -> None:
    run_operator("CreateBlobsQueue", [], ["q"], capacity=1)
    failures: list[Exception] = []

    def take() -> None:
        try:
            run_operator("DequeueBlobs", ["q"], ["out"])
        except c10.EnforceNotMet as failure:
            failures.append(failure)

    reader = threading.Thread(target=take)
    reader.start()
    run_operator("CloseBlobsQueue", ["q"], [])
    reader.join(300)
    assert not reader.is_alive()
    assert len(failures) == 1
    assert not workspace.HasBlob("out")


def test_a_queue_moves_tensors_without_a_copy() -> None:
    run_operator("CreateBlobsQueue", [], ["q"])
    workspace.FeedBlob("x", np.array([1.0, 2.0]))
    address = workspace.Workspace.current.blobs["x"].to_torch().data_ptr()
    run_operator("EnqueueBlobs", ["q", "x"], ["x"])
    assert not workspace.Workspace.current.blobs["x"].is_tensor()
    run_operator("DequeueBlobs", ["q"], ["y"])
    assert workspace.Workspace.current.blobs["y"].to_torch().data_ptr() == address


def test_a_sample_goes_by_the_weights() -> None:
    for name in ("q", "r"):
        run_operator("CreateBlobsQueue", [], [name], capacity=20, num_blobs=2)
    for i in range(20):
        workspace.FeedBlob("x", np.array([i]))
        workspace.FeedBlob("which", np.array([7], np.int32))
        run_operator("EnqueueBlobs", ["r", "x", "which"], ["x", "which"])
    arguments = {"weights": [0.0, 2.0], "table_idx_blob": 1}
    for i in range(20):
        run_operator(
            "WeightedSampleDequeueBlobs", ["q", "r"], ["y", "which", "failed"], **arguments
        )
        assert workspace.FetchBlob("y").tolist() == [i]
        assert workspace.FetchBlob("which").tolist() == [1]
        assert not workspace.FetchBlob("failed")


@pytest.mark.parametrize("kind", ["simple", "async_scheduling"])
@pytest.mark.parametrize("operator", ["DequeueBlobs", "SafeDequeueBlobs"])
def test_a_net_that_waits_is_cancelled(kind: str, operator: str) -> None:
    run_operator("CreateBlobsQueue", [], ["q"], capacity=1)
    net = core.Net("waits")
    net.Proto().type = kind
    net.AddExternalInput("q")
    getattr(net, operator)(["q"], ["out", "status"][: 1 + operator.startswith("Safe")])
    ready = workspace.C.Workspace.current.create_net(net)
    failures: list[Exception] = []

    def run() -> None:
        try:
            ready.run()
        except c10.EnforceNotMet as error:
            failures.append(error)

    waiting = threading.Thread(target=run)
    waiting.start()
    while waiting.is_alive():  # cancelled before it waits, it does not wait either
        ready.cancel()
        waiting.join(0.1)
    assert len(failures) == 1


def test_a_closed_queue_without_a_cancel_is_told_by_the_status() -> None:
    run_operator("CreateBlobsQueue", [], ["q"], capacity=1)
    run_operator("CloseBlobsQueue", ["q"], [])
    run_operator("SafeDequeueBlobs", ["q"], ["out", "status"])
    assert bool(workspace.FetchBlob("status"))
