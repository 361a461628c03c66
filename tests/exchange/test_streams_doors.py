# SPDX-License-Identifier: Apache-2.0
"""On a CUDA device: whatever door memory comes in by or goes out by, it is not read too early.

The producer's stream is busy, and ours is another one; what does not wait reads zeros.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, caffe2
from bridge.caffe2 import workspace
from tests.helpers import dlpack_structs as abi
from tests.helpers.cuda_producers import AskedOnStream, DescribedOnStream
from tests.helpers.dlpack_consumer import take
from tests.helpers.dlpack_producer import TensorSpec
from tests.helpers.dlpack_table import Table, producer_type

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("fresh_workspace")]
N = 1 << 14


def late(stream: torch.cuda.Stream) -> torch.Tensor:
    """Return a tensor that `stream` fills with ones in some 50 ms."""
    t = torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        t.fill_(1)
    return t


def with_table(t: torch.Tensor, stream: torch.cuda.Stream) -> Any:
    spec = TensorSpec(t.data_ptr(), (N,), (1,), device=(abi.CUDA, 0), owner=t)
    return producer_type(Table(work_stream=stream.cuda_stream))(spec)


def by_workspace(x: Any) -> Any:
    workspace.FeedBlob("x", x)
    return workspace.FetchTorch("x")


def by_fetch_blob(x: Any) -> Any:
    workspace.FeedBlob("x", x)
    return workspace.FetchBlob("x")


def on_the_second(x: Any) -> Any:
    return bridge.from_dlpack(x, device=f"cuda:{torch.cuda.device_count() - 1}")


PRODUCERS: dict[str, Callable[[torch.Tensor, torch.cuda.Stream], Any]] = {
    "interface": DescribedOnStream,
    "method": AskedOnStream,
    "table": with_table,
}
DOORS: dict[str, Callable[[Any], Any]] = {
    "from_dlpack": bridge.from_dlpack,
    "a copy": lambda x: bridge.from_dlpack(x, copy=True),
    "to the host": lambda x: bridge.from_dlpack(x, device="cpu"),
    "to the second device": on_the_second,
    "asarray": bridge.asarray,
    "another type": lambda x: bridge.asarray(x, dtype="float64"),
    "to_torch": bridge.to_torch,
    "convert at": lambda x: bridge.convert(x, "at"),
    "convert caffe2": lambda x: bridge.convert(x, "caffe2"),
    "feed, fetch": by_workspace,
    "feed, fetch an array": by_fetch_blob,
}


@pytest.mark.parametrize("by", PRODUCERS)
@pytest.mark.parametrize("door", DOORS)
def test_each_door_waits_for_the_producer(door: str, by: str) -> None:
    theirs, ours = torch.cuda.Stream(), torch.cuda.Stream()
    producer = PRODUCERS[by](late(theirs), theirs)
    with torch.cuda.stream(ours):
        found = DOORS[door](producer)
        if not isinstance(found, np.ndarray):
            # the second device has a current stream of its own
            found = bridge.to_torch(found).sum().item()
        assert np.sum(found) == N


def device_array(x: Any) -> Any:
    """Read as a consumer that takes no stream does, after the call."""
    found = take(x, stream=torch.cuda.default_stream().cuda_stream or 1)
    address = found.address
    described = type("D", (), {})()
    described.__cuda_array_interface__ = {
        "shape": (N,),
        "typestr": "<f4",
        "data": (address, False),
        "version": 2,
    }
    with torch.cuda.stream(torch.cuda.default_stream()):
        total = torch.as_tensor(described, device="cuda").sum().item()
    found.release()
    return total


WAYS_OUT: dict[str, Callable[[Any], Any]] = {
    "numpy of a copy": lambda x: at.Tensor(x).cpu().numpy(),
    "tolist": lambda x: at.Tensor(x).tolist(),
    "pickle": lambda x: at.Tensor(pickle.loads(pickle.dumps(x))).tolist(),
    "deepcopy": lambda x: at.Tensor(copy.deepcopy(x)).tolist(),
    "clone": lambda x: at.Tensor(x).clone().tolist(),
    "Clone": lambda x: at.Tensor(caffe2.Tensor(at.Tensor(x)).Clone()).tolist(),
    "fetch": by_fetch_blob,
    "page-locked": lambda x: at.Tensor(x).pin_memory().tolist(),
    "dl_device": lambda x: np.from_dlpack(x, device="cpu"),
    "dl_device of a capsule": lambda x: bridge.from_dlpack(
        x.__dlpack__(dl_device=(abi.CPU, 0), max_version=(1, 3))
    ).tolist(),
    "another stream": device_array,
    "repr": lambda x: N * ("[1., 1.]" in repr(at.Tensor(x)[:2])),
}


@pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])
@pytest.mark.parametrize("way", WAYS_OUT)
def test_each_way_out_waits_for_us(way: str, wrap: type) -> None:
    ours = torch.cuda.Stream()
    x = wrap(bridge.from_dlpack(late(ours)))
    with torch.cuda.stream(ours):
        assert np.sum(WAYS_OUT[way](x)) == N


def test_serialized_blobs_are_read_after_they_are_written() -> None:
    ours = torch.cuda.Stream()
    workspace.FeedBlob("x", late(ours))
    with torch.cuda.stream(ours):
        message = workspace.SerializeBlob("x")
        workspace.DeserializeBlob("y", message)
        assert workspace.FetchBlob("y").sum() == N


@pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])
def test_a_copy_for_another_device_is_waited_for(wrap: type) -> None:
    """The consumer's stream is one of the device that it asks for."""
    last = torch.cuda.device_count() - 1
    ours, theirs = torch.cuda.Stream(), torch.cuda.Stream(last)
    host = wrap(at.ones(N))
    for x in (wrap(bridge.from_dlpack(late(ours))), host):
        with torch.cuda.stream(ours):
            capsule = x.__dlpack__(
                dl_device=(abi.CUDA, last), stream=theirs.cuda_stream, max_version=(1, 3)
            )
        with torch.cuda.stream(theirs):
            t = torch.from_dlpack(capsule)
            assert t.device.index == last
            assert t.sum().item() == N


def test_a_copy_of_a_view_for_another_device_is_waited_for() -> None:
    """Its elements may be put in order on the other device, by its current stream."""
    last = torch.cuda.device_count() - 1
    ours, theirs = torch.cuda.Stream(), torch.cuda.Stream(last)
    x = bridge.from_dlpack(late(ours))[::2]
    with torch.cuda.stream(ours):
        capsule = x.__dlpack__(
            dl_device=(abi.CUDA, last), stream=theirs.cuda_stream, max_version=(1, 3)
        )
    with torch.cuda.stream(theirs):
        assert torch.from_dlpack(capsule).sum().item() == N // 2
