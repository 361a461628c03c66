# SPDX-License-Identifier: Apache-2.0
"""Memory of other devices than the CPU, on stand-ins that are host memory: what is shared with
torch, what is copied by it, and what becomes of memory that torch takes away.

Device cuda:77 allocates host memory through torch. The tests marked `cuda` see to the real one.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from bridge.exchange.device_memory import TorchAllocator
from tests.helpers import dlpack_structs as abi
from tests.helpers.dlpack_consumer import take
from tests.helpers.dlpack_producer import Producer, TensorSpec
from tests.helpers.isolate import isolated, run_python

MANAGED = 13
FAR = "cuda:77"


@pytest.fixture
def far() -> TorchAllocator:
    allocator = TorchAllocator("cpu")
    c10.SetAllocator(FAR, allocator)
    return allocator


def filled(*sizes: int) -> at.Tensor:
    x = at.empty(*sizes, device=FAR)
    x.copy_(at.arange(x.numel(), dtype="float32").view(*sizes))
    return x


def test_torch_gets_a_tensor_of_its_own_storage(far: TorchAllocator) -> None:
    x = filled(2, 3)
    whole = x.to_torch()
    for one in (x, x[1:], x.t(), x[:, 1]):
        t = one.to_torch()
        assert t.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()
        assert (t.data_ptr(), t.stride()) == (one.data_ptr(), tuple(one.strides()))
        assert t.tolist() == one.tolist()
    x.to_torch().fill_(9)
    assert x.tolist() == [[9, 9, 9], [9, 9, 9]]
    again = x.view("int8")[:, 1:5].to_torch()  # not aligned for the allocator's elements, but bytes
    assert again.data_ptr() == x.data_ptr() + 1


def test_the_memory_lives_as_long_as_torchs_tensor(far: TorchAllocator) -> None:
    x = filled(4)
    t = x.to_torch()
    del x
    gc.collect()
    assert far.stats.allocated_bytes == 0
    filled(4).fill_(5)
    assert t.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("nbytes", [0, 4, 4 << 20])
def test_memory_that_torch_resized_is_noticed(far: TorchAllocator, nbytes: int) -> None:
    x = filled(4)
    view, copy = x[1:], caffe2.Tensor(x)
    taken = take(x, stream=-1)
    x.to_torch().untyped_storage().resize_(nbytes)
    for use in (x.data_ptr, view.tolist, copy.Clone, x.to_torch, lambda: x.__dlpack__(stream=-1)):
        with pytest.raises(c10.EnforceNotMet, match="resized"):
            use()
    taken.release()
    others = [filled(4) for _ in range(4)]  # of which one may lie where that was
    with pytest.raises(c10.EnforceNotMet, match="resized"):
        x.data_ptr()
    del copy, view
    x.set_(filled(2))
    gc.collect()
    assert [one.tolist() for one in others] == [[0, 1, 2, 3]] * 4
    for one in others:
        one.to_torch().fill_(1)
    assert x.tolist() == [0, 1]


def test_who_holds_the_memory_is_counted(far: TorchAllocator) -> None:
    x = filled(4)
    lent = x.to_torch()
    assert bridge.explain(x).shared_by == []
    capsule = x.__dlpack__(stream=-1)
    assert bridge.explain(x).shared_by[0].startswith("1 held by")
    del capsule, lent


def test_negative_strides_are_read_and_written_by_torch(far: TorchAllocator) -> None:
    x = filled(2, 3)
    back = x[::-1, ::-1]
    mixed = x[:, ::-1]
    assert back.tolist() == [[5, 4, 3], [2, 1, 0]]
    assert mixed.clone().tolist() == [[2, 1, 0], [5, 4, 3]]
    assert back.cpu().numpy().tolist() == back.tolist()
    assert bridge.to_torch(mixed).tolist() == mixed.tolist()
    mixed.copy_(at.tensor([[10.0, 20, 30], [40, 50, 60]]))
    assert x.tolist() == [[30, 20, 10], [60, 50, 40]]
    x.copy_(back.clone())
    assert x.tolist() == [[40, 50, 60], [10, 20, 30]]
    x.copy_(back)  # overlapping: all is read before anything is written
    assert x.tolist() == [[30, 20, 10], [60, 50, 40]]
    back.fill_(1)
    mixed[0] = 2
    assert x.tolist() == [[2, 2, 2], [1, 1, 1]]
    back.zero_()
    assert not any(map(any, x.tolist()))


def test_metadata_that_torch_changed_does_not_change_the_copy() -> None:
    t = torch.arange(6.0).reshape(2, 3)
    x = bridge.from_dlpack(t)
    c10.SetAllocator(FAR, TorchAllocator("cpu"))
    t.t_()
    y = at.empty(2, 3, device=FAR)
    y.copy_(x)
    assert y.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_sizes_that_torch_cannot_give_are_refused(far: TorchAllocator) -> None:
    x = filled(2)
    with pytest.raises(MemoryError):
        at.empty(1 << 60, device=FAR)
    with pytest.raises(MemoryError):
        caffe2.Tensor((1 << 60,), FAR).mutable_data("float32")
    assert far.stats.allocated_bytes == 8
    assert far.raw_allocate(0) == 0
    far.raw_deallocate(0)
    with pytest.raises(c10.EnforceNotMet, match="not a live"):
        far.raw_deallocate(8)
    address = far.raw_allocate(4)
    far.raw_deallocate(address)
    with pytest.raises(c10.EnforceNotMet, match="not a live"):
        far.raw_deallocate(address)
    assert x.tolist() == [0, 1]


def test_a_device_that_torch_cannot_allocate_on_is_not_a_memory_error() -> None:
    c10.SetAllocator("cuda:78", TorchAllocator("meta:no such device"))
    with pytest.raises(c10.EnforceNotMet, match="does not allocate") as raised:
        at.empty(2, device="cuda:78")
    assert not isinstance(raised.value, MemoryError)


def host(device: tuple[int, int]) -> tuple[np.ndarray[Any, Any], at.Tensor]:
    array = np.arange(6, dtype=np.float32)
    return array, bridge.from_dlpack(Producer(TensorSpec.of_array(array, device=device)))


def test_page_locked_memory_is_the_cpus_too() -> None:
    array, x = host((abi.CUDA_HOST, 0))
    address = array.ctypes.data
    assert x.device() == "cuda_host"
    assert x.numpy().ctypes.data == address
    assert x.to_torch().data_ptr() == address
    assert x.to_torch().device == torch.device("cpu")
    assert torch.from_dlpack(x).data_ptr() == address
    assert np.from_dlpack(x).ctypes.data == address
    assert (x + 1).tolist() == [1, 2, 3, 4, 5, 6]
    here = x.cpu()
    assert (here.device(), here.data_ptr()) == ("cpu", address)
    assert bridge.from_dlpack(x, device="cpu", copy=False).data_ptr() == address
    for copy, shared in ((None, True), (False, True), (True, False)):
        taken = take(x, dl_device=(abi.CPU, 0), copy=copy)
        assert taken.device == (abi.CPU, 0)
        assert (taken.address == address) is shared
        assert taken.copied is not shared
        taken.release()
    taken = take(x)
    assert taken.device == (abi.CUDA_HOST, 0)
    assert not taken.copied
    taken.release()


def test_page_locked_memory_goes_to_frameworks_as_the_cpus() -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")
    _, x = host((abi.CUDA_HOST, 0))
    assert bridge.to_jax(x).tolist() == [0, 1, 2, 3, 4, 5]
    assert isinstance(bridge.to_jax(x), jax.Array)
    assert tf.is_tensor(bridge.to_tensorflow(x))


def test_page_locked_memory_is_taken_if_torch_says_it_is_pinned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # its __dlpack_device__ and its capsule say one thing each
    array = np.arange(3.0)
    producer = Producer(TensorSpec.of_array(array), device=(abi.CUDA_HOST, 0))
    with pytest.raises(BufferError, match="__dlpack_device__"):
        bridge.from_dlpack(producer)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda _: True, raising=False)
    assert bridge.from_dlpack(producer).device() == "cpu"
    for device, said in (((abi.CPU, 0), abi.CUDA_HOST), ((abi.CPU, 0), abi.CUDA)):
        spec = TensorSpec.of_array(array, device=(said, 0))
        with pytest.raises(BufferError, match="__dlpack_device__"):
            bridge.from_dlpack(Producer(spec, device=device))


@isolated
def test_where_memory_is_gets_settled_without_reading_it() -> None:
    # torch takes no negative strides, so all elements would be copied to ask it
    spec = TensorSpec.of_array(np.arange(3.0)).but(strides=(-(2**40),))
    with pytest.raises(BufferError, match="__dlpack_device__"):
        bridge.from_dlpack(Producer(spec, device=(abi.CUDA_HOST, 0)))


@pytest.mark.skipif(
    torch.version.cuda is not None and not torch.cuda.is_available(),
    reason="this torch asks the driver where managed memory lies",
)
def test_managed_memory_goes_to_torch_as_cuda_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    array, x = host((MANAGED, 0))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    t = x.to_torch()
    assert t.device == torch.device("cuda:0")
    assert t.data_ptr() == array.ctypes.data
    assert x.__cuda_array_interface__["data"] == (array.ctypes.data, False)
    assert x.__dlpack_device__() == (MANAGED, 0)


ALLOCATORS = """
from bridge import at, c10
from bridge.c10.allocator import Allocator, register_default_allocator

class Mine(Allocator):
    pass

asked = []
def provider(index):
    asked.append(index)
    return Mine() if index >= 0 else c10.GetAllocator("cuda:1")
register_default_allocator(c10.CUDA, provider)

first = c10.GetAllocator("cuda:0")
assert c10.GetAllocator("cuda:0") is first
current = c10.GetAllocator("cuda")
assert current is c10.GetAllocator("cuda:1") is not first   # not that of the current device
assert c10.GetAllocator("cuda:2") is not current
assert asked == [0, -1, 1, 2]
one, whole = Mine(), Mine()
c10.SetAllocator(c10.Device("cuda:0"), one)
assert c10.GetAllocator("cuda:0") is one
assert c10.GetAllocator("cuda:2") is not one
c10.SetAllocator("cuda", whole)
assert c10.GetAllocator("cuda:2") is c10.GetAllocator("cuda") is whole  # made before, and now set
assert c10.GetAllocator("cuda:0") is whole
assert at.empty(2, device="cuda:5").device() == "cuda:5"
assert whole.stats.allocations == 1
"""


def test_each_device_has_its_allocator() -> None:
    run_python(ALLOCATORS)


UNTOUCHED = """
import bridge, numpy, torch
from bridge import at, caffe2
from bridge.caffe2 import workspace

def fails(*_, **__):
    raise AssertionError("CUDA was asked for")
for name in ("init", "is_available", "current_device", "current_stream", "device_count"):
    setattr(torch.cuda, name, fails)
t = torch.arange(3.0)
x = bridge.from_dlpack(t)
assert x.to_torch() is t
for out in (bridge.to_numpy, torch.from_dlpack, numpy.from_dlpack):
    assert out(x).tolist() == [0, 1, 2]
assert x.cpu().add(1).tolist() == [1, 2, 3]
workspace.FeedBlob("x", t)
workspace.FeedBlob("y", numpy.ones(2))
assert workspace.FetchTorch("x") is t
assert caffe2.Tensor((2,), "cpu").mutable_data("float32").size == 2
assert bridge.explain(x).device == "cpu" and bridge.shares_memory(x, t)
at.empty(2).fill_(3)
caffe2.Tensor(x).Clone()
assert not torch.cuda.is_initialized()
"""


def test_host_memory_leaves_cuda_alone() -> None:
    run_python(UNTOUCHED)
