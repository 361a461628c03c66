# SPDX-License-Identifier: Apache-2.0
"""On a CUDA device: which stream waits for which, of what device, and where none needs to.

The stream of the source is busy, so that whoever reads too early reads zeros.
"""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch

import bridge
from bridge import at, caffe2
from bridge.exchange.dlpack_capsule import DLPackProducer
from tests.helpers import arrow_producer as arrow
from tests.helpers import dlpack_structs as abi
from tests.helpers.cuda_producers import NoStream
from tests.helpers.dlpack_consumer import ExchangeTable, take
from tests.helpers.dlpack_producer import Producer, TensorSpec
from tests.helpers.dlpack_table import Table, producer_type
from tests.helpers.host_waits import no_host_waits, no_orders

pytestmark = pytest.mark.cuda
both_wrappers = pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])
devices = pytest.mark.parametrize(
    "device",
    [
        0,
        pytest.param(
            1,
            marks=pytest.mark.skipif(
                torch.cuda.device_count() < 2, reason="torch sees fewer than two CUDA devices"
            ),
        ),
    ],
)
N = 1 << 16
# The structures of producers; of ctypes, so the garbage collector may free them before their use.
_ALIVE: list[Any] = []


def zeros(device: int) -> torch.Tensor:
    t = torch.zeros(N, device=f"cuda:{device}")
    for index in range(torch.cuda.device_count()):
        torch.cuda.synchronize(index)
    return t


def fill_late(t: torch.Tensor, stream: torch.cuda.Stream) -> None:
    """Fill with ones on `stream`, after some 50 ms."""
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        t.fill_(1)


def total(t: torch.Tensor, stream: torch.cuda.Stream) -> float:
    """What `stream` sees."""
    with torch.cuda.stream(stream):
        return float(t.sum().item())


def ready_after(t: torch.Tensor, event: torch.cuda.Event) -> arrow.DeviceProducer:
    slot = ctypes.c_uint64(event.cuda_event)
    producer = arrow.DeviceProducer(
        arrow.schema(b"f"),
        arrow.array(N, None, t.data_ptr()),
        device_type=abi.CUDA,
        device_id=t.device.index,
        sync_event=ctypes.addressof(slot),
    )
    _ALIVE.append((producer, slot, t, event))
    return producer


@devices
@pytest.mark.parametrize("on_default", [True, False])
def test_our_stream_waits_for_the_event_of_arrow(device: int, on_default: bool) -> None:
    theirs = torch.cuda.Stream(device)
    ours = torch.cuda.default_stream(device) if on_default else torch.cuda.Stream(device)
    t = zeros(device)
    event = torch.cuda.Event()
    fill_late(t, theirs)
    event.record(theirs)
    with torch.cuda.stream(ours), torch.cuda.device(0), no_host_waits():
        x = bridge.from_dlpack(ready_after(t, event))
    assert x.device() == f"cuda:{device}"
    assert x.data_ptr() == t.data_ptr()
    assert total(x.to_torch(writable=True), ours) == N


def test_an_event_of_outside_does_not_end_a_capture() -> None:
    t = zeros(0)
    event = torch.cuda.Event()
    event.record(torch.cuda.default_stream())
    producer = ready_after(t, event)
    x = at.ones(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        x.add_(1)
        with pytest.raises(BufferError, match="captured"):
            bridge.from_dlpack(producer)
        x.add_(1)
    graph.replay()
    assert x.tolist() == [3, 3, 3, 3]


@devices
@both_wrappers
def test_the_host_waits_before_arrow_has_the_memory(wrap: type, device: int) -> None:
    side = torch.cuda.Stream(device)
    t = zeros(device)
    x = wrap(bridge.from_dlpack(t))
    fill_late(t, side)
    with torch.cuda.stream(side), torch.cuda.device(0):
        _, capsule = x.__arrow_c_device_array__()
    assert side.query()
    found = arrow.ArrowDeviceArray.from_address(arrow.pointer(capsule, b"arrow_device_array"))
    assert (found.device_type, found.device_id) == (abi.CUDA, device)
    assert found.array.buffers[1] == t.data_ptr()


@both_wrappers
def test_the_host_does_not_wait_for_a_capture(wrap: type) -> None:
    x = at.ones(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        x.add_(1)
        with pytest.raises(BufferError, match="captured"):
            wrap(x).__arrow_c_device_array__()
        x.add_(1)
    graph.replay()
    assert x.tolist() == [3, 3, 3, 3]


@devices
@both_wrappers
@pytest.mark.parametrize("stream", [None, 1])
def test_the_default_stream_of_the_tensors_device_waits(
    wrap: type, device: int, stream: int | None
) -> None:
    """Of the tensor's device, whatever device and stream are current."""
    side = torch.cuda.Stream(device)
    t = zeros(device)
    x = wrap(bridge.from_dlpack(t))
    fill_late(t, side)
    with torch.cuda.stream(side), torch.cuda.device(0), no_host_waits():
        x.__dlpack__(stream=stream, max_version=(1, 3))
    assert total(t, torch.cuda.default_stream(device)) == N


@both_wrappers
def test_a_copy_in_host_memory_is_complete_for_any_stream(wrap: type) -> None:
    """A consumer may name a stream of the device that the memory is copied from."""
    ours, theirs = torch.cuda.Stream(), torch.cuda.Stream()
    t = zeros(0)
    x = wrap(bridge.from_dlpack(t))
    fill_late(t, ours)
    with torch.cuda.stream(ours), no_orders():
        for stream in (None, -1, 1, 2, theirs.cuda_stream):
            taken = take(x, dl_device=(abi.CPU, 0), stream=stream)
            assert taken.device == (abi.CPU, 0)
            assert taken.data()[:4] == taken.data()[-4:] == b"\0\0\x80?"
            taken.release()
    for stream in (0, 3):
        with pytest.raises(BufferError, match="stream="):
            x.__dlpack__(dl_device=(abi.CPU, 0), stream=stream)
    with pytest.raises(BufferError, match="no streams"):
        wrap(at.ones(2)).__dlpack__(dl_device=(abi.CPU, 0), stream=1)


@devices
@both_wrappers
def test_the_per_thread_stream_waits(wrap: type, device: int) -> None:
    side, theirs = torch.cuda.Stream(device), torch.cuda.ExternalStream(2, device=device)
    t = zeros(device)
    x = wrap(bridge.from_dlpack(t))
    fill_late(t, side)
    with torch.cuda.stream(side), torch.cuda.device(0), no_host_waits():
        x.__dlpack__(stream=2, max_version=(1, 3))
    assert total(t, theirs) == N


@devices
@pytest.mark.parametrize("immutable", [False, True])
def test_frameworks_that_import_objects_wait(device: int, immutable: bool) -> None:
    side, theirs = torch.cuda.Stream(device), torch.cuda.Stream(device)
    t = zeros(device)
    producer = DLPackProducer(bridge.from_dlpack(t).unsafeGetTensorImpl(), immutable)
    fill_late(t, side)
    with torch.cuda.stream(side), torch.cuda.device(0), no_host_waits():
        producer.__dlpack__(stream=theirs.cuda_stream)
    assert total(t, theirs) == N


@both_wrappers
def test_no_stream_waits_without_need(wrap: type) -> None:
    side = torch.cuda.Stream()
    t = zeros(0)
    x = wrap(bridge.from_dlpack(t))
    table = ExchangeTable(wrap)
    described = type("Described", (), {"__cuda_array_interface__": t.__cuda_array_interface__})()
    bridge.from_dlpack(described)
    unsynchronised = type(
        "Unsynchronised",
        (),
        {"__cuda_array_interface__": {**t.__cuda_array_interface__, "version": 3, "stream": -1}},
    )()
    spec = TensorSpec(t.data_ptr(), (N,), (1,), device=(abi.CUDA, 0), owner=t)
    alike = producer_type(Table(work_stream=side.cuda_stream))(spec)
    with torch.cuda.stream(side), no_host_waits(), no_orders():
        bridge.from_dlpack(alike)
        x.__dlpack__(stream=-1, max_version=(1, 3))
        x.__dlpack__(stream=side.cuda_stream, max_version=(1, 3))
        x.__cuda_array_interface__  # noqa: B018  read for what it does
        table.take(x).release()
        bridge.to_torch(x)
        bridge.from_dlpack(described)  # names no stream
        bridge.from_dlpack(unsynchronised)
    with no_host_waits(), no_orders():
        x.__dlpack__(stream=1, max_version=(1, 3))
        x.__dlpack__(stream=None, max_version=(1, 3))
        bridge.from_dlpack(t)


@devices
@pytest.mark.parametrize("version", [2, 3])
def test_our_stream_waits_by_the_version_of_the_interface(device: int, version: int) -> None:
    """Version 2 has no streams, so its producers have waited."""
    side, ours = torch.cuda.Stream(device), torch.cuda.Stream(device)
    t = zeros(device)

    class Described:
        __cuda_array_interface__ = {  # noqa: RUF012  read only
            **t.__cuda_array_interface__,
            "version": version,
            **({"stream": side.cuda_stream} if version == 3 else {}),
        }

    fill_late(t, side)
    if version == 2:
        side.synchronize()
    with torch.cuda.stream(ours), torch.cuda.device(0), no_host_waits():
        x = bridge.from_dlpack(Described())
    assert x.device() == f"cuda:{device}"
    assert total(x.to_torch(), ours) == N


@devices
def test_an_interface_without_elements_orders_no_streams(device: int) -> None:
    """No address says which device the stream is on, and nothing is to be waited for."""
    side = torch.cuda.Stream(device)
    with torch.cuda.stream(side):
        x = at.empty(2, 0, device=f"cuda:{device}")

        class Described:
            __cuda_array_interface__ = x.__cuda_array_interface__

        assert Described.__cuda_array_interface__["stream"] == side.cuda_stream
    for current in {0, torch.cuda.device_count() - 1}:
        with torch.cuda.device(current), no_orders():
            found = bridge.from_dlpack(Described())
        assert (found.shape, found.device()) == ((2, 0), f"cuda:{current}")


@devices
@pytest.mark.parametrize("handle", [0, 1])
def test_a_table_may_give_either_name_of_the_default_stream(device: int, handle: int) -> None:
    ours = torch.cuda.Stream(device)
    t = zeros(device)
    spec = TensorSpec(t.data_ptr(), (N,), (1,), device=(abi.CUDA, device), owner=t)
    producer = producer_type(Table(work_stream=handle or None))(spec)
    fill_late(t, torch.cuda.default_stream(device))
    with torch.cuda.stream(ours), torch.cuda.device(0), no_host_waits():
        x = bridge.from_dlpack(producer)
    assert total(x.to_torch(), ours) == N


@devices
def test_a_table_is_asked_for_the_stream_of_the_tensors_device(device: int) -> None:
    t = zeros(device)
    table = Table()
    spec = TensorSpec(t.data_ptr(), (N,), (1,), device=(abi.CUDA, device), owner=t)
    with torch.cuda.device(0):
        bridge.from_dlpack(producer_type(table)(spec))
    assert table.work_devices == [(abi.CUDA, device)]


@devices
def test_the_default_stream_without_others_is_of_the_tensors_device(device: int) -> None:
    ours = torch.cuda.Stream(device)
    t = zeros(device)
    bridge.from_dlpack(NoStream(t))  # loads what is loaded once
    fill_late(t, torch.cuda.default_stream(device))
    with torch.cuda.stream(ours), torch.cuda.device(0), no_host_waits():
        x = bridge.from_dlpack(NoStream(t))
    assert total(x.to_torch(), ours) == N


@devices
def test_the_producers_stream_is_of_the_tensors_device(device: int) -> None:
    """`__dlpack__` is asked with torch's current stream on that device."""
    ours = torch.cuda.Stream(device)
    asked: list[Any] = []
    t = zeros(device)

    class Asked(Producer):
        def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
            asked.append(stream)
            with torch.cuda.device(device):
                return t.__dlpack__(stream=stream, **options)

    spec = TensorSpec(t.data_ptr(), (N,), (1,), device=(abi.CUDA, device), owner=t)
    with torch.cuda.stream(ours), torch.cuda.device(0):
        bridge.from_dlpack(Asked(spec))
    with torch.cuda.stream(torch.cuda.default_stream(device)), torch.cuda.device(0):
        bridge.from_dlpack(Asked(spec))
    assert asked == [ours.cuda_stream, 1]


@devices
def test_copies_to_the_host_wait_for_the_stream_of_their_device(device: int) -> None:
    side = torch.cuda.Stream(device)
    for read in (
        lambda x: x.cpu().numpy(),
        lambda x: caffe2.Tensor(caffe2.Tensor(x), "cpu").numpy(),
        lambda x: x.to("cpu").numpy(),
        lambda x: at.empty(N).copy_(x).numpy(),
        lambda x: at.empty(2 * N)[::2].copy_(x).contiguous().numpy(),
    ):
        t = zeros(device)
        x = bridge.from_dlpack(t)
        with torch.cuda.stream(side), torch.cuda.device(0):
            fill_late(t, side)
            with torch.cuda.stream(side):
                assert read(x).sum() == N


@devices
@pytest.mark.parametrize("pinned", [False, True])
def test_copies_from_the_host_are_queued_on_the_stream_of_their_device(
    device: int, pinned: bool
) -> None:
    side = torch.cuda.Stream(device)
    for write in (
        lambda x, there: there.copy_(x),
        lambda x, there: caffe2.Tensor(there).CopyFrom(caffe2.Tensor(x)),
        lambda x, there: there.__setitem__(slice(None), x),
    ):
        host = at.ones(N).pin_memory() if pinned else at.ones(N)
        t = zeros(device)
        there = bridge.from_dlpack(t)
        with torch.cuda.stream(side), torch.cuda.device(0), torch.cuda.stream(side):
            torch.cuda._sleep(100_000_000)
            t.fill_(5)
            write(host, there)
            host.zero_()  # it was read before the call returned
        assert total(t, side) == N
