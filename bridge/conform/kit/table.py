# SPDX-License-Identifier: Apache-2.0
"""The C exchange table of a type: `__dlpack_c_exchange_api__`."""

from __future__ import annotations

import ctypes

from bridge.annotation import Any
from bridge.conform.kit.structures import DLTensor, capsule_pointer
from bridge.conform.kit.verdict import skip


class ExchangeAPI(ctypes.Structure):
    """DLPackExchangeAPI."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("prev_api", ctypes.c_void_p),
        ("managed_tensor_allocator", ctypes.c_void_p),
        ("managed_tensor_from_py_object_no_sync", ctypes.c_void_p),
        ("managed_tensor_to_py_object_no_sync", ctypes.c_void_p),
        ("dltensor_from_py_object_no_sync", ctypes.c_void_p),
        ("current_work_stream", ctypes.c_void_p),
    ]


OUT = ctypes.POINTER(ctypes.c_void_p)
SET_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
ALLOCATOR = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(DLTensor), OUT, ctypes.c_void_p, SET_ERROR
)
FROM_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, OUT)
TO_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, OUT)
VIEW = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, OUT)


def table_of(kind: type) -> Any:
    """Return the table of a type; without one, or if it cannot be read, the case is skipped."""
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        skip("the type has no C exchange table")
    try:
        address = capsule_pointer(capsule, b"dlpack_exchange_api")
    except Exception:
        skip("its C exchange table is not in a capsule named 'dlpack_exchange_api'")
    table = ExchangeAPI.from_address(address)
    if table.major != 1:
        skip(f"its C exchange table is of version {table.major}")
    return table
