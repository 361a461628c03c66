# SPDX-License-Identifier: Apache-2.0
"""Which stream waits for which when CUDA memory comes in or goes out: the rules, on stand-ins.

Producers here say that their host memory is a CUDA device's; torch.cuda is the stand-in of
tests.helpers.fake_cuda.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, caffe2
from bridge.exchange import streams
from tests.helpers import arrow_producer as arrow
from tests.helpers import dlpack_structs as abi
from tests.helpers.dlpack_consumer import ExchangeTable, take
from tests.helpers.dlpack_producer import OldProducer, Producer, StreamProducer, TensorSpec
from tests.helpers.dlpack_table import Table, producer_type
from tests.helpers.fake_cuda import SIDE, THEIRS, FakeCuda

ROCM, MANAGED = 10, 13
both_wrappers = pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    fake = FakeCuda()
    fake.install(monkeypatch)
    return fake


def spec(device: tuple[int, int] = (abi.CUDA, 0)) -> TensorSpec:
    return TensorSpec.of_array(np.arange(6, dtype=np.float32).reshape(2, 3), device=device)


def on_cuda(device: tuple[int, int] = (abi.CUDA, 0), wrap: type = at.Tensor) -> Any:
    return wrap(bridge.from_dlpack(Producer(spec(device))))


@pytest.mark.parametrize("current", [0, SIDE])
@pytest.mark.parametrize(
    ("stream", "theirs"), [(None, 0), (1, 0), (2, 2), (THEIRS, THEIRS), (SIDE, SIDE)]
)
def test_the_consumers_stream_waits_for_ours(
    cuda: FakeCuda, current: int, stream: int | None, theirs: int
) -> None:
    x = on_cuda()
    cuda.current[0] = current
    take(x, stream=stream).release()
    assert cuda.waits == ([] if theirs == current else [(0, theirs, current)])


@both_wrappers
def test_each_device_has_its_stream(cuda: FakeCuda, wrap: type) -> None:
    cuda.current[:] = [SIDE, 0]
    x = on_cuda((abi.CUDA, 1), wrap)
    take(x, stream=THEIRS).release()
    assert cuda.waits == [(1, THEIRS, 0)]
    table = ExchangeTable(wrap)
    assert table.work_stream((abi.CUDA, 0)) == SIDE
    assert table.work_stream((abi.CUDA, 1)) is None
    assert table.work_stream((MANAGED, 0)) == SIDE
    assert table.work_stream((abi.CPU, 0)) is None
    with pytest.raises(BufferError, match="out of index range"):
        table.work_stream((abi.CUDA, 2))


def test_stream_minus_one_waits_for_nothing(cuda: FakeCuda) -> None:
    x = on_cuda()
    cuda.current[0] = SIDE
    take(x, stream=-1).release()
    assert cuda.waits == []


@both_wrappers
@pytest.mark.parametrize("stream", [0, -2, 3, 4095, THEIRS + 1, 2**64])
def test_numbers_that_are_not_streams_are_refused(cuda: FakeCuda, wrap: type, stream: int) -> None:
    with pytest.raises(BufferError, match=f"stream={stream}"):
        on_cuda(wrap=wrap).__dlpack__(stream=stream)
    assert cuda.waits == []


@pytest.mark.parametrize("stream", [True, 1.0, "1"])
def test_a_stream_is_an_int(cuda: FakeCuda, stream: Any) -> None:
    with pytest.raises(TypeError, match="int or None"):
        on_cuda().__dlpack__(stream=stream)
    assert cuda.waits == []


def test_streams_of_rocm_have_its_own_numbers(cuda: FakeCuda) -> None:
    cuda.current[0] = SIDE
    producer = Producer(spec((ROCM, 0)))
    x = bridge.from_dlpack(producer)
    assert producer.calls[0]["stream"] == SIDE
    for stream in (None, 0):
        take(x, stream=stream).release()
    assert cuda.waits == [(0, 0, SIDE)] * 2
    for stream in (1, 2):
        with pytest.raises(BufferError, match=f"stream={stream}"):
            x.__dlpack__(stream=stream)
    cuda.current[0] = 0
    bridge.from_dlpack(producer)
    assert producer.calls[1]["stream"] == 0


@pytest.mark.parametrize("device_type", [abi.CUDA, MANAGED])
@pytest.mark.parametrize(("current", "said"), [(0, 1), (SIDE, SIDE)])
def test_a_producer_is_told_our_stream(
    cuda: FakeCuda, device_type: int, current: int, said: int
) -> None:
    cuda.current[1] = current
    producer = Producer(spec((device_type, 1)))
    bridge.from_dlpack(producer)
    assert producer.calls == [
        {"stream": said, "max_version": (1, 3), "dl_device": None, "copy": None}
    ]
    assert cuda.waits == []  # that is the producer's to do
    bridge.from_dlpack(StreamProducer(spec((device_type, 1))))
    assert cuda.waits == []


def test_a_producer_that_knows_no_streams_is_on_the_default_one(cuda: FakeCuda) -> None:
    bridge.from_dlpack(OldProducer(spec()))
    assert cuda.waits == []
    cuda.current[0] = SIDE
    bridge.from_dlpack(OldProducer(spec()))
    assert cuda.waits == [(0, SIDE, 0)]


def test_a_producer_on_a_device_that_is_not_there_is_refused(cuda: FakeCuda) -> None:
    producer = Producer(spec((abi.CUDA, 2)))
    with pytest.raises(BufferError, match="CUDA device 2"):
        bridge.from_dlpack(producer)
    assert producer.calls == []


@pytest.mark.parametrize(
    ("theirs", "waits"), [(None, [(0, SIDE, 0)]), (1, [(0, SIDE, 0)]), (SIDE, [])]
)
def test_our_stream_waits_for_the_stream_of_a_table(
    cuda: FakeCuda, theirs: int | None, waits: list[tuple[int, int, int]]
) -> None:
    cuda.current[0] = SIDE
    table = Table(work_stream=theirs)
    producer = producer_type(table)(spec())
    bridge.from_dlpack(producer)
    assert table.calls[-1] == "current_work_stream"
    assert cuda.waits == waits
    host = producer_type(table)(spec((abi.CPU, 0)))
    bridge.from_dlpack(host)
    assert cuda.waits == waits


def test_a_table_without_a_stream_is_refused_or_on_the_default_one(cuda: FakeCuda) -> None:
    producer = producer_type(Table(work_stream_status=-1))(spec())
    with pytest.raises(BufferError, match="current stream"):
        bridge.from_dlpack(producer)
    assert producer.deletions == [1]
    without = producer_type(Table(null=("current_work_stream",)))(spec())
    cuda.current[0] = SIDE
    bridge.from_dlpack(without)
    assert cuda.waits == [(0, SIDE, 0)]  # the default stream, as far as anybody can tell


def test_host_memory_asks_nothing_of_cuda(cuda: FakeCuda) -> None:
    for device in ((abi.CPU, 0), (abi.CUDA_HOST, 0)):
        x = on_cuda(device)
        take(x).release()
        take(x, stream=-1).release()
        assert x.numpy().sum() == 15
        with pytest.raises(BufferError, match="no streams"):
            x.__dlpack__(stream=1)
    bridge.from_dlpack(torch.ones(2)).to_torch()
    assert cuda.questions == []


def test_cuda_is_not_begun_where_the_default_stream_will_do(cuda: FakeCuda) -> None:
    cuda.initialized = False
    producer = Producer(spec())
    x = bridge.from_dlpack(producer)
    assert producer.calls[0]["stream"] == 1
    take(x, stream=1).release()
    take(x).release()
    assert ExchangeTable(at.Tensor).work_stream((abi.CUDA, 0)) is None
    assert cuda.questions == []


def test_a_capture_is_not_disturbed(cuda: FakeCuda) -> None:
    x = on_cuda()
    cuda.current[0] = SIDE
    cuda.capturing = {SIDE}
    take(x, stream=SIDE).release()
    take(x, stream=-1).release()
    assert cuda.waits == []
    for stream in (None, 1):
        with pytest.raises(BufferError, match="captured"):
            x.__dlpack__(stream=stream)
    take(x, stream=THEIRS).release()  # which joins the capture
    assert cuda.waits == [(0, THEIRS, SIDE)]
    cuda.capturing = {THEIRS}
    with pytest.raises(BufferError, match="captured"):
        x.__dlpack__(stream=THEIRS)
    cuda.capturing = {SIDE}
    with pytest.raises(BufferError, match="captured"):
        streams.wait_for_producer(0, 1)


def test_the_host_waits_for_consumers_without_streams(cuda: FakeCuda) -> None:
    cuda.current[1] = SIDE
    streams.synchronise_host(1)
    assert cuda.finished == [(1, SIDE)]
    cuda.capturing = {SIDE}
    with pytest.raises(BufferError, match="captured"):
        streams.synchronise_host(1)
    cuda.initialized = False
    streams.synchronise_host(1)
    assert cuda.finished == [(1, SIDE)]


def test_an_error_of_torchs_streams_is_a_buffer_error(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = on_cuda()

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")

    monkeypatch.setattr(torch.cuda, "ExternalStream", fails)
    with pytest.raises(BufferError, match="forked"):
        x.__dlpack__(stream=THEIRS)
    monkeypatch.setattr(torch.cuda, "current_stream", fails)
    for ask in (
        lambda: x.__dlpack__(stream=1),
        lambda: x.__cuda_array_interface__,
        lambda: bridge.from_dlpack(StreamProducer(spec())),
        lambda: ExchangeTable(at.Tensor).work_stream((abi.CUDA, 0)),
        lambda: streams.synchronise_host(0),
    ):
        with pytest.raises(BufferError, match="forked"):
            ask()


class Described:
    """An object with nothing but the CUDA Array Interface, over host memory."""

    def __init__(self, array: np.ndarray[Any, Any], **fields: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data if array.size else 0, not array.flags.writeable),
            "strides": None if array.flags.c_contiguous else array.strides,
            "stream": None,
            **fields,
        }


@pytest.fixture
def device_one(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    """Addresses are on device 1, as CUDA says when torch asks."""

    class Seen:
        device = torch.device("cuda", 1)

    monkeypatch.setattr(torch, "as_tensor", lambda _: Seen)
    return cuda


def address_of(x: Any) -> int:
    return int(x.__cuda_array_interface__["data"][0])


def test_the_interface_of_cuda_arrays_is_read_with_every_layout(device_one: FakeCuda) -> None:
    whole = np.arange(12, dtype=np.int16).reshape(3, 4)
    frozen = whole.copy()
    frozen.flags.writeable = False
    for array in (whole, whole.T, whole[::-1, ::2], frozen, whole[1:, 0]):
        x = bridge.from_dlpack(Described(array))
        assert x.__dlpack_device__() == (abi.CUDA, 1)
        assert (address_of(x), x.shape) == (array.ctypes.data, array.shape)
        assert tuple(2 * step for step in x.strides()) == array.strides
        assert x.readonly is not array.flags.writeable
        said = x.__cuda_array_interface__
        assert said["data"][1] is x.readonly
        assert said["typestr"] == array.dtype.str
        assert said["strides"] == (None if x.is_contiguous() else array.strides)
    assert device_one.waits == []


def test_no_elements_have_no_address(cuda: FakeCuda) -> None:
    x = bridge.from_dlpack(Described(np.empty((0, 3))))
    assert x.__dlpack_device__() == (abi.CUDA, 0)
    assert (x.shape, address_of(x)) == ((0, 3), 0)
    assert address_of(on_cuda()[2:]) == 0


@pytest.mark.parametrize(("stream", "theirs"), [(1, 0), (2, 2), (THEIRS, THEIRS)])
def test_our_stream_waits_for_the_stream_of_the_interface(
    device_one: FakeCuda, stream: int, theirs: int
) -> None:
    device_one.current[1] = SIDE
    bridge.from_dlpack(Described(np.arange(3), stream=stream))
    assert device_one.waits == [(1, SIDE, theirs)]


@pytest.mark.parametrize(
    "fields",
    [
        {"stream": 0},
        {"stream": "1"},
        {"stream": -7},
        {"mask": np.zeros(3)},
        {"typestr": ">i8"},
        {"typestr": "|V8"},
        {"typestr": "|O"},
        {"typestr": "nonsense"},
        {"typestr": None},
        {"strides": (4,)},
        {"strides": (8, 8)},
        {"shape": (-3,)},
        {"shape": (2**62, 2**62)},
        {"shape": 3},
        {"data": None},
        {"data": (0, False)},
        {"data": 4096},
    ],
    ids=str,
)
def test_a_wrong_interface_is_refused(device_one: FakeCuda, fields: dict[str, Any]) -> None:
    with pytest.raises(BufferError):
        bridge.from_dlpack(Described(np.arange(3), **fields))
    assert device_one.waits == []


def test_the_current_stream_goes_with_the_interface(cuda: FakeCuda) -> None:
    x = on_cuda((abi.CUDA, 1))
    assert x.__cuda_array_interface__["stream"] == 1
    cuda.current[1] = SIDE
    assert x.__cuda_array_interface__["stream"] == SIDE


@pytest.mark.parametrize(
    ("dtype", "typestr"), [("bfloat16", "<V2"), ("float16", "<f2"), ("bool", "|b1")]
)
def test_the_interface_names_the_element_types(cuda: FakeCuda, dtype: str, typestr: str) -> None:
    host = at.zeros(3, dtype=dtype)
    x = at.from_blob(host.data_ptr(), (3,), dtype=dtype, device="cuda:0")
    assert x.__cuda_array_interface__["typestr"] == typestr


def test_tensors_of_types_that_the_interface_lacks_have_no_interface(cuda: FakeCuda) -> None:
    host = at.zeros(3, dtype="float8_e4m3fn")
    x = at.from_blob(host.data_ptr(), (3,), dtype="float8_e4m3fn", device="cuda:0")
    with pytest.raises(AttributeError, match="__dlpack__"):
        x.__cuda_array_interface__  # noqa: B018


# Arrow's device arrays.


class Driver:
    """A stand-in for CUDA's driver, which waits for events; `status` is what it returns."""

    status = 0

    def __init__(self, name: str) -> None:
        self.waits: list[tuple[int | None, ...]] = []
        self.name = name

    def cuStreamWaitEvent(self, *args: Any) -> int:
        self.waits.append(tuple(arg.value for arg in args))
        return self.status


def with_event(event: int = 0x9000) -> arrow.DeviceProducer:
    slot = ctypes.c_uint64(event)
    producer = arrow.DeviceProducer(
        arrow.schema(b"i"),
        arrow.array(3, None, np.arange(3, dtype=np.int32)),
        device_type=abi.CUDA,
        sync_event=ctypes.addressof(slot),
    )
    producer.array.keep(slot)
    return producer


def test_our_stream_waits_for_the_event(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    drivers: list[Driver] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda name: drivers.append(Driver(name)) or drivers[-1])
    cuda.current[0] = SIDE
    x = bridge.from_dlpack(with_event())
    assert str(x.device()) == "cuda:0"
    assert drivers[0].waits == [(SIDE, 0x9000, 0)]
    bridge.from_dlpack(with_event(0))
    assert len(drivers) == 1
    monkeypatch.setattr(Driver, "status", 201)
    with pytest.raises(BufferError, match="201"):
        bridge.from_dlpack(with_event())


def test_an_event_that_cannot_be_waited_for_is_refused(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", absent)
    with pytest.raises(BufferError, match="not ready"):
        bridge.from_dlpack(with_event())
    cuda.current[0] = SIDE
    cuda.capturing.add(SIDE)
    with pytest.raises(BufferError, match="captured"):
        bridge.from_dlpack(with_event())


def test_a_device_array_is_ready(cuda: FakeCuda) -> None:
    x = on_cuda()
    cuda.current[0] = SIDE
    with pytest.raises(BufferError, match="__arrow_c_device_array__"):
        x.__arrow_c_array__()
    _, capsule = x.__arrow_c_device_array__()
    found = arrow.ArrowDeviceArray.from_address(arrow.pointer(capsule, b"arrow_device_array"))
    assert (found.device_type, found.device_id, found.sync_event) == (abi.CUDA, 0, None)
    assert cuda.finished == [(0, SIDE)]


def test_the_work_of_another_thread_is_on_our_streams(cuda: FakeCuda) -> None:
    seen: list[list[int]] = []

    def work() -> None:
        seen.append([stream.cuda_stream for stream in cuda._inside])

    assert streams.on_current_streams(work) is work  # where threads begin
    cuda.current = [SIDE, THEIRS]
    streams.on_current_streams(work)()
    assert seen == [[SIDE, THEIRS]]
    assert not cuda._inside
    cuda.initialized = False
    cuda.questions.clear()
    assert streams.on_current_streams(work) is work
    assert not cuda.questions
