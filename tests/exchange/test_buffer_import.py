# SPDX-License-Identifier: Apache-2.0
"""Objects of the buffer protocol: bytes, arrays, maps, ctypes; shared, read-only where they are."""

import array
import ctypes
import gc
import mmap
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, c10
from tests.helpers.check import check_tensor
from tests.helpers.element_types import BY_NAME, IN_BUFFERS, ElementType


def address_of(buffer: Any) -> int:
    return np.frombuffer(buffer, np.uint8).ctypes.data


def test_bytes_are_read_only_uint8() -> None:
    data = b"\x00\x01\xfe\xff"
    x = bridge.from_dlpack(data)
    check_tensor(x, (4,), BY_NAME["uint8"], address=address_of(data), data=data, readonly=True)
    with pytest.raises(c10.EnforceNotMet):
        x.zero_()
    assert data == b"\x00\x01\xfe\xff"
    assert bridge.to_numpy(data).tolist() == [0, 1, 254, 255]
    assert not bridge.to_numpy(data).flags.writeable


def test_buffers_without_bytes_have_no_elements() -> None:
    for nothing in (b"", bytearray(), memoryview(b""), array.array("d")):
        assert tuple(bridge.from_dlpack(nothing).sizes()) == (0,)


def test_bytearray_is_shared() -> None:
    data = bytearray(range(6))
    x = bridge.from_dlpack(data)
    check_tensor(x, (6,), BY_NAME["uint8"], address=address_of(data), data=bytes(range(6)))
    x[2] = 99
    assert data[2] == 99
    # The buffer is held: its owner may not move it.
    with pytest.raises(BufferError):
        data.append(1)
    del x
    gc.collect()
    data.append(1)


def test_exports_hold_the_buffer() -> None:
    data = bytearray(range(6))
    out = bridge.to_numpy(bridge.from_dlpack(data))
    with pytest.raises(BufferError):
        data.clear()
    del out
    data.clear()


ARRAY_CODES = {
    "b": "int8",
    "B": "uint8",
    "h": "int16",
    "H": "uint16",
    "i": "int32",
    "I": "uint32",
    "q": "int64",
    "Q": "uint64",
    "f": "float32",
    "d": "float64",
}


@pytest.mark.parametrize("code", ARRAY_CODES)
def test_arrays_of_the_standard_library_are_shared(code: str) -> None:
    values = array.array(code, [1, 2, 3, 100])
    x = bridge.from_dlpack(values)
    address, _ = values.buffer_info()
    element = BY_NAME[ARRAY_CODES[code]]
    check_tensor(x, (4,), element, address=address, data=values.tobytes())
    assert x.tolist() == [1, 2, 3, 100]


@pytest.mark.parametrize("code", ["l", "L"])
def test_longs_have_the_size_of_this_machine(code: str) -> None:
    values = array.array(code, [1, 2])
    x = bridge.from_dlpack(values)
    assert x.itemsize() == values.itemsize
    assert x.tolist() == [1, 2]


def test_arrays_of_characters_are_refused() -> None:
    with pytest.raises(BufferError):
        bridge.from_dlpack((ctypes.c_wchar * 2)("a", "b"))


@pytest.mark.parametrize("element", IN_BUFFERS, ids=str)
def test_memoryviews_of_every_type_are_shared(element: ElementType) -> None:
    data = element.sample_bytes(6)
    source = np.frombuffer(bytearray(data), element.numpy).reshape(2, 3)
    for view in (memoryview(source), memoryview(source).toreadonly()):
        x = bridge.from_dlpack(view)
        check_tensor(
            x, (2, 3), element, address=source.ctypes.data, data=data, readonly=view.readonly
        )


def test_memoryviews_of_every_layout_are_shared() -> None:
    source = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    for layout in (source, source.T, source[:, ::-1], source[1:, :, ::2], source[:, 3:]):
        x = bridge.from_dlpack(memoryview(layout))
        strides = [stride // 4 for stride in layout.strides]
        check_tensor(
            x,
            layout.shape,
            BY_NAME["int32"],
            strides=strides,
            address=layout.ctypes.data,
            data=layout.tobytes(),
        )


def test_memoryview_slices_of_bytes_are_read() -> None:
    data = bytes(range(10))
    x = bridge.from_dlpack(memoryview(data)[2:9:3])
    assert x.tolist() == [2, 5, 8]
    assert bridge.from_dlpack(memoryview(data)[::-1]).tolist() == list(reversed(range(10)))
    cast = memoryview(bytes(range(8))).cast("H", (2, 2))
    assert bridge.from_dlpack(cast).tolist() == np.array(cast).tolist()


@pytest.mark.parametrize("order", ["<", ">", "=", "!"])
@pytest.mark.parametrize("element", [BY_NAME[n] for n in ("int16", "int64", "float32")], ids=str)
def test_byte_orders_in_formats_are_followed(order: str, element: ElementType) -> None:
    assert element.numpy is not None
    source = np.array([1, -2, 3], element.numpy.newbyteorder(">" if order == "!" else order))
    assert bridge.from_dlpack(memoryview(source)).tolist() == [1, -2, 3]


def test_foreign_byte_order_of_ctypes_is_copied() -> None:
    big = (ctypes.c_int32.__ctype_be__ * 3)(1, 2, 3)
    assert bridge.from_dlpack(big).tolist() == [1, 2, 3]
    with pytest.raises(BufferError):
        bridge.from_dlpack(big, copy=False)


def test_ctypes_arrays_are_shared() -> None:
    flat = (ctypes.c_float * 4)(1, 2, 3, 4)
    x = bridge.from_dlpack(flat)
    check_tensor(x, (4,), BY_NAME["float32"], address=ctypes.addressof(flat), data=bytes(flat))
    x[0] = 7.0
    assert flat[0] == 7.0
    nested = ((ctypes.c_int16 * 3) * 2)((1, 2, 3), (4, 5, 6))
    y = bridge.from_dlpack(nested)
    check_tensor(y, (2, 3), BY_NAME["int16"], address=ctypes.addressof(nested), data=bytes(nested))
    scalar = ctypes.c_double(2.5)
    assert bridge.from_dlpack(scalar).item() == 2.5
    flags = (ctypes.c_bool * 2)(True, False)
    assert bridge.from_dlpack(flags).tolist() == [True, False]


class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int32), ("b", ctypes.c_float)]


UNFIT: dict[str, Callable[[], Any]] = {
    "structure": Pair,
    "array of structures": lambda: (Pair * 2)(),
    "pointers": lambda: (ctypes.c_void_p * 2)(),
    "objects": lambda: (ctypes.py_object * 1)(None),
    "long double": lambda: memoryview(np.zeros(2, np.longdouble)),
    "records": lambda: memoryview(np.zeros(2, [("a", "f4"), ("b", "i4")])),
}


@pytest.mark.parametrize("name", UNFIT)
def test_formats_that_are_not_numbers_are_refused(name: str) -> None:
    with pytest.raises(BufferError):
        bridge.from_dlpack(UNFIT[name]())


def test_a_map_is_shared_and_held_open() -> None:
    with mmap.mmap(-1, 4096) as mapped:
        mapped[:3] = b"abc"
        x = bridge.from_dlpack(mapped)
        assert tuple(x.sizes()) == (4096,)
        assert not x.readonly
        x[0] = 65
        assert mapped[:3] == b"Abc"
        with pytest.raises(BufferError):
            mapped.close()
        del x
        gc.collect()


def test_a_read_only_map_stays_read_only(tmp_path: Any) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(range(64)))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        x = bridge.from_dlpack(mapped)
        assert x.readonly
        assert not x.numpy().flags.writeable
        assert x.tolist() == list(range(64))
        out = bridge.to_torch(x)
        out.zero_()
        assert mapped[:] == bytes(range(64))
        del x


def test_released_memoryviews_are_refused() -> None:
    view = memoryview(bytearray(4))
    view.release()
    with pytest.raises((BufferError, ValueError, TypeError)):
        bridge.from_dlpack(view)


def test_copies_do_not_hold_the_buffer() -> None:
    data = bytearray(range(4))
    x = bridge.from_dlpack(data, copy=True)
    data.append(9)
    assert x.tolist() == [0, 1, 2, 3]
    assert not x.readonly


def test_misaligned_buffers_are_copied() -> None:
    data = bytearray(17)
    view = memoryview(data)[1:].cast("i")
    x = bridge.from_dlpack(view)
    assert x.tolist() == view.tolist() == [0, 0, 0, 0]
    assert x.data_ptr() % 4 == 0
    with pytest.raises(BufferError):
        bridge.from_dlpack(view, copy=False)


def test_from_blob_takes_buffers() -> None:
    data = bytearray(struct.pack("<4f", 1, 2, 3, 4))
    x = at.from_blob(data, (2, 2))
    assert x.data_ptr() == address_of(data)
    assert x.tolist() == [[1, 2], [3, 4]]
