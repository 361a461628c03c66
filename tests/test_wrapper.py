# SPDX-License-Identifier: Apache-2.0
"""What both wrappers offer: `__array__`, the buffer protocol, `len`, `repr`, `numpy`."""

import ctypes
import gc
import hashlib
import pickle
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, c10, caffe2
from tests.helpers.check import check_tensor
from tests.helpers.element_types import BY_NAME

both_wrappers = pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])


def six(wrap: type) -> Any:
    return wrap(at.arange(6, dtype="float32").view(2, 3))


def address(x: Any) -> int:
    return int(x.numpy().ctypes.data)


@both_wrappers
def test_array_shares_and_casts(wrap: type) -> None:
    x = six(wrap)
    shared = x.__array__()
    assert type(shared) is np.ndarray
    assert shared.ctypes.data == address(x)
    cast = x.__array__(np.float64)
    assert cast.dtype == np.float64
    assert cast.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.__array__(np.float32).ctypes.data == address(x)
    assert np.asarray(x, dtype="int32").tolist() == [[0, 1, 2], [3, 4, 5]]


@both_wrappers
def test_array_copies_when_it_is_asked_to(wrap: type) -> None:
    x = six(wrap)
    assert np.array(x).ctypes.data != address(x)
    assert np.array(x, copy=False).ctypes.data == address(x)
    assert np.array(x, copy=True).ctypes.data != address(x)
    assert np.asarray(x).ctypes.data == address(x)
    assert x.__array__(copy=True).ctypes.data != address(x)
    assert x.__array__(copy=False).ctypes.data == address(x)
    with pytest.raises(ValueError):
        np.array(x, dtype=np.float64, copy=False)


@both_wrappers
@pytest.mark.parametrize("copy", [0, 1, "no", np.True_], ids=repr)
def test_array_refuses_a_copy_that_is_not_a_bool_or_none(wrap: type, copy: Any) -> None:
    with pytest.raises(TypeError, match="copy"):
        six(wrap).__array__(copy=copy)


@both_wrappers
def test_array_of_read_only_memory_is_read_only_and_its_copy_writable(wrap: type) -> None:
    source = np.arange(3, dtype=np.float32)
    source.flags.writeable = False
    x = wrap(bridge.from_dlpack(source))
    assert not np.asarray(x).flags.writeable
    assert np.array(x).flags.writeable
    assert not x.numpy().flags.writeable


@both_wrappers
def test_numpy_shares_the_memory(wrap: type) -> None:
    x = six(wrap)
    first, second = x.numpy(), x.numpy()
    assert first.ctypes.data == second.ctypes.data
    first[1, 2] = 50
    assert second[1, 2] == 50
    assert x.to_torch()[1, 2].item() == 50


@both_wrappers
def test_the_buffer_is_the_memory(wrap: type) -> None:
    x = six(wrap)
    view = memoryview(x)
    assert (view.format, view.itemsize, view.shape) == ("f", 4, (2, 3))
    assert not view.readonly
    assert view.c_contiguous
    view[1, 2] = 9.0
    assert x.numpy()[1, 2] == 9
    assert bytes(x) == x.numpy().tobytes()
    assert np.frombuffer(x, np.float32).ctypes.data == address(x)
    assert bytearray(x)[:4] == b"\0\0\0\0"


def test_buffer_of_a_view_says_its_strides() -> None:
    x = six(at.Tensor).t()
    view = memoryview(x)
    assert (view.shape, view.strides) == ((3, 2), (4, 12))
    assert not view.c_contiguous
    assert view.f_contiguous
    assert view.tolist() == [[0, 3], [1, 4], [2, 5]]
    # A consumer that wants plain bytes cannot be given strided ones.
    with pytest.raises((BufferError, ValueError)):
        np.frombuffer(x, np.float32)


FLAGS = {
    "simple": 0,
    "writable": 0x1,
    "nd": 0x8,
    "strides": 0x18,
    "c": 0x38,
    "f": 0x58,
    "any": 0x98,
    "full": 0x11D,
}
LAYOUTS = {
    "2-d": np.zeros((2, 3), np.float32),
    "columns": np.zeros((3, 2), np.float32).T,
    "strided": np.zeros((2, 6), np.float32)[:, ::2],
    "backwards": np.zeros(3, np.float32)[::-1],
    "1-d": np.zeros(3, np.float32),
    "a row": np.zeros((1, 5), np.float32),
    "a column": np.zeros((5, 1), np.float32),
    "0-d": np.zeros((), np.float32),
    "empty": np.zeros((0, 3), np.float32),
    "read-only": np.frombuffer(bytes(8), np.float32),
}


class Buffer(ctypes.Structure):
    """Py_buffer."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]


def asked(x: Any, flags: int) -> Any:
    """What a consumer that asks with `flags` gets of `x`; None: it is refused."""
    buffer = Buffer()
    try:
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(x), ctypes.byref(buffer), flags)
    except (BufferError, ValueError):  # NumPy's error and ours
        return None
    shape = buffer.shape[: buffer.ndim] if buffer.shape else None
    strides = buffer.strides[: buffer.ndim] if buffer.strides else None
    found = (buffer.len, buffer.itemsize, buffer.readonly, shape)
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    # one stride of a dimension of one is as good as another
    told = strides and [step for step, n in zip(strides, shape, strict=True) if n > 1]
    return (*found, strides is None, told if found[0] else None)


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_buffer_answers_every_request_as_numpy(layout: Any, flags: int) -> None:
    assert asked(bridge.from_dlpack(layout), flags) == asked(layout, flags)


@both_wrappers
def test_a_buffer_holds_the_memory(wrap: type) -> None:
    source = np.arange(1000, dtype=np.float64)
    expected = source.tobytes()
    x = wrap(bridge.from_dlpack(source))
    view = memoryview(x)
    del x, source
    gc.collect()
    assert view.tobytes() == expected


@both_wrappers
def test_a_buffer_stays_as_it_was_through_a_resize(wrap: type) -> None:
    x = six(wrap)
    view = memoryview(x)
    try:
        (x.Resize(100, 100) if wrap is caffe2.Tensor else x.resize_(100, 100))
    except (BufferError, c10.EnforceNotMet):
        assert tuple(x.sizes()) == (2, 3)
    assert view.shape == (2, 3)
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]]


@both_wrappers
def test_a_buffer_of_read_only_memory_is_read_only(wrap: type) -> None:
    x = wrap(bridge.from_dlpack(b"abc"))
    view = memoryview(x)
    assert view.readonly
    with pytest.raises(TypeError):
        view[0] = 1
    with pytest.raises((BufferError, TypeError)):
        (ctypes.c_char * 3).from_buffer(x)


def test_tensors_without_memory_have_no_buffer() -> None:
    for x in (caffe2.Tensor(), caffe2.Tensor([2], "cpu"), bridge.asarray(["a"])):
        with pytest.raises((BufferError, TypeError, c10.EnforceNotMet)):
            memoryview(x)


@both_wrappers
def test_len_is_the_first_size(wrap: type) -> None:
    assert len(six(wrap)) == 2
    assert len(wrap(at.empty(0, 5))) == 0
    with pytest.raises(TypeError):
        len(wrap(at.tensor(2.0)))


@both_wrappers
def test_repr_shows_type_sizes_and_little_of_large_tensors(wrap: type) -> None:
    text = repr(six(wrap))
    assert "float32" in text
    assert "2" in text
    assert "3" in text
    assert len(repr(wrap(at.zeros(1000, 1000)))) < 10_000
    for x in (wrap(at.empty(0)), wrap(at.tensor(1.0)), wrap(at.empty(2, dtype="bfloat16"))):
        assert repr(x)


def test_repr_works_without_memory() -> None:
    for x in (caffe2.Tensor(), caffe2.Tensor([2, 3], "cpu"), bridge.asarray(["a", "b"])):
        assert repr(x)


def test_numpy_refuses_tensors_without_memory() -> None:
    for x in (caffe2.Tensor(), caffe2.Tensor([2, 3], "cpu")):
        with pytest.raises((BufferError, c10.EnforceNotMet)):
            x.numpy()


@both_wrappers
def test_tensors_on_the_cpu_have_no_cuda_interface(wrap: type) -> None:
    with pytest.raises(AttributeError):
        _ = six(wrap).__cuda_array_interface__
    assert not hasattr(six(wrap), "__cuda_array_interface__")


def test_two_wrappers_of_one_impl_see_each_others_changes() -> None:
    x = six(at.Tensor)
    flat = caffe2.Tensor(x)
    again = at.Tensor(flat)
    flat.Resize(3, 2)
    assert tuple(x.sizes()) == tuple(again.sizes()) == (3, 2)
    check_tensor(x, (3, 2), address=flat.raw_data())
    check_tensor(flat, (3, 2), address=x.data_ptr())
    flat.mutable_data("float32")[0] = 8
    assert again[0, 0].item() == 8
    x.resize_(6)
    assert tuple(flat.sizes()) == (6,)


def test_check_tensor_sees_a_difference() -> None:
    x = at.arange(12, dtype="float32")[:6].view(2, 3)  # the wrong addresses are of its memory, too
    wrong: dict[str, Any] = {
        "address": x.data_ptr() + 4,
        "data": bytes(24),
        "readonly": True,
        "strides": (1, 2),
        "element": BY_NAME["int32"],
        "shape": (3, 2),
    }
    for name, value in wrong.items():
        fields: dict[str, Any] = {"shape": (2, 3), "element": BY_NAME["float32"], name: value}
        with pytest.raises(AssertionError):
            check_tensor(x, **fields)


@pytest.mark.parametrize("name", ["int16", "float32", "bool", "complex64", "bfloat16"])
@pytest.mark.parametrize("sizes", [(), (3,), (2, 3), (0, 3)], ids=str)
def test_hashlib_hashes_the_bytes_of_the_elements(name: str, sizes: tuple[int, ...]) -> None:
    x = at.ones(sizes, dtype=name)
    expected = hashlib.sha256(x.reshape(-1).view("uint8").numpy().tobytes()).digest()
    assert hashlib.sha256(x).digest() == expected
    assert hashlib.sha256(caffe2.Tensor(x)).digest() == expected
    readonly = bridge.from_dlpack(bytes(x.reshape(-1).view("uint8")))
    assert hashlib.sha256(readonly).digest() == expected


def test_hashlib_refuses_strided_memory() -> None:
    with pytest.raises(BufferError, match=r"contiguous\(\)"):
        hashlib.sha256(at.zeros(2, 3).t())


@both_wrappers
def test_shape_has_references_of_its_own(wrap: type) -> None:
    x = wrap(at.zeros(1000, 0, 2000))
    shapes = [x.shape for _ in range(1000)]
    others = [number * 1001 for number in range(1000)]
    assert set(shapes) == {(1000, 0, 2000)}
    assert others[-1] == 999_999


@both_wrappers
class TestAsNumPyHasThem:
    def test_tobytes_gives_the_bytes_in_either_order(self, wrap: type) -> None:
        x = six(wrap)
        array = np.asarray(x)
        assert x.tobytes() == array.tobytes()
        assert x.tobytes("F") == array.tobytes("F") != array.tobytes()

    def test_numbers_of_bytes_are_attributes_and_methods(self, wrap: type) -> None:
        x = six(wrap)
        assert (x.nbytes, x.itemsize) == (x.nbytes(), x.itemsize()) == (24, 4)
        assert isinstance(x.nbytes, int)
        assert x.nbytes + 0 == x.nbytes() // 1
        assert type(pickle.loads(pickle.dumps(x.nbytes))) is int
        for name in ("nbytes", "itemsize"):
            with pytest.raises(AttributeError):
                setattr(x, name, 1)

    def test_ctypes_has_the_address(self, wrap: type) -> None:
        x = six(wrap)
        assert x.ctypes.data == address(x)

    def test_to_numpy_shares_copies_and_casts(self, wrap: type) -> None:
        x = six(wrap)
        assert x.to_numpy().ctypes.data == address(x)
        assert x.to_numpy(copy=True).ctypes.data != address(x)
        assert x.to_numpy(dtype=bool, na_value=False).tolist() == [[False, True, True], [True] * 3]


def test_tobytes_of_views_is_row_major() -> None:
    x = at.arange(6, dtype="uint8").reshape(2, 3)
    assert x.t().tobytes() == bytes([0, 3, 1, 4, 2, 5])
    assert x[:, ::-1].tobytes() == bytes([2, 1, 0, 5, 4, 3])
    with pytest.raises(BufferError, match="contiguous"):
        _ = x.t().ctypes
    Image = pytest.importorskip("PIL.Image")
    picture = at.arange(24, dtype="uint8").reshape(3, 2, 4)
    taken = np.asarray(Image.fromarray(picture.permute(1, 2, 0)))
    np.testing.assert_array_equal(taken, picture.permute(1, 2, 0).numpy())


def test_strides_of_single_dimensions_go_out_as_they_are() -> None:
    """In DLPack, NumPy and torch; but for negative ones, which torch does not survive."""
    import torch

    for sizes, strides in [((1, 3), (77, 1)), ((3, 1), (1, 5)), ((2, 1, 3), (3, 99, 1))]:
        x = at.empty_strided(sizes, strides)
        assert x.to_torch().stride() == torch.from_dlpack(x).stride() == strides
        in_bytes = tuple(4 * stride for stride in strides)
        assert x.numpy().strides == np.from_dlpack(x).strides == in_bytes
        assert bridge.from_dlpack(x.to_torch()).strides() == strides
    reversed_one = at.ones(3)[::-1][:1]
    assert torch.from_dlpack(reversed_one).tolist() == [1]
    assert torch.from_dlpack(at.ones(3)[::-1][:0]).shape == (0,)


@pytest.mark.parametrize("stream", [object(), "1", 1.0, True])
def test_a_stream_is_a_number(stream: Any) -> None:
    with pytest.raises(TypeError, match="stream"):
        at.ones(2).__dlpack__(stream=stream)
