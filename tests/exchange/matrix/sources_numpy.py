# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays, buffers and descriptions of arrays."""

from __future__ import annotations

import array
import ctypes
import mmap
import tempfile
from typing import Any

import numpy as np

from tests.exchange.matrix.case import Case, aligned, samples
from tests.helpers.element_types import MOST_AXES

EVERY_TYPE = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"),
    *("float6_e2m3fn", "float6_e3m2fn", "int2", "uint2", "int4", "uint4"),
)
FLOATS = np.arange(6, dtype=np.float32).reshape(2, 3)
CUBE = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


def address(source: Any) -> int:
    return int(np.asarray(source).ctypes.data)


def of_array(name: str, make: Any, **fields: Any) -> Case:
    """A case whose values are those of the array itself."""
    fields.setdefault("address", address)
    fields.setdefault("values", lambda: np.ascontiguousarray(make()).reshape(make().shape))
    return Case(f"numpy {name}", make, library="numpy", **fields)


def strided(name: str, view: Any) -> Case:
    strides = tuple(step // view.itemsize for step in view.strides)
    return of_array(name, lambda: view, strides=strides)


def frozen(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    copied = aligned(values)
    copied.flags.writeable = False
    return copied


def misaligned() -> np.ndarray[Any, Any]:
    block = np.zeros(25, np.uint8)
    start = 1 - block.ctypes.data % 2
    view = block[start : start + 24].view(np.float32)
    view[:] = range(6)
    return view


def foreign(name: str) -> Case:
    native = samples(name)
    return of_array(
        f"foreign byte order {name}",
        lambda: native.astype(native.dtype.newbyteorder(">")),
        values=lambda: native,
        address=None,
    )


class Sub(np.ndarray[Any, Any]):
    """A subclass without any meaning of its own."""


PLACED = [
    of_array(f"aligned to 64 bytes {name}", lambda name=name: aligned(samples(name)))
    for name in EVERY_TYPE
] + [of_array(f"aligned to {n} bytes", lambda n=n: aligned(FLOATS, n)) for n in (4, 8, 16, 32)]

SHAPED = [
    of_array("0-d", lambda: aligned(np.float32(3).reshape(()))),
    of_array("empty", lambda: np.zeros((0,), np.float32)),
    of_array("empty of three dimensions", lambda: np.zeros((2, 0, 3), np.float32)),
    of_array("32 dimensions", lambda: aligned(np.ones((1,) * 32, np.float32))),
    of_array("most dimensions", lambda: aligned(np.ones((1,) * MOST_AXES, np.float32))),
    strided("transposed", CUBE.T),
    strided("column", CUBE[:, :, 1]),
    strided("every other", CUBE[:, ::2]),
    strided("reversed", CUBE[::-1]),
    strided("reversed all", CUBE[::-1, ::-1, ::-1]),
    strided("reversed where nobody steps", CUBE[:1][::-1]),
    strided("skipping, and reversed where nobody steps", CUBE[:1, ::2][::-1]),
    strided("reversed and skipping", CUBE[:, ::-2, ::3]),
    of_array(
        "broadcast",
        lambda: np.broadcast_to(np.float32([1, 2, 3]), (2, 3)),
        strides=(0, 1),
        readonly=True,
    ),
    of_array(
        "strides of half elements",
        lambda: np.ndarray((3,), np.int32, bytearray(range(20)), 0, (6,)),
        address=None,
    ),
    of_array("misaligned", misaligned, address=None),
    foreign("int16"),
    foreign("float64"),
    foreign("complex64"),
]

KINDS = [
    of_array("read-only", lambda: frozen(FLOATS), readonly=True),
    of_array("matrix", lambda: aligned(FLOATS).view(np.matrix)),
    of_array("subclass", lambda: aligned(FLOATS).view(Sub)),
    of_array("record of one type", lambda: np.rec.array(np.zeros(2, "f4,i4")), values=None),
]


def refused(name: str, make: Any, match: str = "", **fields: Any) -> Case:
    return Case(f"numpy {name}", make, library="numpy", match=match, **fields)


REFUSED = [
    refused("masked", lambda: np.ma.masked_array([1, 2], [0, 1]), "filled"),
    refused("masked without a mask", lambda: np.ma.masked_array([1, 2]), "masked"),
    refused("masked constant", lambda: np.ma.masked, "masked"),
    refused("masked records", lambda: np.ma.mrecords.fromarrays([[1], [2]]), "masked")
    if hasattr(np.ma, "mrecords")
    else refused("masked 2-d", lambda: np.ma.zeros((2, 2)), "masked"),
    refused("objects", lambda: np.array([None, 1], object), "Python objects"),
    refused("structured", lambda: np.zeros(2, "i4,f4"), "field"),
    refused("void", lambda: np.zeros(2, "V3")),
    refused("datetime", lambda: np.zeros(2, "M8[s]"), "int64"),
    refused("timedelta", lambda: np.zeros(2, "m8[s]"), "int64"),
    refused("long double", lambda: np.zeros(2, np.longdouble), "float64"),
    refused("complex long double", lambda: np.zeros(2, np.clongdouble), "float64"),
]


def buffer(name: str, make: Any, values: Any, **fields: Any) -> Case:
    return Case(
        f"buffer {name}",
        make,
        values=lambda: np.asarray(values),
        address=lambda source: int(np.frombuffer(source, np.uint8).ctypes.data),
        **fields,
    )


def mapped(access: int) -> mmap.mmap:
    with tempfile.TemporaryFile() as file:
        file.write(bytes(range(8)))
        file.flush()
        return mmap.mmap(file.fileno(), 8, access=access)


def written() -> mmap.mmap:
    anonymous = mmap.mmap(-1, 8)
    anonymous[:] = bytes(range(8))
    return anonymous


OCTETS = np.arange(8, dtype=np.uint8)
BUFFERS = [
    buffer("bytearray", lambda: bytearray(range(8)), OCTETS),
    buffer("memoryview", lambda: memoryview(bytearray(range(8))), OCTETS),
    buffer("read-only view", lambda: memoryview(bytes(range(8))), OCTETS, readonly=True),
    buffer("map", written, OCTETS),
    buffer("read-only map", lambda: mapped(mmap.ACCESS_READ), OCTETS, readonly=True),
    buffer("copied map", lambda: mapped(mmap.ACCESS_COPY), OCTETS),
    buffer("array", lambda: array.array("f", [1, 2, 3]), np.float32([1, 2, 3])),
    buffer("array of longs", lambda: array.array("q", [1, -2]), np.int64([1, -2])),
    buffer("ctypes", lambda: (ctypes.c_int16 * 3)(1, 2, 3), np.int16([1, 2, 3])),
    buffer("ctypes number", lambda: ctypes.c_double(2.5), np.float64(2.5)),
    Case(
        "buffer big-endian ctypes",
        lambda: (ctypes.c_int32.__ctype_be__ * 2)(1, 2),
        values=lambda: np.int32([1, 2]),
    ),
    Case("buffer pointers", lambda: (ctypes.c_void_p * 2)()),
    Case("buffer of objects", lambda: memoryview(np.array([None], object))),
    Case("buffer of records", lambda: memoryview(np.zeros(2, "i4,f4"))),
    Case("buffer of long doubles", lambda: memoryview(np.zeros(2, np.longdouble))),
]


def scalar(value: Any) -> Case:
    return Case(
        f"scalar {type(value).__name__}",
        lambda: value,
        values=lambda: np.asarray(value),
        address=lambda source: int(np.asarray(memoryview(source)).ctypes.data),
        readonly=True,
    )


SCALARS = [
    *(scalar(kind(1)) for kind in (np.int8, np.uint32, np.float16, np.float32, np.complex64)),
    Case("scalar datetime64", lambda: np.datetime64("2020-01-01")),
    Case("scalar void", lambda: np.zeros(1, "i4,f4")[0]),
    Case("scalar long double", lambda: np.longdouble(1)),
]


class Described:
    """An object with nothing but a description of an array."""

    def __init__(self, held: np.ndarray[Any, Any], **changes: Any) -> None:
        self.held = held
        self.__array_interface__ = {**held.__array_interface__, **changes}


def described(name: str, held: np.ndarray[Any, Any], **fields: Any) -> Case:
    return Case(
        f"described {name}",
        lambda: Described(held),
        values=lambda: np.ascontiguousarray(held),
        address=lambda source: int(source.held.ctypes.data),
        strides=tuple(step // held.itemsize for step in held.strides),
        **fields,
    )


DESCRIBED = [
    described("array", aligned(FLOATS)),
    described("view", CUBE[:, ::-1, ::2]),
    described("read-only array", frozen(FLOATS), readonly=True),
    Case("described masked", lambda: Described(FLOATS, mask=np.ones((2, 3), bool)), match="masked"),
    Case("described without memory", lambda: Described(FLOATS, data=(0, False))),
    Case("described beyond memory", lambda: Described(FLOATS, strides=(2**62, 4))),
]

CASES = [*PLACED, *SHAPED, *KINDS, *REFUSED, *BUFFERS, *SCALARS, *DESCRIBED]
