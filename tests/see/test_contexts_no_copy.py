# SPDX-License-Identifier: Apache-2.0
"""no_copy: each conversion that would copy is refused with its reason, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from bridge.caffe2 import workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


READONLY = np.arange(6.0)
READONLY.flags.writeable = False
PLAIN = np.arange(6.0)


def misaligned() -> np.ndarray[Any, Any]:
    return np.frombuffer(bytearray(33), dtype="f8", offset=1)


REFUSED: list[tuple[str, str, Callable[[], Any]]] = [
    ("copy=True", "copy=True", lambda: bridge.from_dlpack(PLAIN, copy=True)),
    ("copy=True of torch", "copy=True", lambda: bridge.from_dlpack(torch.ones(2), copy=True)),
    ("copy=True of ours", "copy=True", lambda: bridge.from_dlpack(at.zeros(2), copy=True)),
    ("byte order", "byte order", lambda: bridge.from_dlpack(PLAIN.astype(">f8"))),
    ("misaligned", "aligned", lambda: bridge.from_dlpack(misaligned())),
    ("conj", "conjugate", lambda: bridge.from_dlpack(torch.ones(2, dtype=torch.cfloat).conj())),
    ("numbers", "numbers", lambda: bridge.asarray([1, 2])),
    ("strings", "strings", lambda: bridge.asarray(["a"])),
    ("type", "float64 becomes int32", lambda: bridge.asarray(PLAIN, dtype="int32")),
    ("read-only", "read-only", lambda: bridge.to_torch(READONLY)),
    ("negative strides", "negative", lambda: bridge.to_torch(PLAIN[::-1])),
    ("torch to torch", "copy=True", lambda: bridge.to_torch(torch.ones(2), copy=True)),
    ("numpy to numpy", "copy=True", lambda: bridge.to_numpy(PLAIN, copy=True)),
    ("strided", "contiguous", lambda: bridge.convert(PLAIN[::2], "caffe2")),
    ("to type", "becomes", lambda: at.zeros(2).to("int8")),
    ("to copy", "copy=True", lambda: at.zeros(2).to("cpu", copy=True)),
    ("caffe2 to device", "copy", lambda: caffe2.Tensor(at.zeros(2), "cpu")),
    ("__dlpack__", "copy=True", lambda: at.zeros(2).__dlpack__(copy=True)),
    ("__array__", "copy=True", lambda: np.array(at.zeros(2).__array__(copy=True))),
    ("__array__ type", "becomes", lambda: at.zeros(2).__array__("int8")),
    ("bytes", "bytes", lambda: bytes(at.zeros(2))),
    ("at.tensor", "copy=True", lambda: at.tensor(PLAIN)),
    ("FeedBlob", "when it is fed", lambda: workspace.FeedBlob("new", PLAIN)),
    ("FetchBlob", "fetched", lambda: workspace.FetchBlob("there")),
    ("FetchTorch", "read-only", lambda: workspace.FetchTorch("readonly")),
]


@pytest.mark.parametrize(("reason", "call"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_a_conversion_that_copies_is_refused_inside_and_works_outside(
    reason: str, call: Callable[[], Any]
) -> None:
    workspace.FeedBlob("there", np.arange(3))
    workspace.FeedBlob("readonly", bridge.from_dlpack(READONLY))
    with bridge.no_copy(), pytest.raises(BufferError, match=reason) as caught:
        call()
    assert isinstance(caught.value, c10.EnforceNotMet)
    assert "no_copy" in str(caught.value)
    assert workspace.Blobs() == ["readonly", "there"]
    assert call() is not None


def test_conversions_that_share_are_allowed() -> None:
    t = torch.arange(6.0)
    x = bridge.from_dlpack(t)
    with bridge.no_copy():
        assert bridge.from_dlpack(PLAIN).data_ptr() == PLAIN.ctypes.data
        assert bridge.to_torch(x) is t
        assert bridge.to_torch(READONLY, writable=True).data_ptr() == READONLY.ctypes.data
        assert bridge.to_numpy(x).ctypes.data == t.data_ptr()
        assert x.to("float32") is x
        assert caffe2.Tensor(x).raw_data() == t.data_ptr()
        workspace.FeedBlob("t", t)
        assert workspace.FetchTorch("t") is t
        workspace.FeedBlob("s", "strings have no tensor's memory")
        assert workspace.FetchBlob("s")


def test_operations_may_copy_under_no_copy() -> None:
    x = at.arange(6).view(2, 3)
    with bridge.no_copy():
        assert x.clone().tolist() == x.tolist()
        assert x.t().contiguous().sizes() == (3, 2)
        assert (x + 1).tolist() == [[1, 2, 3], [4, 5, 6]]
        assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
        assert caffe2.Tensor(x).Clone().numel() == 6


def test_a_refused_feed_leaves_the_blob_as_it_was() -> None:
    workspace.FeedBlob("x", np.arange(3))
    kept = workspace.FetchTorch("x")
    blob = workspace.Workspace.current.blobs["x"]
    with bridge.no_copy():
        for feed in (
            lambda: workspace.FeedBlob("x", np.arange(3) + 5),
            lambda: workspace.FeedBlob("x", np.arange(4.0)),
            lambda: blob.feed(np.arange(3) + 5),
            lambda: blob.tensor().feed(np.arange(3) + 5),
            lambda: workspace.FeedBlob("x", np.array([b"a", b"b", b"c"])),
        ):
            with pytest.raises(BufferError):
                feed()
    assert workspace.FetchBlob("x").tolist() == [0, 1, 2]
    assert workspace.FetchTorch("x") is not None
    assert kept.tolist() == [0, 1, 2]


def test_a_copy_of_unaligned_memory_for_jax_is_recorded() -> None:
    pytest.importorskip("jax")
    room = np.zeros(64, "float32")
    first = (-room.ctypes.data // 4) % 16
    aligned, other = room[first : first + 16], room[first + 1 : first + 17]
    with bridge.audit() as log:
        bridge.to_jax(aligned)
        bridge.to_jax(other)
    assert [record.copied for record in log] == [False, True]
    assert log.copied_bytes == 64
    with bridge.no_copy():
        assert bridge.shares_memory(bridge.to_jax(aligned), room)
        with pytest.raises(BufferError, match="64 bytes"):
            bridge.to_jax(other)
    with pytest.raises(BufferError, match="64 bytes"):
        bridge.to_jax(other, copy=False)
