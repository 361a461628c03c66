# SPDX-License-Identifier: Apache-2.0
"""Into which memory a NumPy array goes when it is fed, and whose memory is never written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bridge import at, c10, caffe2
from bridge.caffe2 import workspace
from bridge.caffe2.workspace import FeedBlob, FetchBlob, FetchTorch
from tests.helpers.dlpack_producer import Producer, TensorSpec
from tests.helpers.workspaces import refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def held(name: str = "x") -> caffe2.Tensor:
    """The tensor of a blob."""
    return workspace.Workspace.current.blobs[name].Get(caffe2.Tensor)


def test_same_shape_and_type_goes_into_the_buffer_that_torch_sees() -> None:
    FeedBlob("x", np.zeros((2, 3), np.float32))
    t = FetchTorch("x")
    for array in (np.ones((2, 3), np.float32), np.full((3, 2), 2, np.float32).T):
        FeedBlob("x", array)
        assert held().raw_data() == t.data_ptr()
        assert t.tolist() == array.tolist()
    FeedBlob("x", np.full((2, 3), 3, ">f4"))
    assert t.tolist() == [[3] * 3] * 2


def test_a_tensor_that_fits_keeps_the_buffer() -> None:
    FeedBlob("x", np.arange(6.0))
    before = held().raw_data()
    FeedBlob("x", np.array([[7.0, 8.0]]))
    assert held().raw_data() == before
    assert FetchBlob("x").tolist() == [[7, 8]]
    FeedBlob("x", np.arange(6.0).reshape(3, 2))
    assert held().raw_data() == before
    assert FetchBlob("x").tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize(
    "array", [np.arange(100.0), np.arange(6, dtype=np.int64), np.array([b"a"], object)]
)
def test_a_fetched_tensor_keeps_its_values_when_a_feed_needs_other_memory(
    array: np.ndarray[Any, Any],
) -> None:
    FeedBlob("x", np.arange(6.0))
    t = FetchTorch("x")
    FeedBlob("x", array)
    assert FetchBlob("x").tolist() == array.tolist()
    assert t.tolist() == [0, 1, 2, 3, 4, 5]


def test_the_tensor_of_the_blob_stays_the_same_object_over_numpy_feeds() -> None:
    FeedBlob("x", np.arange(6.0))
    mine = held()
    for array in (
        np.arange(6.0),
        np.arange(100),
        np.array([b"a"], object),
        np.array(1.0),
    ):
        FeedBlob("x", array)
        assert mine.is_same(held())
        assert mine.sizes() == array.shape


def foreign_memory() -> list[Any]:
    array = np.arange(4, dtype=np.float32)
    return [
        torch.arange(4.0),
        at.arange(4.0),
        caffe2.Tensor([4], [0, 1, 2, 3], "float32"),
        Producer(TensorSpec.of_array(array, owner=array)),
    ]


@pytest.mark.parametrize("index", range(4), ids=["torch", "at", "caffe2", "producer"])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("size", [4, 2, 50])
def test_memory_from_outside_is_never_written(index: int, dtype: str, size: int) -> None:
    value = foreign_memory()[index]
    FeedBlob("x", value)
    theirs = FetchTorch("x")
    FeedBlob("x", np.full(size, 9, dtype))
    assert FetchBlob("x").tolist() == [9] * size
    assert theirs.tolist() == [0, 1, 2, 3]
    assert held().raw_data() != theirs.data_ptr()
    if not isinstance(value, Producer):
        assert (
            value.tolist() == [0, 1, 2, 3] if index < 2 else value.numpy().tolist() == [0, 1, 2, 3]
        )
    mine = FetchTorch("x")
    FeedBlob("x", np.full(size, 8, dtype))  # now it is the blob's own memory
    assert mine.tolist() == [8] * size


def test_a_tensor_of_one_blob_fed_to_another_is_not_written_by_its_feeds() -> None:
    FeedBlob("x", np.zeros(3))
    FeedBlob("y", FetchTorch("x"))
    FeedBlob("y", np.ones(3))
    assert FetchBlob("x").tolist() == [0, 0, 0]
    FeedBlob("y", FetchTorch("x"))
    FeedBlob("x", np.full(3, 2.0))
    assert FetchBlob("y").tolist() == [2, 2, 2]


def test_an_array_on_the_memory_of_the_blob_itself_is_fed() -> None:
    FeedBlob("x", np.arange(4.0))
    view = workspace.Workspace.current.blobs["x"].tensor().data
    FeedBlob("x", view[::-1])
    assert FetchBlob("x").tolist() == [3, 2, 1, 0]
    view = workspace.Workspace.current.blobs["x"].tensor().data
    FeedBlob("x", view[:2])
    assert FetchBlob("x").tolist() == [3, 2]


def test_a_feed_without_memory_leaves_the_blob_as_it_was() -> None:
    huge = np.broadcast_to(np.float32(0), (2**50,))
    FeedBlob("x", np.arange(3))
    t = FetchTorch("x")
    for name in ("x", "new"):
        with pytest.raises(c10.EnforceNotMet) as info:
            FeedBlob(name, huge)
        refused(info.value, name)
    assert FetchBlob("x").tolist() == [0, 1, 2]
    assert held().raw_data() == t.data_ptr()
    assert workspace.Blobs() == ["x"]
