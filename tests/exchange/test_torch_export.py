# SPDX-License-Identifier: Apache-2.0
"""Out to torch: shared, copied where torch cannot express the memory, or refused."""

import mmap
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import bridge
from bridge import at, caffe2
from tests.helpers.dlpack_consumer import read_elements
from tests.helpers.element_types import IN_BOTH, IN_BUFFERS, MOST_AXES, ElementType
from tests.helpers.ids import shown

both_wrappers = pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


@both_wrappers
@pytest.mark.parametrize("copy", [None, False])
def test_memory_of_the_package_is_shared(wrap: type, copy: bool | None) -> None:
    x = wrap(at.arange(6, dtype="float32").view(2, 3))
    t = bridge.to_torch(x, copy=copy)
    assert t.data_ptr() == x.numpy().ctypes.data == x.to_torch().data_ptr()
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert not t.requires_grad
    assert t.is_leaf
    assert t.device.type == "cpu"
    t[1, 2] = -1
    assert x.numpy()[1, 2] == -1
    t.requires_grad_()
    (t * 2).sum().backward()
    assert t.grad is not None
    assert t.grad.shape == (2, 3)


@both_wrappers
def test_copy_true_is_a_copy(wrap: type) -> None:
    x = wrap(at.ones(2, 3))
    t = bridge.to_torch(x, copy=True)
    t.zero_()
    assert x.numpy().sum() == 6


def test_the_memory_outlives_the_wrapper() -> None:
    x = at.arange(1000, dtype="float64")
    t = x.to_torch()
    del x
    others = [torch.full((1000,), 7.0, dtype=torch.float64) for _ in range(8)]
    assert t.tolist() == list(range(1000))
    assert len(others) == 8


def test_a_torch_tensor_comes_back_as_itself() -> None:
    for t in (
        torch.ones(3),
        torch.ones(3, requires_grad=True),
        torch.nn.Parameter(torch.ones(2)),
        torch.ones(2, dtype=torch.complex64).conj(),
        torch.eye(2).to_sparse(),
        torch.ones(2, device="meta"),
    ):
        assert bridge.to_torch(t) is t
        assert bridge.to_torch(t, copy=False) is t
        assert bridge.convert(t, "torch") is t


def test_the_object_comes_back_from_every_wrapper() -> None:
    t = torch.arange(6.0)
    x = bridge.from_dlpack(t)
    assert x.to_torch() is t
    assert bridge.to_torch(x) is t
    assert at.Tensor(x).to_torch() is t
    assert caffe2.Tensor(x).to_torch() is t
    assert bridge.from_dlpack(x).to_torch() is t
    copied = bridge.to_torch(x, copy=True)
    assert copied is not t
    assert copied.data_ptr() != t.data_ptr()
    assert copied.tolist() == t.tolist()


def test_a_view_is_another_tensor_of_the_same_memory() -> None:
    t = torch.arange(6.0)
    view = bridge.from_dlpack(t).view(2, 3)
    out = view.to_torch()
    assert out is not t
    assert (tuple(out.shape), out.data_ptr()) == ((2, 3), t.data_ptr())
    part = bridge.from_dlpack(t)[4:].to_torch()
    assert part.data_ptr() == t.data_ptr() + 16
    assert part.tolist() == [4, 5]


@pytest.mark.parametrize("element", IN_BOTH, ids=str)
def test_arrays_of_every_type_are_shared_with_torch(element: ElementType) -> None:
    array = np.frombuffer(bytearray(element.sample_bytes(6)), element.numpy).reshape(2, 3)
    t = bridge.to_torch(array)
    assert t.dtype is element.torch
    assert t.data_ptr() == array.ctypes.data
    assert read_elements(t.data_ptr(), t.shape, t.stride(), element.itemsize) == array.tobytes()


@pytest.mark.parametrize("name", ["float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"])
def test_types_that_torch_lacks_are_refused(name: str) -> None:
    array = np.zeros(3, getattr(ml_dtypes, name))
    with pytest.raises((BufferError, TypeError), match=name):
        bridge.to_torch(array)


NEGATIVE: dict[str, np.ndarray] = {
    "reversed": np.arange(6.0)[::-1],
    "reversed rows": np.arange(6.0).reshape(2, 3)[::-1],
    "reversed columns": np.arange(6.0).reshape(2, 3)[:, ::-1],
    "both": np.arange(24.0).reshape(2, 3, 4)[::-1, :, ::-2],
}


@pytest.mark.parametrize("name", NEGATIVE)
def test_negative_strides_are_copied(name: str) -> None:
    array = NEGATIVE[name]
    x = bridge.from_dlpack(array, copy=False)
    for t in (bridge.to_torch(array), bridge.to_torch(x), x.to_torch()):
        assert t.tolist() == array.tolist()
        assert min(t.stride()) >= 0
    for source in (array, x):
        with pytest.raises(BufferError):
            bridge.to_torch(source, copy=False)


def test_negative_strides_of_one_element_or_none_are_exported() -> None:
    array = np.arange(6.0)[::-1][:1]
    t = bridge.to_torch(array)
    assert t.tolist() == [5.0]
    empty = np.arange(6.0)[::-1][:0]
    assert bridge.to_torch(empty).tolist() == []


OTHER_LAYOUTS: dict[str, np.ndarray] = {
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "expanded": np.lib.stride_tricks.as_strided(np.arange(3.0), (2, 3), (0, 8)),
    "every other": np.arange(10.0)[::2],
    "0-d": np.array(3.0),
    "empty": np.zeros((2, 0, 3)),
    "windows": np.lib.stride_tricks.as_strided(np.arange(5.0), (3, 3), (8, 8)),
    "most axes": np.arange(6.0).reshape((1,) * (MOST_AXES - 2) + (2, 3)),
}


@pytest.mark.parametrize("name", OTHER_LAYOUTS)
def test_other_layouts_are_shared(name: str) -> None:
    array = OTHER_LAYOUTS[name]
    assert array.flags.writeable
    t = bridge.to_torch(array, copy=False)
    assert tuple(t.shape) == array.shape
    assert t.tolist() == array.tolist()
    if array.size:
        assert t.data_ptr() == array.ctypes.data


def immutable_map() -> Any:
    writable = mmap.mmap(-1, 16)
    writable[:4] = b"\1\2\3\4"
    return memoryview(writable).toreadonly()


READ_ONLY: dict[str, Callable[[], Any]] = {
    "array": lambda: read_only(np.arange(4.0)),
    "view": lambda: read_only(np.arange(8.0))[::2],
    "broadcast": lambda: np.broadcast_to(np.float32(2), (2, 2)),
    "bytes": lambda: b"\1\2\3\4",
    "memoryview": lambda: memoryview(bytearray(b"\1\2\3\4")).toreadonly(),
    "map": immutable_map,
    "wrapper": lambda: bridge.from_dlpack(read_only(np.arange(4.0))),
    "caffe2 wrapper": lambda: caffe2.Tensor(bridge.from_dlpack(read_only(np.arange(4.0)))),
    "view of a wrapper": lambda: bridge.from_dlpack(read_only(np.arange(8.0)))[2:6].view(2, 2),
}


@pytest.mark.parametrize("name", READ_ONLY)
def test_read_only_memory_is_copied(name: str) -> None:
    source = READ_ONLY[name]()
    array = bridge.to_numpy(source)
    before = array.tobytes()
    t = bridge.to_torch(source)
    assert t.data_ptr() != array.ctypes.data
    assert t.tolist() == array.tolist()
    t.zero_()
    assert array.tobytes() == before
    with pytest.raises(BufferError):
        bridge.to_torch(source, copy=False)


@pytest.mark.parametrize("name", [name for name in READ_ONLY if name != "broadcast"])
def test_read_only_memory_is_shared_when_the_caller_says_so(name: str) -> None:
    source = READ_ONLY[name]()
    array = bridge.to_numpy(source)
    for copy in (None, False):
        t = bridge.to_torch(source, copy=copy, writable=True)
        assert t.data_ptr() == array.ctypes.data
        assert t.tolist() == array.tolist()
    assert not bridge.to_numpy(source).flags.writeable


@both_wrappers
def test_the_method_copies_read_only_memory_too(wrap: type) -> None:
    array = read_only(np.arange(4, dtype=np.float32))
    x = wrap(bridge.from_dlpack(array))
    t = x.to_torch()
    assert t.data_ptr() != array.ctypes.data
    t.fill_(9)
    assert array.tolist() == [0, 1, 2, 3] == x.numpy().tolist()


def test_writable_memory_needs_no_permission() -> None:
    x = at.ones(3)
    assert bridge.to_torch(x, writable=True).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("element", IN_BUFFERS, ids=str)
def test_foreign_byte_order_is_copied(element: ElementType) -> None:
    if element.itemsize == 1:
        swapped = np.frombuffer(bytearray(element.sample_bytes(4)), element.numpy)
    else:
        native = np.frombuffer(bytearray(element.sample_bytes(4)), element.numpy)
        swapped = native.astype(native.dtype.newbyteorder())
        with pytest.raises(BufferError):
            bridge.to_torch(swapped, copy=False)
    assert bridge.to_torch(swapped).tolist() == swapped.tolist()


@pytest.mark.parametrize("copy", ["yes", 2, 0.5])
def test_copy_is_a_bool_or_none(copy: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        bridge.to_torch(at.ones(2), copy=copy)


@pytest.mark.parametrize("wrong", [object(), None, 5, lambda: 0, int], ids=shown)
def test_objects_without_memory_are_refused(wrong: Any) -> None:
    with pytest.raises(TypeError):
        bridge.to_torch(wrong)


@both_wrappers
def test_tensors_without_elements_for_torch_are_refused(wrap: type) -> None:
    with pytest.raises((BufferError, RuntimeError, TypeError)):
        bridge.to_torch(wrap([2, 3], "cpu") if wrap is caffe2.Tensor else bridge.asarray(["a"]))
