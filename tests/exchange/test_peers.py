# SPDX-License-Identifier: Apache-2.0
"""Other libraries read both wrappers: `from_dlpack` of NumPy, torch and tvm-ffi."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2
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
def test_numpy_shares_the_memory_unless_asked_to_copy(wrap: type, copy: bool | None) -> None:
    x = six(wrap)
    array = np.from_dlpack(x, copy=copy)
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (array.ctypes.data == address(x)) is (copy is not True)
    assert array.flags.writeable
    del x
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


@both_wrappers
def test_numpy_shares_the_memory_for_the_device_cpu(wrap: type) -> None:
    x = six(wrap)
    assert np.from_dlpack(x, device="cpu").ctypes.data == address(x)


@pytest.mark.parametrize("element", IN_BUFFERS, ids=str)
def test_numpy_reads_every_type(element: ElementType) -> None:
    x = typed(element)
    array = np.from_dlpack(x)
    assert array.dtype == element.numpy
    assert array.tobytes() == element.sample_bytes(4)


def test_numpy_of_read_only_memory() -> None:
    x = bridge.from_dlpack(b"abc")
    array = np.from_dlpack(x)
    assert not array.flags.writeable
    assert array.tobytes() == b"abc"


def test_numpy_reads_views() -> None:
    source = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
    x = bridge.from_dlpack(source)
    backwards = bridge.from_dlpack(source[::-1])
    for view in (x.permute(2, 0, 1), x[:, ::2], x[1, 2], x[:, :0], backwards):
        array = np.from_dlpack(view)
        assert array.tolist() == view.tolist()
        assert array.shape == tuple(view.sizes())


@both_wrappers
@pytest.mark.parametrize("copy", [None, False, True])
def test_torch_shares_the_memory_unless_asked_to_copy(wrap: type, copy: bool | None) -> None:
    x = six(wrap)
    t = torch.from_dlpack(x, copy=copy)
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (t.data_ptr() == address(x)) is (copy is not True)
    del x
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("element", IN_TORCH, ids=str)
def test_torch_reads_every_type(element: ElementType) -> None:
    x = typed(element)
    t = torch.from_dlpack(x)
    assert t.dtype is element.torch
    assert t.data_ptr() == x.data_ptr()


@both_wrappers
def test_torch_takes_capsules(wrap: type) -> None:
    x = six(wrap)
    for max_version in (None, (1, 3)):
        t = torch.from_dlpack(x.__dlpack__(max_version=max_version))
        assert t.data_ptr() == address(x)


@isolated
def test_torch_of_negative_strides_is_a_copy() -> None:
    x = bridge.from_dlpack(np.arange(6.0).reshape(2, 3)[:, ::-1])
    for copy in (None, True):
        t = torch.from_dlpack(x, copy=copy)
        assert t.tolist() == [[2, 1, 0], [5, 4, 3]]
        assert t.data_ptr() != x.data_ptr()
    with pytest.raises(BufferError, match="negative"):
        torch.from_dlpack(x, copy=False)
    with bridge.audit() as log:
        torch.from_dlpack(x)
    assert log.copied_bytes == 48
    with bridge.no_copy(), pytest.raises(BufferError, match="negative"):
        torch.from_dlpack(x)
    # Where a step is not taken its direction is nothing.
    one = bridge.from_dlpack(np.arange(6.0)[:1][::-1])
    assert torch.from_dlpack(one).data_ptr() == one.data_ptr()


@isolated
def test_torch_of_read_only_memory_is_a_copy() -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    x = bridge.from_dlpack(array)
    t = torch.from_dlpack(x)
    t.fill_(7)
    assert array.tolist() == x.tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match="read-only"):
        torch.from_dlpack(x, copy=False)
    with bridge.no_copy(), pytest.raises(BufferError, match="read-only"):
        torch.from_dlpack(x)


def test_memory_that_torch_cannot_take_is_shared_with_other_consumers() -> None:
    for source in (np.arange(6.0)[::-1], np.frombuffer(b"abcdef", np.uint8)):
        x = bridge.from_dlpack(source)
        array = np.from_dlpack(x)
        assert array.ctypes.data == x.data_ptr()
        assert array.strides == source.strides
        assert array.flags.writeable is source.flags.writeable
        capsule = x.__dlpack__(max_version=(1, 3))
        assert bridge.from_dlpack(capsule).data_ptr() == x.data_ptr()


@both_wrappers
@isolated
def test_tvm_ffi_shares_the_memory_and_holds_it(wrap: type) -> None:
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
def test_functions_of_tvm_ffi_take_tensors(wrap: type) -> None:
    tvm_ffi = pytest.importorskip("tvm_ffi")
    seen = []
    function = tvm_ffi.convert(lambda tensor: seen.append(bridge.to_numpy(tensor).tolist()))
    function(six(wrap))
    assert seen == [[[0, 1, 2], [3, 4, 5]]]


@isolated
def test_tensors_of_tvm_ffi_are_shared() -> None:
    tvm_ffi = pytest.importorskip("tvm_ffi")
    source = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = bridge.from_dlpack(tvm_ffi.from_dlpack(source))
    assert x.data_ptr() == source.ctypes.data
    assert x.to_torch().tolist() == source.tolist()
    x[0, 0] = 9
    assert source[0, 0] == 9


@pytest.mark.parametrize(
    "call",
    [
        lambda x, t: torch.add(x, t),
        lambda x, t: torch.add(t, x),
        lambda x, t: t + x,
        lambda x, t: x + t,
        lambda x, t: torch.stack([t, x])[1] + 1,
        lambda x, t: torch.cat((x, x))[:2] + 1,
        lambda x, t: at.add(x, t),
        lambda x, t: x.add(t),
    ],
)
def test_functions_of_torch_take_tensors_in_any_mixture(
    call: Callable[[Any, torch.Tensor], Any],
) -> None:
    """`__torch_function__`: torch's own functions take `at.Tensor`, in any mixture."""
    assert call(six(at.Tensor), torch.ones(2, 3)).tolist() == [[1, 2, 3], [4, 5, 6]]


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


WRITES: dict[str, Callable[[at.Tensor], Any]] = {
    "out of torch": lambda x: torch.add(x, 1, out=x),
    "out of at": lambda x: at.add(x, 1, out=x),
    "out of another": lambda x: torch.add(torch.ones(3), 1, out=x),
    "method": lambda x: x.mul_(2),
    "function": lambda x: torch.relu_(x),
    "functional": lambda x: torch.nn.functional.relu_(x),
    "functional by argument": lambda x: torch.nn.functional.threshold(x, 9, 5, inplace=True),
    "random": lambda x: x.random_(5, 9),
    "operator": lambda x: x.__iadd__(1),
    "view": lambda x: x.select(0, 1).add_(7),
    "view of torch": lambda x: torch.narrow(x, 0, 1, 1).add_(7),
    "index_fill_": lambda x: x.index_fill_(0, torch.tensor([0]), 7),
    "scatter_": lambda x: torch.Tensor.scatter_(x.to_torch(), 0, torch.tensor([0]), 7),
    "put": lambda x: x.index_put_((torch.tensor([1]),), torch.tensor(7.0)),
    "as the source of a view": lambda x: torch.as_strided(x, (2,), (1,)).zero_(),
    "initialiser": lambda x: torch.nn.init.ones_(x),
}


@pytest.mark.parametrize("name", WRITES)
def test_functions_of_torch_never_write_read_only_memory(name: str) -> None:
    """Refused, or done to a copy: the memory itself keeps its values."""
    array = np.arange(3, dtype=np.float32)
    array.flags.writeable = False
    x = bridge.from_dlpack(array)
    with contextlib.suppress(RuntimeError):
        WRITES[name](x)
    assert array.tolist() == [0, 1, 2]
    assert x.tolist() == [0, 1, 2]
    assert torch.add(x, 1).tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", ["method", "operator", "out of at", "view", "random"])
def test_writing_read_only_memory_is_an_error(name: str) -> None:
    with pytest.raises(c10.EnforceNotMet):
        WRITES[name](bridge.from_dlpack(b"abc"))


def test_functions_of_numpy_take_tensors() -> None:
    for wrap in (at.Tensor, caffe2.Tensor):
        x = six(wrap)
        assert np.sum(np.asarray(x)) == 15
        assert np.add(np.ones((2, 3), np.float32), x).tolist() == [[1, 2, 3], [4, 5, 6]]
        assert np.concatenate([x, x]).shape == (4, 3)
