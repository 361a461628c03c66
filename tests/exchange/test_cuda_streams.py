# SPDX-License-Identifier: Apache-2.0
"""On a CUDA device: streams that wait for one another, memory used on two, graphs.

A stream is kept busy first, so that what does not wait for it comes too early. What waits is right
however fast the device is.
"""

import gc
import threading
from typing import Any

import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from bridge.caffe2 import workspace
from tests.helpers import dlpack_structs as abi
from tests.helpers.dlpack_consumer import ExchangeTable

pytestmark = pytest.mark.cuda
both_wrappers = pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])
N = 1 << 20


def keep_busy() -> None:
    """Give torch's current stream work for some 50 ms."""
    torch.cuda._sleep(100_000_000)


@both_wrappers
@pytest.mark.parametrize("stream", [None, -1, 1, 2])
def test_torch_takes_a_capsule_for_each_stream(wrap: type, stream: int | None) -> None:
    t = torch.arange(6.0, device="cuda")
    capsule = wrap(bridge.from_dlpack(t)).__dlpack__(stream=stream, max_version=(1, 3))
    again = torch.from_dlpack(capsule)
    assert again.data_ptr() == t.data_ptr()


@both_wrappers
def test_numbers_that_are_not_streams_are_refused(wrap: type) -> None:
    x = wrap(bridge.from_dlpack(torch.ones(2, device="cuda")))
    for stream in (0, -2, 3):
        with pytest.raises(BufferError):
            x.__dlpack__(stream=stream)
    with pytest.raises(TypeError):
        x.__dlpack__(stream="1")


@both_wrappers
def test_the_current_stream_of_torch_is_the_work_stream(wrap: type) -> None:
    table = ExchangeTable(wrap)
    x = wrap(bridge.from_dlpack(torch.ones(2, device="cuda")))
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        assert table.work_stream((abi.CUDA, 0)) == side.cuda_stream
        assert x.__cuda_array_interface__["stream"] == side.cuda_stream
    default = torch.cuda.current_stream().cuda_stream
    assert (table.work_stream((abi.CUDA, 0)) or 0) == default
    assert x.__cuda_array_interface__["stream"] == (default or 1)


@both_wrappers
@pytest.mark.parametrize("by", ["handle", "default", "none", "per thread"])
def test_the_consumers_stream_waits(wrap: type, by: str) -> None:
    ours, side = torch.cuda.Stream(), torch.cuda.Stream()
    if by == "per thread":
        other: Any = torch.cuda.ExternalStream(2)
    else:
        other = side if by == "handle" else torch.cuda.default_stream()
    stream = {"handle": side.cuda_stream, "default": 1, "none": None, "per thread": 2}[by]
    t = torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(ours):
        x = wrap(bridge.from_dlpack(t))
        keep_busy()
        t.fill_(1)
        capsule = x.__dlpack__(stream=stream, max_version=(1, 3))
    other.synchronize()
    assert ours.query()  # so all its work was waited for
    assert torch.from_dlpack(capsule).sum().item() == N


class Described:
    """An object with nothing but the CUDA Array Interface, whose work is on `stream`."""

    def __init__(self, t: torch.Tensor, stream: torch.cuda.Stream, /, **fields: Any) -> None:
        self.t = t
        self.__cuda_array_interface__ = {
            **t.__cuda_array_interface__,
            "version": 3,
            "stream": stream.cuda_stream or 1,
            **fields,
        }


def test_our_stream_waits_for_the_stream_of_the_interface() -> None:
    theirs = torch.cuda.Stream()
    t = torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(theirs):
        keep_busy()
        t.fill_(1)
    x = bridge.from_dlpack(Described(t, theirs))
    assert x.data_ptr() == t.data_ptr()
    assert x.to_torch().sum().item() == N


def test_read_only_and_reversed_memory_of_the_interface_is_respected() -> None:
    t = torch.arange(6.0, device="cuda")
    stream = torch.cuda.current_stream()
    frozen = bridge.from_dlpack(Described(t, stream, data=(t.data_ptr(), True)))
    assert frozen.readonly
    with pytest.raises(BufferError, match="read-only"):
        frozen.to_torch(copy=False)
    assert frozen.to_torch().data_ptr() != t.data_ptr()
    assert frozen.to_torch(writable=True).data_ptr() == t.data_ptr()
    with pytest.raises(c10.EnforceNotMet, match="read-only"):
        frozen.fill_(0)
    last = t.data_ptr() + 5 * 4
    back = bridge.from_dlpack(Described(t, stream, data=(last, False), strides=(-4,)))
    assert back.tolist() == [5, 4, 3, 2, 1, 0]
    with torch.device("cpu"):  # which is not where the memory is
        assert bridge.from_dlpack(Described(t, stream)).device() == "cuda:0"
    host = torch.ones(3)
    for fields in ({"stream": 0}, {"data": (host.data_ptr(), False)}):
        with pytest.raises(BufferError):
            bridge.from_dlpack(Described(t, stream, **fields))


def test_memory_on_a_second_stream_serves_again_after_it() -> None:
    side = torch.cuda.Stream()
    x = at.zeros(N, device="cuda")
    t = x.to_torch()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        keep_busy()
        total = t.sum()
    t.record_stream(side)
    del x, t
    gc.collect()
    again = at.empty(N, device="cuda").fill_(1)
    torch.cuda.synchronize()
    assert total.item() == 0
    assert again.to_torch().sum().item() == N


def test_another_thread_frees_the_memory() -> None:
    gc.collect()
    before = torch.cuda.memory_allocated()
    made = [at.zeros(1 << 16, device="cuda") for _ in range(8)]
    lent: list[Any] = [x.to_torch() for x in made]
    lent += [x.__dlpack__(stream=-1) for x in made]
    assert torch.cuda.memory_allocated() >= before + 8 * (4 << 16)

    def drop() -> None:
        made.clear()
        lent.clear()

    thread = threading.Thread(target=drop)
    thread.start()
    thread.join()
    gc.collect()
    assert torch.cuda.memory_allocated() == before


def step(x: at.Tensor) -> tuple[at.Tensor, torch.Tensor]:
    """Exchange in every way that takes no copy to the host."""
    doubled = bridge.from_dlpack(x.to_torch() * 2)
    made = at.empty(4, device="cuda")
    made.copy_(doubled)
    made[0] = 5
    back = made[::-1].clone()
    seen = torch.from_dlpack(back[1:])
    caffe2.Tensor(made).Clone()
    back.__cuda_array_interface__  # noqa: B018  read for what it does
    for stream in (-1, torch.cuda.current_stream().cuda_stream or 1):
        back.__dlpack__(stream=stream, max_version=(1, 3))
    filled = at.full((4,), 0.5, device="cuda")
    return back, seen.add(filled.zero_().to_torch()[1:])


def test_conversions_are_captured_in_a_cuda_graph() -> None:
    x = bridge.from_dlpack(torch.ones(4, device="cuda"))
    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        step(x)
    torch.cuda.current_stream().wait_stream(warm)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        back, seen = step(x)
        with pytest.raises(BufferError, match="captured"):
            x.__dlpack__(stream=1)  # the legacy default stream can wait for no capture
    for value in (3, 4):
        x.fill_(value)
        graph.replay()
        torch.cuda.synchronize()
        assert back.tolist() == [2 * value] * 3 + [5]
        assert seen.tolist() == [2 * value] * 2 + [5]


@pytest.mark.usefixtures("fresh_workspace")
def test_a_workspace_is_captured_in_a_cuda_graph() -> None:
    t = torch.ones(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        workspace.FeedBlob("x", t)
        fetched = workspace.FetchTorch("x")
        fetched.mul_(2)
    assert fetched is t
    graph.replay()
    torch.cuda.synchronize()
    assert t.tolist() == [2, 2, 2, 2]
