# SPDX-License-Identifier: Apache-2.0
"""torch tensors that come in: shared where they can be, copied where they must."""

import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from tests.helpers.check import check_tensor
from tests.helpers.dlpack_consumer import read_elements
from tests.helpers.element_types import BY_NAME, IN_TORCH, MOST_AXES, ElementType


def torch_bytes(t: torch.Tensor, itemsize: int) -> bytes:
    """The memory of `t`, whatever its lazy bits say, in row-major order."""
    return read_elements(t.data_ptr(), t.shape, t.stride(), itemsize)


def of_bytes(data: bytes, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    if not data:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch calls complex32 experimental
            return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).view(dtype).reshape(shape)


@pytest.mark.parametrize("element", IN_TORCH, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0,), (2, 0, 3)], ids=str)
def test_every_element_type_is_shared(element: ElementType, shape: tuple[int, ...]) -> None:
    assert element.torch is not None
    data = element.sample_bytes(int(np.prod(shape)))
    t = of_bytes(data, element.torch, shape)
    x = bridge.from_dlpack(t)
    assert type(x) is at.Tensor
    assert x.dtype().torch is element.torch
    check_tensor(x, shape, element, address=t.data_ptr(), data=data)
    assert x.to_torch() is t


def base() -> torch.Tensor:
    return torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)


LAYOUTS: dict[str, Callable[[], torch.Tensor]] = {
    "plain": base,
    "0-d": lambda: torch.tensor(3.5),
    "0-d view": lambda: base()[1, 1, 1],
    "transposed": lambda: base().permute(2, 0, 1),
    "sliced": lambda: base()[:, 1:, ::2],
    "with an offset": lambda: base()[1],
    "expanded": lambda: torch.tensor([1.0, 2.0]).reshape(2, 1).expand(2, 5),
    "expanded 0-d": lambda: torch.tensor(2.0).expand(3, 3),
    "overlapping": lambda: torch.arange(5.0).as_strided((3, 3), (1, 1)),
    "empty": lambda: torch.empty(0),
    "empty with an offset": lambda: torch.arange(5.0)[5:],
    "empty in between": lambda: base()[:, 2:2],
    "axes of one": lambda: base()[None, :, None],
    "odd strides at axes of one": lambda: torch.zeros(4).as_strided((1, 4, 1), (7, 1, 3)),
    "channels last": lambda: torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "as many as NumPy has": lambda: torch.arange(6.0).reshape((1,) * (MOST_AXES - 2) + (2, 3)),
    "a slice of a large one": lambda: torch.zeros(1000, 1000)[::500, 999:],
    "diagonal": lambda: base()[0].diagonal(),
    "detached": lambda: torch.ones(3, requires_grad=True).detach(),
    "of inference mode": lambda: torch.inference_mode()(torch.ones)(3),
    "of pinned-like numpy memory": lambda: torch.from_numpy(np.arange(5.0, dtype=np.float32)),
    "resolved conjugate": lambda: torch.ones(3).conj(),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("copy", [None, False])
def test_every_layout_is_shared(name: str, copy: bool | None) -> None:
    t = LAYOUTS[name]()
    x = bridge.from_dlpack(t, copy=copy)
    check_tensor(
        x, tuple(t.shape), strides=t.stride(), address=t.data_ptr(), data=torch_bytes(t, 4)
    )
    assert x.to_torch() is t


def test_writing_shows_on_both_sides() -> None:
    t = base()
    x = bridge.from_dlpack(t)
    t[1, 2, 3] = -1.0
    assert x[1, 2, 3].item() == -1.0
    x[0, 0, 0] = 9.0
    assert t[0, 0, 0].item() == 9.0
    x.mul_(2)
    assert t[0, 0, 0].item() == 18.0
    view = x[1].t()
    view.fill_(4)
    assert (t[1] == 4).all()
    assert t[0, 0, 1] == 2


def test_offset_stays_with_the_storage() -> None:
    t = base()[1, 1:]
    x = bridge.from_dlpack(t)
    assert x.data_ptr() == t.data_ptr()
    back = x.to_torch()
    assert back.storage_offset() == t.storage_offset()


@pytest.mark.parametrize("ndim", [65, 100, 1000])
def test_more_dimensions_than_numpy_has(ndim: int) -> None:
    t = torch.arange(6.0).reshape((1,) * (ndim - 2) + (2, 3))
    x = bridge.from_dlpack(t)
    check_tensor(x, tuple(t.shape), address=t.data_ptr(), data=torch_bytes(t, 4))
    for out in (bridge.to_numpy, np.asarray, lambda y: y.numpy(), memoryview):
        with pytest.raises((BufferError, ValueError)):
            out(x)
    assert bridge.to_torch(x) is t
    assert x.view(2, 3).numpy().tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("convert", [bridge.from_dlpack, bridge.asarray, bridge.to_numpy])
def test_repeated_elements_are_too_many_bytes(convert: Callable[[Any], Any]) -> None:
    large = torch.ones(1, dtype=torch.float64).expand(2**40, 2**20)
    with pytest.raises(BufferError, match="more bytes than an int64 counts"):
        convert(large)
    assert bridge.from_dlpack(large[0]).nbytes() == 2**23


def test_subclasses_without_torch_function_are_shared() -> None:
    class Named(torch.Tensor):
        pass

    parameter = torch.nn.Parameter(torch.ones(3), requires_grad=False)
    for t in (parameter, torch.ones(3).as_subclass(Named)):
        x = bridge.from_dlpack(t)
        check_tensor(x, (3,), address=t.data_ptr())
        assert bridge.to_torch(x) is t


@pytest.mark.parametrize("copy", [None, True])
def test_the_conjugate_bit_is_resolved(copy: bool | None) -> None:
    t = torch.tensor([1 + 2j, 3 - 4j]).conj()
    assert t.is_conj()
    x = bridge.from_dlpack(t, copy=copy)
    assert x.data_ptr() != t.data_ptr()
    check_tensor(x, (2,), BY_NAME["complex64"], data=t.resolve_conj().numpy().tobytes())
    assert x.tolist() == [1 - 2j, 3 + 4j]
    assert t.is_conj(), "the source was changed"


@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.tensor([1 + 2j, 3 - 4j]).conj().imag,
        lambda: torch._neg_view(torch.tensor([2.0, -4.0])),
        lambda: torch._neg_view(torch.arange(6.0).reshape(2, 3)).t()[1:],
        lambda: torch._neg_view(torch.tensor([1 + 2j])).conj(),
    ],
    ids=["imaginary part", "negative view", "strided negative view", "both bits"],
)
def test_the_negative_bit_is_resolved(make: Callable[[], torch.Tensor], copy: bool | None) -> None:
    t = make()
    assert t.is_neg()
    x = bridge.from_dlpack(t, copy=copy)
    right = t.resolve_conj().resolve_neg()
    assert x.tolist() == right.tolist()
    assert x.data_ptr() != t.data_ptr()
    element = BY_NAME[str(t.dtype).removeprefix("torch.")]
    check_tensor(x, tuple(t.shape), element, strides=tuple(x.strides()))


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.tensor([1 + 2j]).conj(),
        lambda: torch.tensor([1 + 2j]).conj().imag,
        lambda: torch._neg_view(torch.ones(2)),
    ],
)
def test_lazy_bits_need_a_copy(make: Callable[[], torch.Tensor]) -> None:
    with pytest.raises(BufferError):
        bridge.from_dlpack(make(), copy=False)


def test_lazy_bits_without_elements_need_no_copy() -> None:
    x = bridge.from_dlpack(torch.empty(0, dtype=torch.complex64).conj())
    assert tuple(x.sizes()) == (0,)


def test_the_real_part_is_shared() -> None:
    t = torch.tensor([1 + 2j, 3 - 4j]).conj().real
    assert not t.is_neg()
    x = bridge.from_dlpack(t, copy=False)
    assert x.data_ptr() == t.data_ptr()
    assert tuple(x.strides()) == (2,)
    assert x.tolist() == [1.0, 3.0]


def test_copy_true_copies() -> None:
    t = base().permute(2, 0, 1)
    x = bridge.from_dlpack(t, copy=True)
    assert x.data_ptr() != t.data_ptr()
    assert x.tolist() == t.tolist()
    t.zero_()
    assert x[3, 1, 2].item() == 23.0
    assert x.to_torch() is not t


def test_a_device_in_every_spelling_shares_memory_that_is_there() -> None:
    t = base()
    for device in ("cpu", torch.device("cpu"), c10.Device("cpu"), c10.DeviceType.CPU):
        assert bridge.from_dlpack(t, device=device).data_ptr() == t.data_ptr()


def test_the_small_floats_keep_their_values() -> None:
    values = [0.0, -0.0, 1.0, -2.0, 0.5, float("inf"), float("nan")]
    for name in ("bfloat16", "float16", "float8_e5m2"):
        t = torch.tensor(values).to(getattr(torch, name))
        array = bridge.to_numpy(bridge.from_dlpack(t))
        expected = np.array(values, np.float32).astype(BY_NAME[name].numpy)
        assert array.dtype == BY_NAME[name].numpy
        assert array.ctypes.data == t.data_ptr()
        np.testing.assert_array_equal(array.astype(np.float32), expected.astype(np.float32))
    e4m3 = torch.tensor([1.0, -448.0, 0.125]).to(torch.float8_e4m3fn)
    assert bridge.to_numpy(e4m3).astype(np.float32).tolist() == [1.0, -448.0, 0.125]
    assert bridge.to_numpy(e4m3).dtype == ml_dtypes.float8_e4m3fn


def test_complex32_is_shared() -> None:
    t = torch.tensor([1 + 2j, -3.5j], dtype=torch.complex32)
    x = bridge.from_dlpack(t)
    check_tensor(x, (2,), BY_NAME["complex32"], address=t.data_ptr(), data=torch_bytes(t, 4))


def test_one_tensor_imported_twice_is_one_memory() -> None:
    t = base()
    first, second = bridge.from_dlpack(t), bridge.from_dlpack(t)
    first.fill_(3)
    assert second[1, 2, 3].item() == 3.0
    assert first.to_torch() is second.to_torch() is t


def test_a_caffe2_tensor_takes_contiguous_memory_only() -> None:
    t = base()
    x = bridge.from_dlpack(t)
    flat = caffe2.Tensor(x)
    check_tensor(flat, (2, 3, 4), address=t.data_ptr())
    assert flat.to_torch() is t
    with pytest.raises(c10.EnforceNotMet):
        caffe2.Tensor(bridge.from_dlpack(t.permute(2, 0, 1)))


@pytest.mark.parametrize("entry", [bridge.from_dlpack, bridge.asarray], ids=["dlpack", "asarray"])
def test_metadata_is_not_shared(entry: Callable[[Any], Any]) -> None:
    t = base()
    x = entry(t)
    t.unsqueeze_(0)
    assert tuple(x.sizes()) == (2, 3, 4)
    assert x.numpy().shape == (2, 3, 4)
    assert x.tolist()[1][2][3] == 23.0
    assert tuple(x.add(1).sizes()) == (2, 3, 4)
    assert tuple(torch.add(x, 1).sizes()) == (2, 3, 4)
    t.squeeze_(0).transpose_(0, 2)
    assert x.add(1).tolist()[1][2][3] == 24.0


class Subclass(torch.Tensor):
    pass


@pytest.mark.parametrize("cls", [torch.Tensor, torch.nn.Parameter, Subclass])
@pytest.mark.parametrize("function", [bridge.from_dlpack, bridge.asarray, bridge.to_numpy])
def test_misaligned_memory_is_copied_and_refused_where_no_copy_may_be(
    cls: type[torch.Tensor], function: Callable[..., Any]
) -> None:
    t = torch.frombuffer(bytearray(range(17)), dtype=torch.float32, offset=1)
    assert t.data_ptr() % 4
    parameter = cls is torch.nn.Parameter
    x = torch.nn.Parameter(t, requires_grad=False) if parameter else t.as_subclass(cls)
    with pytest.raises(BufferError, match="not aligned for float32"):
        function(x, copy=False)
    assert np.array_equal(np.asarray(function(x)), t.clone().numpy())
