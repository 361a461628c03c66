# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays in and out: every type and layout, at one address."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, c10, caffe2
from bridge.caffe2 import workspace
from tests.helpers.check import check_tensor
from tests.helpers.element_types import BY_NAME, IN_BUFFERS, IN_NUMPY, MOST_AXES, ElementType

both_wrappers = pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])


@pytest.mark.parametrize("element", IN_NUMPY, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0,), (2, 0, 3)], ids=str)
def test_every_element_type_is_shared(element: ElementType, shape: tuple[int, ...]) -> None:
    data = element.sample_bytes(int(np.prod(shape)))
    array = np.frombuffer(bytearray(data), element.numpy).reshape(shape)
    x = bridge.from_dlpack(array)
    assert x.dtype().numpy == element.numpy
    check_tensor(x, shape, element, address=array.ctypes.data, data=data)
    assert x.numpy().dtype == element.numpy


def base() -> np.ndarray:
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def strided(shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    memory = np.arange(40, dtype=np.float32)
    return np.lib.stride_tricks.as_strided(memory[20:], shape, [4 * s for s in strides])


LAYOUTS: dict[str, Callable[[], np.ndarray]] = {
    "plain": base,
    "0-d": lambda: np.array(2.5, np.float32),
    "0-d view": lambda: base()[1, 1, 1:2].reshape(()),
    "transposed": lambda: base().transpose(2, 0, 1),
    "Fortran order": lambda: np.asfortranarray(base()),
    "sliced": lambda: base()[:, 1:, ::2],
    "reversed": lambda: base()[::-1],
    "reversed and sliced": lambda: base()[:, ::-2, ::-1],
    "expanded": lambda: strided((3, 4), (0, 1)),
    "expanded everywhere": lambda: strided((3, 4), (0, 0)),
    "overlapping": lambda: strided((3, 3), (1, 1)),
    "overlapping backwards": lambda: strided((3, 3), (-1, 2)),
    "empty": lambda: np.zeros((2, 0), np.float32),
    "empty reversed": lambda: base()[:, 3:][:, ::-1],
    "axes of one": lambda: base()[None, :, None],
    "axis of one reversed": lambda: base()[:1][::-1],
    "most axes": lambda: base().reshape((1,) * (MOST_AXES - 3) + (2, 3, 4)),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("copy", [None, False])
def test_every_layout_is_shared(name: str, copy: bool | None) -> None:
    array = LAYOUTS[name]()
    x = bridge.from_dlpack(array, copy=copy)
    strides = [stride // 4 for stride in array.strides]
    check_tensor(x, array.shape, strides=strides, address=array.ctypes.data, data=array.tobytes())
    out = bridge.to_numpy(x)
    assert out.ctypes.data == array.ctypes.data or array.size == 0
    np.testing.assert_array_equal(out, array)


def test_writing_shows_on_both_sides() -> None:
    array = base()
    x = bridge.from_dlpack(array)
    array[0, 1, 2] = -1
    assert x[0, 1, 2].item() == -1
    x[1].zero_()
    assert (array[1] == 0).all()
    x.numpy()[0] = 3
    assert (array[0] == 3).all()


def test_to_numpy_of_numpy_is_the_object_itself() -> None:
    for array in (base(), base()[::-1], np.array(["a"]), np.array([1], ">i4")):
        assert bridge.to_numpy(array) is array
        assert bridge.convert(array, "numpy") is array
    copied = bridge.to_numpy(base_array := base(), copy=True)
    assert not np.shares_memory(copied, base_array)
    np.testing.assert_array_equal(copied, base_array)


@pytest.mark.parametrize("copy", [None, False])
def test_read_only_stays_read_only(copy: bool | None) -> None:
    # An array of its own: NumPy lets a view be made writable again where its base is.
    array = base().copy()
    array.flags.writeable = False
    x = bridge.from_dlpack(array, copy=copy)
    check_tensor(x, (2, 3, 4), address=array.ctypes.data, readonly=True)
    for view in (x.view(6, 4), x[1], x.permute(2, 1, 0), x.alias(), x.detach()):
        assert view.readonly
        assert not view.numpy().flags.writeable
        with pytest.raises(c10.EnforceNotMet):
            view.fill_(1)
    out = bridge.to_numpy(x)
    with pytest.raises(ValueError, match="read-only"):
        out[0] = 1
    with pytest.raises(ValueError):
        out.flags.writeable = True
    assert array.tobytes() == base().tobytes()


def test_memory_made_read_only_later_stays_as_it_came() -> None:
    array = base()
    x = bridge.from_dlpack(array)
    array.flags.writeable = False
    # What it is now decides for what comes in now.
    assert bridge.from_dlpack(array).readonly
    assert x.tolist() == base().tolist()


def test_a_copy_of_read_only_memory_is_writable() -> None:
    array = np.broadcast_to(np.float32(3), (2, 2))
    for x in (bridge.from_dlpack(array, copy=True), bridge.from_dlpack(array).clone()):
        check_tensor(x, (2, 2))
        x.fill_(1)
    assert (array == 3).all()


@pytest.mark.parametrize("element", [row for row in IN_BUFFERS if row.itemsize > 1], ids=str)
def test_foreign_byte_order_is_copied(element: ElementType) -> None:
    native = np.frombuffer(bytearray(element.sample_bytes(6)), element.numpy).reshape(2, 3)
    swapped = native.astype(native.dtype.newbyteorder())
    for array in (swapped, swapped.T, swapped[::-1, 1:]):
        x = bridge.from_dlpack(array)
        assert not np.shares_memory(x.numpy(), array)
        right = np.ascontiguousarray(array.astype(native.dtype))
        assert x.numpy().tobytes() == right.tobytes()
        assert x.dtype().name == element.name
        with pytest.raises(BufferError):
            bridge.from_dlpack(array, copy=False)


@pytest.mark.parametrize("name", ["i1", "u1", "?"])
def test_a_byte_has_no_order(name: str) -> None:
    array = np.zeros(3, np.dtype(name).newbyteorder(">"))
    assert bridge.from_dlpack(array, copy=False).data_ptr() == array.ctypes.data


def misaligned() -> np.ndarray:
    memory = np.zeros(4 * 6 + 1, np.uint8)
    array = memory[1:].view(np.float32)
    array[:] = range(6)
    return array.reshape(2, 3)


def field_of_records() -> np.ndarray:
    records = np.zeros(4, [("tag", "u1"), ("value", "<f4")])
    records["value"] = range(4)
    return records["value"]


def strides_of_half_elements() -> np.ndarray:
    memory = np.arange(12, dtype=np.int16)
    return np.lib.stride_tricks.as_strided(memory.view(np.int32), (4,), (6,))


COPIED: dict[str, Callable[[], np.ndarray]] = {
    "misaligned": misaligned,
    "field of packed records": field_of_records,
    "strides of one and a half elements": strides_of_half_elements,
}


@pytest.mark.parametrize("name", COPIED)
def test_arrays_that_a_tensor_cannot_describe_are_copied(name: str) -> None:
    array = COPIED[name]()
    x = bridge.from_dlpack(array)
    assert x.tolist() == array.tolist()
    assert not np.shares_memory(x.numpy(), array)
    element = BY_NAME[array.dtype.name]
    check_tensor(x, array.shape, element, data=array.tobytes())
    with pytest.raises(BufferError):
        bridge.from_dlpack(array, copy=False)


def test_a_field_of_records_that_are_whole_elements_apart_is_shared() -> None:
    records = np.zeros(4, [("a", "<f4"), ("b", "<f4")])
    records["b"] = range(4)
    array = records["b"]
    x = bridge.from_dlpack(array, copy=False)
    assert (x.data_ptr(), tuple(x.strides())) == (array.ctypes.data, (2,))
    assert x.tolist() == [0, 1, 2, 3]


def test_odd_strides_of_dimensions_of_one_element_are_shared() -> None:
    array = np.lib.stride_tricks.as_strided(np.arange(4, dtype=np.int32), (1, 4), (3, 4))
    x = bridge.from_dlpack(array, copy=False)
    assert x.data_ptr() == array.ctypes.data
    check_tensor(x, (1, 4), BY_NAME["int32"], strides=(4, 1), address=array.ctypes.data)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3)], ids=str)
def test_a_copied_array_may_have_no_dimensions_or_elements(shape: tuple[int, ...]) -> None:
    """UBSan finds what is read of the sizes that NumPy does not have then."""
    x = bridge.from_dlpack(np.ones(shape, ">f8"))
    assert x.sizes() == shape
    assert x.tolist() == np.ones(shape).tolist()
    odd = np.frombuffer(bytearray(9), np.uint8)[1:].view(np.float64)[:1].reshape(())
    assert bridge.from_dlpack(odd).tolist() == 0


@pytest.mark.parametrize("describe", [lambda array: array, memoryview], ids=["array", "buffer"])
@pytest.mark.parametrize(
    "strides",
    [
        (2**62, 2**62),
        (-(2**62), 2**62),
        (-(2**62), 8),
        (2**60, 8),
        (-(2**58), 8),
    ],
    ids=repr,
)
def test_strides_that_lead_out_of_the_address_space_are_refused(
    strides: tuple[int, int], describe: Callable[[Any], Any]
) -> None:
    array = np.lib.stride_tricks.as_strided(np.zeros(1), (2, 2), strides)
    for copy in (None, False, True):
        with pytest.raises(BufferError, match="out of the address space"):
            bridge.from_dlpack(describe(array), copy=copy)
    nowhere = np.lib.stride_tricks.as_strided(np.zeros(1), (1, 1), strides)
    assert bridge.from_dlpack(describe(nowhere)).tolist() == [[0]]


UNFIT: dict[str, Callable[[], Any]] = {
    "object": lambda: np.array([1, None], object),
    "empty object": lambda: np.empty(0, object),
    "str": lambda: np.array(["a", "b"]),
    "bytes": lambda: np.array([b"a", b"b"]),
    "strings": lambda: np.array(["a"], np.dtypes.StringDType()),
    # newbyteorder of NumPy 2.4 crashes on it
    "arrays of strings in a structure": lambda: np.zeros(2, ">f4,8T"),
    "datetime": lambda: np.array([0], "datetime64[s]"),
    "timedelta": lambda: np.array([0], "timedelta64[ms]"),
    "structured": lambda: np.zeros(2, [("a", "f4"), ("b", "i4")]),
    "record": lambda: np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f4")]),
    "void": lambda: np.zeros(2, "V4"),
    "long double": lambda: np.zeros(2, np.longdouble),
    "long complex": lambda: np.zeros(2, np.clongdouble),
    "masked": lambda: np.ma.masked_array([1.0, 2.0], [False, True]),
    "masked without a mask": lambda: np.ma.masked_array([1.0, 2.0]),
    "0-d object": lambda: np.array(None, object),
}


@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize("name", UNFIT)
def test_types_that_dlpack_lacks_are_refused(name: str, copy: bool | None) -> None:
    with pytest.raises(BufferError) as caught:
        bridge.from_dlpack(UNFIT[name](), copy=copy)
    assert str(caught.value)


@pytest.mark.parametrize("name", UNFIT)
@pytest.mark.parametrize("target", ["torch", "caffe2"])
def test_types_that_dlpack_lacks_are_refused_by_every_target(name: str, target: str) -> None:
    with pytest.raises(BufferError):
        bridge.convert(UNFIT[name](), target)


def test_scalars_of_numpy_become_tensors_without_dimensions() -> None:
    for scalar in (np.float32(2.5), np.int8(-3), np.bool_(True), np.complex64(1j)):
        x = bridge.asarray(scalar)
        assert x.dtype().numpy == scalar.dtype
        assert x.item() == scalar.item()
    with pytest.raises((TypeError, BufferError)):
        bridge.from_dlpack(np.datetime64(0, "s"))


def test_subclasses_of_arrays_are_shared() -> None:
    matrix = np.ones((2, 2)).view(type("Mine", (np.ndarray,), {}))
    x = bridge.from_dlpack(matrix)
    assert x.data_ptr() == matrix.ctypes.data
    assert type(x.numpy()) is np.ndarray


def test_a_mapped_file_is_shared(tmp_path: Any) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(np.arange(6, dtype=np.float32).tobytes())
    read = np.memmap(path, np.float32, "r")
    x = bridge.from_dlpack(read)
    check_tensor(x, (6,), address=read.ctypes.data, readonly=True)
    written = np.memmap(path, np.float32, "r+")
    y = bridge.from_dlpack(written)
    y[0] = 8.0
    written.flush()
    assert np.fromfile(path, np.float32)[0] == 8.0
    del read, written
    assert x.tolist() == [8, 1, 2, 3, 4, 5]


@both_wrappers
def test_the_array_that_comes_out_holds_the_memory(wrap: type) -> None:
    array = wrap(at.arange(1000, dtype="float64")).numpy()
    others = [np.full(1000, 7.0) for _ in range(8)]
    assert array.tolist() == list(range(1000))
    assert array.base is not None
    assert len(others) == 8


class Measured(np.ndarray):
    """Numbers with a unit, which NumPy's functions may not take away, as in Astropy."""

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise ValueError("has a unit")


@pytest.mark.parametrize("dtype", ["<f8", ">f8", {"names": ["pad", "a"], "formats": ["u1", "f8"]}])
def test_a_subclass_is_not_asked_for_a_copy(dtype: Any) -> None:
    made = np.zeros(3, dtype)
    plain = made["a"] if made.dtype.names else made
    plain[:] = [0, 1, 2]
    array = plain.view(Measured)
    for x in (bridge.from_dlpack(array), bridge.asarray(array), bridge.convert(array, "caffe2")):
        assert bridge.to_numpy(x).tolist() == [0, 1, 2]
    assert workspace.FeedBlob("x", array)
    assert workspace.FetchBlob("x").tolist() == [0, 1, 2]
