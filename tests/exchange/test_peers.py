# SPDX-License-Identifier: Apache-2.0
"""Other libraries read both wrappers: `from_dlpack` of NumPy, torch and tvm-ffi."""

from collections.abc import Callable
from typing import Any

import bridge
import numpy as np
import pytest
import torch
from bridge import at, caffe2

from tests.helpers.element_types import IN_BUFFERS, IN_TORCH, ElementType
from tests.helpers.isolate import isolated

both_wrappers = pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])


def six(wrap: type) -> Any:
    return wrap(at.arange(6, dtype="float32").view(2, 3))


def address(x: Any) -> int:
    return int(x.numpy().ctypes.data)


def typed(element: ElementType) -> at.Tensor:
    """Four elements of a type, in memory of the package."""
    data = bytearray(element.sample_bytes(4))
    return at.from_blob(data, (4,), options=element.name).clone()


@both_wrappers
@pytest.mark.parametrize("copy", [None, False, True])
def test_numpy(wrap: type, copy: bool | None) -> None:
    x = six(wrap)
    array = np.from_dlpack(x, copy=copy)
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (array.ctypes.data == address(x)) is (copy is not True)
    assert array.flags.writeable
    del x
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


@both_wrappers
def test_numpy_on_a_device(wrap: type) -> None:
    x = six(wrap)
    assert np.from_dlpack(x, device="cpu").ctypes.data == address(x)


@pytest.mark.parametrize("element", IN_BUFFERS, ids=str)
def test_numpy_of_every_type(element: ElementType) -> None:
    x = typed(element)
    array = np.from_dlpack(x)
    assert array.dtype == element.numpy
    assert array.tobytes() == element.sample_bytes(4)


def test_numpy_of_read_only_memory() -> None:
    x = bridge.from_dlpack(b"abc")
    array = np.from_dlpack(x)
    assert not array.flags.writeable
    assert array.tobytes() == b"abc"


def test_numpy_of_views() -> None:
    source = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
    x = bridge.from_dlpack(source)
    backwards = bridge.from_dlpack(source[::-1])
    for view in (x.permute(2, 0, 1), x[:, ::2], x[1, 2], x[:, :0], backwards):
        array = np.from_dlpack(view)
        assert array.tolist() == view.tolist()
        assert array.shape == tuple(view.sizes())


@both_wrappers
@pytest.mark.parametrize("copy", [None, False, True])
def test_torch(wrap: type, copy: bool | None) -> None:
    x = six(wrap)
    t = torch.from_dlpack(x, copy=copy)
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (t.data_ptr() == address(x)) is (copy is not True)
    del x
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("element", IN_TORCH, ids=str)
def test_torch_of_every_type(element: ElementType) -> None:
    x = typed(element)
    t = torch.from_dlpack(x)
    assert t.dtype is element.torch
    assert t.data_ptr() == x.data_ptr()


@both_wrappers
def test_torch_of_capsules(wrap: type) -> None:
    x = six(wrap)
    for max_version in (None, (1, 3)):
        t = torch.from_dlpack(x.__dlpack__(max_version=max_version))
        assert t.data_ptr() == address(x)


@isolated
def test_torch_of_negative_strides_does_not_abort() -> None:
    x = bridge.from_dlpack(np.arange(6.0)[::-1])
    capsule = x.__dlpack__(max_version=(1, 3))
    # What torch does with negative strides is its own; what we hand out has to be right.
    assert x.tolist() == [5, 4, 3, 2, 1, 0]
    assert bridge.from_dlpack(capsule).tolist() == [5, 4, 3, 2, 1, 0]
    assert bridge.to_torch(x).tolist() == [5, 4, 3, 2, 1, 0]


@both_wrappers
@isolated
def test_tvm_ffi(wrap: type) -> None:
    tvm_ffi = pytest.importorskip("tvm_ffi")
    x = six(wrap)
    out = tvm_ffi.from_dlpack(x)
    assert tuple(out.shape) == (2, 3)
    assert str(out.dtype) == "float32"
    back = bridge.from_dlpack(out)
    assert back.data_ptr() == address(x)
    del x, out
    assert back.tolist() == [[0, 1, 2], [3, 4, 5]]


@both_wrappers
@isolated
def test_tvm_ffi_as_an_argument(wrap: type) -> None:
    tvm_ffi = pytest.importorskip("tvm_ffi")
    seen = []
    function = tvm_ffi.convert(lambda tensor: seen.append(bridge.to_numpy(tensor).tolist()))
    function(six(wrap))
    assert seen == [[[0, 1, 2], [3, 4, 5]]]


@isolated
def test_tvm_ffi_in() -> None:
    tvm_ffi = pytest.importorskip("tvm_ffi")
    source = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = bridge.from_dlpack(tvm_ffi.from_dlpack(source))
    assert x.data_ptr() == source.ctypes.data
    assert x.to_torch().tolist() == source.tolist()
    x[0, 0] = 9
    assert source[0, 0] == 9


@both_wrappers
def test_functions_of_torch(wrap: type) -> None:
    """`__torch_function__`: torch's own functions take the wrappers, in any mixture."""
    x, t = six(wrap), torch.ones(2, 3)
    calls: list[Callable[[], Any]] = [
        lambda: torch.add(x, t),
        lambda: torch.add(t, x),
        lambda: t + x,
        lambda: torch.stack([t, x])[1] + 1,
        lambda: torch.cat((x, x))[:2] + 1,
    ]
    for call in calls:
        result = call()
        assert result.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_functions_of_torch_give_tensors_of_ours() -> None:
    x, t = six(at.Tensor), torch.ones(2, 3)
    assert type(torch.add(x, t)) is at.Tensor
    assert type(torch.softmax(x, -1)) is at.Tensor
    values, indices = torch.max(x, dim=1)
    assert type(values) is type(indices) is at.Tensor
    assert indices.tolist() == [2, 2]
    assert type(at.softmax(x, -1)) is at.Tensor
    np.testing.assert_allclose(
        at.softmax(x, -1).numpy(), torch.softmax(x.to_torch(), -1).numpy(), rtol=1e-6
    )


def test_functions_of_torch_work_on_the_same_memory() -> None:
    x = six(at.Tensor)
    out = torch.narrow(x, 0, 1, 1)
    assert out.data_ptr() == x.data_ptr() + 12
    torch.add(x, 1, out=x)
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_functions_of_torch_never_write_read_only_memory() -> None:
    array = np.arange(3, dtype=np.float32)
    array.flags.writeable = False
    x = bridge.from_dlpack(array)
    for write in (
        lambda: torch.add(x, 1, out=x),
        lambda: torch.Tensor.add_(x, 1),
        lambda: x.mul_(2),
        lambda: torch.nn.functional.relu_(x),
        lambda: torch.relu_(x),
        lambda: torch.Tensor.copy_(x, torch.zeros(3)),
        lambda: torch.Tensor.__setitem__(x, 0, 5.0),
        lambda: x.select(0, 1).fill_(7),
        lambda: at.add(x, 1, out=x),
        lambda: torch.Tensor.random_(x),
    ):
        with pytest.raises(RuntimeError):
            write()
        assert array.tolist() == [0, 1, 2]
    assert torch.add(x, 1).tolist() == [1, 2, 3]


def test_functions_of_numpy() -> None:
    for wrap in (at.Tensor, caffe2.Tensor):
        x = six(wrap)
        assert np.sum(np.asarray(x)) == 15
        assert np.add(np.ones((2, 3), np.float32), x).tolist() == [[1, 2, 3], [4, 5, 6]]
        assert np.concatenate([x, x]).shape == (4, 3)
