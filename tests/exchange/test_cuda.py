# SPDX-License-Identifier: Apache-2.0
"""Exchange of tensors on a CUDA device, at one address; page-locked memory; several devices."""

import gc
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from tests.helpers import dlpack_structs as abi
from tests.helpers.dlpack_consumer import ExchangeTable, take

pytestmark = pytest.mark.cuda
several = pytest.mark.skipif(
    torch.cuda.device_count() < 2, reason="torch sees fewer than two CUDA devices"
)
both_wrappers = pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])


def six() -> torch.Tensor:
    return torch.arange(6.0, device="cuda").reshape(2, 3)


@both_wrappers
def test_torch_tensors_come_in_and_go_out_at_one_address(wrap: type) -> None:
    t = six()
    x = wrap(bridge.from_dlpack(t))
    assert x.__dlpack_device__() == (abi.CUDA, 0)
    assert x.to_torch() is t
    assert take_address(x) == t.data_ptr()
    view = bridge.from_dlpack(t)[1:].to_torch()
    assert view.data_ptr() == t.data_ptr() + 12
    assert view.device == t.device
    assert view.tolist() == [[3, 4, 5]]


def take_address(x: Any) -> int:
    taken = take(x)
    assert taken.device == (abi.CUDA, 0)
    taken.release()
    return taken.address


@both_wrappers
def test_the_interface_of_cuda_arrays_describes_the_tensor(wrap: type) -> None:
    t = six()
    interface = wrap(bridge.from_dlpack(t)).__cuda_array_interface__
    assert interface["data"] == (t.data_ptr(), False)
    assert tuple(interface["shape"]) == (2, 3)
    assert interface["typestr"] == "<f4"
    assert interface["version"] >= 2
    assert interface.get("strides") in (None, (12, 4))


def test_an_object_with_only_the_interface_is_shared() -> None:
    class Interface:
        def __init__(self, t: torch.Tensor) -> None:
            self.t = t
            self.__cuda_array_interface__ = t.__cuda_array_interface__

    t = six().t()
    x = bridge.from_dlpack(Interface(t))
    assert x.data_ptr() == t.data_ptr()
    assert tuple(x.strides()) == (1, 3)
    assert x.to_torch().tolist() == t.tolist()


@both_wrappers
def test_host_memory_is_not_pretended(wrap: type) -> None:
    x = wrap(bridge.from_dlpack(six()))
    for out in (lambda: x.numpy(), lambda: bridge.to_numpy(x)):
        with pytest.raises((BufferError, c10.EnforceNotMet)):
            out()
    for out in (memoryview, x.__array__):
        with pytest.raises((BufferError, TypeError, c10.EnforceNotMet)):
            out(x) if out is memoryview else out()


def test_a_device_that_is_asked_for_gets_a_copy() -> None:
    host = torch.arange(6.0)
    x = bridge.from_dlpack(host, device="cuda:0")
    assert x.to_torch().device == torch.device("cuda:0")
    assert x.to_torch().tolist() == host.tolist()
    with pytest.raises(BufferError):
        bridge.from_dlpack(host, device="cuda:0", copy=False)
    back = bridge.from_dlpack(x, device="cpu")
    assert back.numpy().tolist() == host.tolist()
    assert bridge.asarray([1, 2], device="cuda").to_torch().tolist() == [1, 2]


@both_wrappers
def test_an_export_to_the_host_is_a_copy(wrap: type) -> None:
    x = wrap(bridge.from_dlpack(six()))
    taken = take(x, dl_device=(abi.CPU, 0))
    assert taken.device == (abi.CPU, 0)
    assert taken.copied
    taken.release()
    with pytest.raises((BufferError, ValueError)):
        x.__dlpack__(max_version=(1, 3), dl_device=(abi.CPU, 0), copy=False)


@both_wrappers
def test_the_table_allocates_on_the_device(wrap: type) -> None:
    table = ExchangeTable(wrap)
    allocated = table.allocate((4, 4), device=(abi.CUDA, 0))
    assert allocated.device == (abi.CUDA, 0)
    x = table.give(allocated.surrender())
    assert type(x) is wrap
    assert x.to_torch().fill_(2).sum().item() == 32


def test_the_package_allocates_with_the_allocator_of_torch() -> None:
    gc.collect()  # what other tests left would go in between
    before = torch.cuda.memory_allocated()
    x = at.zeros(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() - before >= 4 << 20
    t = x.to_torch()
    assert t.sum().item() == 0
    del x, t
    assert torch.cuda.memory_allocated() == before


def test_pinned_memory_of_torch_is_shared_as_memory_of_the_cpu() -> None:
    t = torch.arange(6.0).pin_memory()
    x = bridge.from_dlpack(t)
    assert x.device() == "cpu"  # as torch has it
    assert x.data_ptr() == t.data_ptr()
    assert x.to_torch() is t
    array = x.numpy()
    assert array.ctypes.data == t.data_ptr()
    assert array.tolist() == [0, 1, 2, 3, 4, 5]

    class Held:
        """What holds a tensor, and says of it what torch does."""

        def __dlpack__(self, **asked: Any) -> Any:
            return t.__dlpack__(**asked)

        def __dlpack_device__(self) -> Any:
            return t.__dlpack_device__()

    assert bridge.from_dlpack(Held()).data_ptr() == t.data_ptr()


@both_wrappers
def test_pinned_memory_of_the_package_is_shared_with_numpy_and_torch(wrap: type) -> None:
    x = wrap(at.empty(6, c10.pinned_memory(True).dtype("float32")))
    address = at.Tensor(x).data_ptr()
    assert x.__dlpack_device__() == (abi.CUDA_HOST, 0)
    array = x.numpy()
    array[:] = range(6)
    assert array.ctypes.data == address
    t = x.to_torch()
    assert t.is_pinned()
    assert t.data_ptr() == address
    assert torch.from_dlpack(x).data_ptr() == address
    assert np.from_dlpack(x).ctypes.data == address
    with pytest.raises(RuntimeError):
        t.resize_(1 << 20)  # which would free the memory
    here = bridge.from_dlpack(x, device="cpu", copy=False)
    assert here.data_ptr() == address
    there = bridge.from_dlpack(x, device="cuda")
    assert there.device() == "cuda:0"
    back = there.pin_memory()
    assert back.device() == "cuda_host"
    assert back.tolist() == at.Tensor(x).tolist() == [0, 1, 2, 3, 4, 5]
    assert at.Tensor(x).add(there.cpu()).tolist() == [0, 2, 4, 6, 8, 10]


def test_rand_arange_and_tensor_give_pinned_memory() -> None:
    pinned = c10.pinned_memory(True)
    for x in (at.rand(2, pinned), at.arange(2, pinned), at.tensor([1.0, 2.0], pinned)):
        assert x.device() == "cuda_host"
        assert x.to_torch().is_pinned()


def test_tensors_of_caffe2_have_pinned_memory() -> None:
    tensor = caffe2.Tensor((2, 3), "cuda_host")
    tensor.mutable_data("float32").fill_(7)
    assert tensor.numpy().ctypes.data == tensor.raw_data()
    there = caffe2.Tensor(tensor, "cuda")
    assert caffe2.Tensor(there, "cpu").numpy().tolist() == [[7, 7, 7], [7, 7, 7]]
    tensor.CopyFrom(there)
    assert tensor.GetDeviceType() == c10.CUDAHost


def test_views_share_torchs_storage() -> None:
    x = at.zeros(4, 4, device="cuda")
    t = x.to_torch()
    view = x[1:, ::2].to_torch()
    assert view.untyped_storage().data_ptr() == t.untyped_storage().data_ptr()
    assert view.data_ptr() == x.data_ptr() + 16
    view.fill_(1)
    assert t.sum().item() == 6
    x.zero_()
    assert view.sum().item() == 0
    x[0] = 3
    x.narrow(0, 1, 1).fill_(2)
    assert t.sum().item() == 20


def test_memory_that_torch_resized_is_noticed() -> None:
    x = at.zeros(4, device="cuda")
    imported = torch.zeros(4, device="cuda")
    y = bridge.from_dlpack(imported)
    taken = take(y)
    x.to_torch().untyped_storage().resize_(1 << 22)
    imported.untyped_storage().resize_(1 << 22)
    for resized in (x, y):
        for use in (resized.data_ptr, resized.tolist, lambda one=resized: take(one)):
            with pytest.raises(c10.EnforceNotMet):
                use()
    taken.release()


def test_negative_strides_are_read_and_written_and_copied_for_torch() -> None:
    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = bridge.from_dlpack(host, device="cuda")
    back = x[::-1, ::-1]
    assert back.tolist() == host[::-1, ::-1].tolist()
    assert back.clone().tolist() == host[::-1, ::-1].tolist()
    assert back.to_torch().cpu().numpy().tolist() == host[::-1, ::-1].tolist()
    with pytest.raises(BufferError, match="negative"):
        back.to_torch(copy=False)
    back.copy_(at.tensor(host))
    assert x.tolist() == host[::-1, ::-1].tolist()


def test_a_device_that_is_not_there_is_refused() -> None:
    count = torch.cuda.device_count()
    for make in (
        lambda: at.empty(2, device=f"cuda:{count}"),
        lambda: at.empty(0, device=f"cuda:{count}"),
        lambda: bridge.from_dlpack(torch.ones(2), device=f"cuda:{count}"),
        lambda: caffe2.Tensor((2,), f"cuda:{count}").mutable_data("float32"),
    ):
        with pytest.raises(c10.EnforceNotMet, match=f"no cuda:{count}"):
            make()


def test_more_than_the_device_has() -> None:
    with pytest.raises(MemoryError):
        at.empty(1 << 50, device="cuda")
    tensor = caffe2.Tensor((1 << 50,), "cuda")
    with pytest.raises(MemoryError):
        tensor.mutable_data("uint8")
    assert not tensor.storage_initialized()


@several
def test_each_of_several_devices_keeps_its_memory() -> None:
    t = torch.arange(3.0, device="cuda:1")
    x = bridge.from_dlpack(t)
    assert x.device() == "cuda:1"
    assert x.to_torch() is t
    assert x.__dlpack_device__() == (abi.CUDA, 1)
    taken = take(x)
    assert taken.device == (abi.CUDA, 1)
    taken.release()
    made = at.empty(3, device="cuda:1")
    assert made.to_torch().device == torch.device("cuda:1")
    assert c10.GetAllocator("cuda").allocate(4).address  # of the current device
    assert at.empty(3, device="cuda:1").to_torch().device == torch.device("cuda:1")
    made.copy_(at.tensor([4.0, 5, 6]).cuda("cuda:0"))
    assert made.tolist() == [4, 5, 6]
    moved = bridge.from_dlpack(x, device="cuda:0")
    assert (moved.device(), moved.tolist()) == ("cuda:0", [0, 1, 2])
    with pytest.raises(BufferError):
        bridge.from_dlpack(x, device="cuda:0", copy=False)

    class Interface:
        __cuda_array_interface__ = t.__cuda_array_interface__

    described = bridge.from_dlpack(Interface())
    assert (described.device(), described.data_ptr()) == ("cuda:1", t.data_ptr())
    with torch.cuda.device(1):
        assert at.empty(2, device="cuda").device() == "cuda:1"
        allocator = c10.GetAllocator("cuda")
        assert allocator is c10.GetAllocator("cuda:1")
        assert allocator is not c10.GetAllocator("cuda:0")


def test_a_tensor_that_requires_grad_is_refused() -> None:
    with pytest.raises(BufferError, match=r"detach\(\)"):
        bridge.from_dlpack(torch.ones(2, device="cuda", requires_grad=True))


def test_lazy_bits_are_resolved_by_a_copy() -> None:
    t = torch.tensor([1 + 2j], device="cuda").conj()
    assert bridge.from_dlpack(t).to_torch().tolist() == [1 - 2j]
    assert bridge.from_dlpack(t.imag).to_torch().tolist() == [-2.0]
    with pytest.raises(BufferError):
        bridge.from_dlpack(t, copy=False)
