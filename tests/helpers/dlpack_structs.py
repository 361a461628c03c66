# SPDX-License-Identifier: Apache-2.0
"""The structs of DLPack 1.3 in ctypes, and the capsule calls of CPython.

Written from the text of the standard, and shared by the producer and the consumer of the tests
only: nothing here reads a declaration of the package under test.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

LEGACY_NAME = b"dltensor"
VERSIONED_NAME = b"dltensor_versioned"
USED_LEGACY_NAME = b"used_dltensor"
USED_VERSIONED_NAME = b"used_dltensor_versioned"
TABLE_NAME = b"dlpack_exchange_api"

CPU, CUDA, CUDA_HOST, EXT_DEV = 1, 2, 3, 12
INT, UINT, FLOAT, OPAQUE, BFLOAT, COMPLEX, BOOL = range(7)
READ_ONLY, IS_COPIED, SUBBYTE_PADDED = 1, 2, 4


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    """`data` and the two arrays are plain addresses here, so that each of them can be NULL."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLPackVersion(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [
        ("dl_tensor", DLTensor),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [
        ("version", DLPackVersion),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", DLTensor),
    ]


class DLPackExchangeAPI(ctypes.Structure):
    """The header (version, older table) and the five functions, in the order of the standard."""

    _fields_ = [
        ("version", DLPackVersion),
        ("prev_api", ctypes.c_void_p),
        ("managed_tensor_allocator", ctypes.c_void_p),
        ("managed_tensor_from_py_object_no_sync", ctypes.c_void_p),
        ("managed_tensor_to_py_object_no_sync", ctypes.c_void_p),
        ("dltensor_from_py_object_no_sync", ctypes.c_void_p),
        ("current_work_stream", ctypes.c_void_p),
    ]


# PYFUNCTYPE keeps the GIL while it calls out, and raises what the callee has set.
DELETER = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
SET_ERROR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
ALLOCATOR = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)
FROM_PY_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
TO_PY_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
WORK_STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)


def _python_api(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """A function of CPython's C API, typed, sharing no prototype with other users of pythonapi."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


capsule_new = _python_api(
    "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)
capsule_name = _python_api("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
capsule_pointer = _python_api(
    "PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p
)
capsule_rename = _python_api("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
# The same two for a capsule that is being freed, which must not be referenced again.
dying_capsule_is_valid = _python_api(
    "PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p
)
dying_capsule_pointer = _python_api(
    "PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p
)
increase_reference = _python_api("Py_IncRef", None, ctypes.py_object)
decrease_reference = _python_api("Py_DecRef", None, ctypes.py_object)


def immortal(thing: Any) -> Any:
    """Keep `thing` for the life of the process: C code may call it after its module is gone."""
    increase_reference(thing)
    return thing


def object_at(address: int) -> Any:
    """The Python object at `address`, with a new reference."""
    return ctypes.cast(address, ctypes.py_object).value
