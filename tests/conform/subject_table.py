# SPDX-License-Identifier: Apache-2.0
"""A C exchange table in plain Python for `Array`, but for the faults that it is given."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_int32, c_uint32, c_void_p
from typing import Any

import numpy as np

from tests.conform.subject_consumer import check_version, own, view
from tests.conform.subject_producer import LEAKED, LIVE, Array, fill, has
from tests.conform.subject_structs import KINDS, NEW, New, Tensor, capsule_new

OUT = ctypes.POINTER(c_void_p)
SET_ERROR = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)


class Api(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("prev_api", c_void_p),
        ("allocator", c_void_p),
        ("from_object", c_void_p),
        ("to_object", c_void_p),
        ("view", c_void_p),
        ("stream", c_void_p),
    ]


@ctypes.PYFUNCTYPE(c_int, ctypes.POINTER(Tensor), OUT, c_void_p, SET_ERROR)
def allocate(prototype: Any, out: Any, context: int, set_error: Any) -> int:
    dl = prototype[0]
    if dl.code not in KINDS or dl.device_type != 1:
        if has("allocator-silent"):
            return -1
        if has("allocator-takes-all"):
            out[0] = Array(np.zeros(1)).export(np.zeros(1), True, False)
            return 0
        set_error(None if has("allocator-no-context") else context, b"BufferError", b"no such type")
        return -1
    if has("allocator-complains"):
        set_error(context, b"BufferError", b"for nothing")
    if has("allocator-fails"):
        set_error(context, b"MemoryError", b"none left")
        return -1
    shape = [dl.shape[i] for i in range(dl.ndim)]
    dtype = np.dtype(f"{KINDS[dl.code]}{dl.bits // 8}")
    if has("allocator-wrong-type"):
        dtype = np.dtype("f4")
    if has("allocator-wrong-shape"):
        shape = shape[::-1]
    array = np.zeros(shape, dtype)
    if has("allocator-same-memory"):
        array = np.ndarray(shape, dtype, SCRATCH)
    if has("allocator-read-only"):
        array.flags.writeable = False
    out[0] = Array(array).export(array, True, False)
    return 0


SCRATCH = np.zeros(4096, "u1")
KIND: list[type] = [Array]  # what the table imports


@ctypes.PYFUNCTYPE(c_int, ctypes.py_object, OUT)
def from_object(tensor: Any, out: Any) -> int:
    array = tensor.array
    if array.dtype.kind not in KINDS.values() or not array.dtype.isnative:
        if has("table-exports-anything"):
            out[0] = Array(np.zeros(1)).export(np.zeros(1), True, False)
            return 0
        return -1
    if has("table-fails"):
        return -1
    if has("table-gives-null"):
        out[0] = None
        return 0
    if has("table-status-one"):
        out[0] = tensor.export(array, True, False)
        return 1
    if has("table-copies"):
        array = array.copy()
    if has("table-transposes"):
        array = array.T
    out[0] = address = tensor.export(array, True, False)
    managed = New.from_address(address)
    if has("table-drops-flags"):
        managed.flags = 0
    if has("table-other-type"):
        managed.dl.code = 1
    if has("table-version"):
        managed.major = 2
    if has("table-holds-nothing"):
        LIVE[address] = (LIVE[address][0], None, LIVE[address][2])
    if has("table-leaks"):
        LEAKED.append(array)
    return 0


@ctypes.PYFUNCTYPE(c_int, c_void_p, OUT)
def to_object(address: int, out: Any) -> int:
    managed = New.from_address(address)
    try:
        check_version(managed, NEW)
        array = view(managed)
    except BufferError:
        if not has("table-import-takes-all"):
            return -1
        array = np.zeros(1)
    if has("table-import-fails"):
        return -1
    if has("table-import-null"):
        return 0
    if has("table-import-wrong-values"):
        array = array.copy() + 1
    result: Any = own(array, managed, address, NEW, None)
    if not has("table-import-wrong-type"):
        result.__class__ = KIND[0]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(result))
    if has("table-import-leaks"):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(result))
    out[0] = id(result)
    return 0


@ctypes.PYFUNCTYPE(c_int, ctypes.py_object, ctypes.POINTER(Tensor))
def borrow(tensor: Any, out: Any) -> int:
    if has("view-fails"):
        return -1
    array = tensor.array.copy() if has("view-copies") else tensor.array
    if has("view-transposes"):
        array = array.T
    dims = fill(out[0], array, True)
    LIVE[id(tensor)] = dims
    if has("view-leaks"):
        LEAKED.append(tensor)
    return 0


@ctypes.PYFUNCTYPE(c_int, c_int32, c_int32, OUT)
def stream(kind: int, number: int, out: Any) -> int:
    if has("stream-fails"):
        return -1
    if not has("stream-unset"):
        out[0] = None
    return 0


def address(function: Any) -> int | None:
    return ctypes.cast(function, c_void_p).value


TABLES: list[Any] = []


def table(array: type) -> Any:
    """Return the capsule of a table."""
    api = Api(
        1,
        3,
        None,
        address(allocate),
        address(from_object),
        address(to_object),
        address(borrow),
        address(stream),
    )
    for name in ("allocator", "from_object", "to_object", "stream", "view"):
        if has(f"{name}-null"):
            setattr(api, name, None)
    if has("api-major"):
        api.major = 2
    if has("api-previous"):
        api.prev_api = ctypes.addressof(api)
    TABLES.append(api)
    name = b"dlpack_exchange" if has("api-name") else b"dlpack_exchange_api"
    return capsule_new(ctypes.addressof(api), name, None)
