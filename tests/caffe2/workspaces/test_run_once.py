# SPDX-License-Identifier: Apache-2.0
"""RunOperatorOnce again and again: what is kept for the next run, and what is noticed."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable

import numpy as np
import pytest
import torch

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.workspaces.current import current
from tests.helpers.operators import operator_of

pytestmark = pytest.mark.usefixtures("fresh_workspace")

RELU = core.CreateOperator("Relu", "x", "y")


def feed(name: str, *values: float) -> None:
    workspace.FeedBlob(name, np.array(values, np.float32))


def warm() -> None:
    """Run RELU until it is kept with its program."""
    feed("x", -1, 2)
    for _ in range(5):
        assert workspace.RunOperatorOnce(RELU)
    assert current.ready


def test_values_sizes_and_types_that_change_are_noticed() -> None:
    warm()
    feed("x", 3, -4)
    workspace.RunOperatorOnce(RELU)
    assert workspace.FetchBlob("y").tolist() == [3, 0]
    feed("x", 1, -2, 3)
    for _ in range(3):
        workspace.RunOperatorOnce(RELU)
        assert workspace.FetchBlob("y").tolist() == [1, 0, 3]
    workspace.FeedBlob("x", np.array([1], np.int32))
    with pytest.raises(EnforceNotMet, match="takes float"):
        workspace.RunOperatorOnce(RELU)
    assert workspace.FetchBlob("y").tolist() == [1, 0, 3]
    feed("x", -5, 5)
    workspace.RunOperatorOnce(RELU)
    assert workspace.FetchBlob("y").tolist() == [0, 5]


def test_removed_blobs_are_other_blobs_afterwards() -> None:
    warm()
    old = workspace.FetchTorch("y")
    del workspace.blobs["y"]
    feed("x", 7, -7)
    workspace.RunOperatorOnce(RELU)
    assert workspace.FetchBlob("y").tolist() == [7, 0]
    assert old.tolist() == [0, 2]
    del workspace.blobs["x"]
    with pytest.raises(EnforceNotMet):
        workspace.RunOperatorOnce(RELU)


@pytest.mark.parametrize("how", ["reset", "delete", "clear", "switch"])
def test_blobs_end_where_their_names_do(how: str) -> None:
    warm()
    blob = weakref.ref(workspace.C.Workspace.current.blobs["x"])
    gc.disable()
    try:
        if how == "reset":
            workspace.ResetWorkspace()
        elif how == "delete":
            del workspace.blobs["x"]
        elif how == "clear":
            workspace.blobs.clear()
        else:
            workspace.SwitchWorkspace("other", True)
            assert not current.ready
            workspace.SwitchWorkspace("default")
            workspace.RunOperatorOnce(RELU)
            workspace.ResetWorkspace()
        assert blob() is None
    finally:
        gc.enable()


def test_memory_of_others_is_not_kept() -> None:
    tensor = torch.ones(3)
    workspace.FeedBlob("x", tensor)
    for _ in range(5):
        workspace.RunOperatorOnce(RELU)
    seen = weakref.ref(tensor)
    feed("x", 1)
    del tensor
    assert seen() is None


def test_settings_of_torch_change_nothing() -> None:
    warm()
    with torch.inference_mode(), torch.device("meta"):
        for _ in range(3):
            workspace.RunOperatorOnce(RELU)
    feed("x", 4, -4)
    workspace.RunOperatorOnce(RELU)
    assert workspace.FetchBlob("y").tolist() == [4, 0]


def test_threads_run_one_operator_at_once() -> None:
    operator = core.CreateOperator("Softmax", "x", "s")
    workspace.FeedBlob("x", np.random.default_rng(0).normal(size=(64, 64)).astype("f"))
    workspace.RunOperatorOnce(operator)
    expected = workspace.FetchBlob("s")

    def run() -> None:
        for _ in range(300):
            workspace.RunOperatorOnce(operator)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(workspace.FetchBlob("s"), expected)


@pytest.mark.parametrize(
    "run",
    [workspace.RunOperatorOnce, lambda op: workspace.Workspace.current.run(op)],
    ids=["RunOperatorOnce", "Workspace.run"],
)
def test_a_blob_that_another_thread_has_fed_outlives_the_operator_that_created_it(
    run: Callable[[object], object],
) -> None:
    feed("x", 1)

    def body(op: object) -> None:
        thread = threading.Thread(target=feed, args=("y", 5))
        thread.start()
        thread.join()
        raise ValueError("after that")

    op = core.CreateOperator(operator_of(body), "x", "y")
    with pytest.raises(EnforceNotMet, match="after that"):
        run(op)
    assert workspace.FetchBlob("y").tolist() == [5]
