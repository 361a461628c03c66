# SPDX-License-Identifier: Apache-2.0
"""Exchange of tensors on a CUDA device, at one address, on the streams of the standard."""

from typing import Any

import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from tests.helpers import dlpack_structs as abi
from tests.helpers.dlpack_consumer import ExchangeTable, take

pytestmark = pytest.mark.cuda
both_wrappers = pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])


def six() -> torch.Tensor:
    return torch.arange(6.0, device="cuda").reshape(2, 3)


@both_wrappers
def test_torch_in_and_out(wrap: type) -> None:
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
def test_the_interface_of_cuda_arrays(wrap: type) -> None:
    t = six()
    interface = wrap(bridge.from_dlpack(t)).__cuda_array_interface__
    assert interface["data"] == (t.data_ptr(), False)
    assert tuple(interface["shape"]) == (2, 3)
    assert interface["typestr"] == "<f4"
    assert interface["version"] >= 2
    assert interface.get("strides") in (None, (12, 4))


def test_an_object_with_only_the_interface() -> None:
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


@both_wrappers
@pytest.mark.parametrize("stream", [None, -1, 1, 2])
def test_streams(wrap: type, stream: int | None) -> None:
    t = six()
    capsule = wrap(bridge.from_dlpack(t)).__dlpack__(stream=stream, max_version=(1, 3))
    again = torch.from_dlpack(capsule)
    assert again.data_ptr() == t.data_ptr()


@both_wrappers
def test_stream_zero_is_ambiguous(wrap: type) -> None:
    with pytest.raises((ValueError, BufferError, RuntimeError)):
        wrap(bridge.from_dlpack(six())).__dlpack__(stream=0)


@both_wrappers
def test_the_current_stream_is_that_of_torch(wrap: type) -> None:
    table = ExchangeTable(wrap)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        assert table.work_stream((abi.CUDA, 0)) == side.cuda_stream
    default = torch.cuda.current_stream().cuda_stream
    assert (table.work_stream((abi.CUDA, 0)) or 0) == default


def test_copies_between_devices() -> None:
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
def test_export_to_the_host(wrap: type) -> None:
    x = wrap(bridge.from_dlpack(six()))
    taken = take(x, dl_device=(abi.CPU, 0))
    assert taken.device == (abi.CPU, 0)
    assert taken.copied
    taken.release()
    with pytest.raises((BufferError, ValueError)):
        x.__dlpack__(max_version=(1, 3), dl_device=(abi.CPU, 0), copy=False)


@both_wrappers
def test_allocation_by_the_table(wrap: type) -> None:
    table = ExchangeTable(wrap)
    allocated = table.allocate((4, 4), device=(abi.CUDA, 0))
    assert allocated.device == (abi.CUDA, 0)
    x = table.give(allocated.surrender())
    assert type(x) is wrap
    assert x.to_torch().fill_(2).sum().item() == 32


def test_memory_of_the_package_is_that_of_torch() -> None:
    before = torch.cuda.memory_allocated()
    x = at.zeros(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() - before >= 4 << 20
    t = x.to_torch()
    assert t.sum().item() == 0
    del x, t
    assert torch.cuda.memory_allocated() == before


def test_pinned_memory() -> None:
    t = torch.arange(6.0).pin_memory()
    x = bridge.from_dlpack(t)
    assert x.data_ptr() == t.data_ptr()
    assert x.numpy().tolist() == t.tolist()
    assert x.to_torch() is t


def test_requires_grad() -> None:
    with pytest.raises(BufferError, match=r"detach\(\)"):
        bridge.from_dlpack(torch.ones(2, device="cuda", requires_grad=True))


def test_lazy_bits() -> None:
    t = torch.tensor([1 + 2j], device="cuda").conj()
    assert bridge.from_dlpack(t).to_torch().tolist() == [1 - 2j]
    assert bridge.from_dlpack(t.imag).to_torch().tolist() == [-2.0]
    with pytest.raises(BufferError):
        bridge.from_dlpack(t, copy=False)
