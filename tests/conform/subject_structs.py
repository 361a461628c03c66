# SPDX-License-Identifier: Apache-2.0
"""DLPack's structures for the subjects of tests, written apart from the kit's."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", ctypes.POINTER(c_int64)),
        ("strides", ctypes.POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class Old(ctypes.Structure):
    _fields_ = [("dl", Tensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


class New(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("dl", Tensor),
    ]


DELETER = ctypes.CFUNCTYPE(None, c_void_p)
DESTRUCTOR = ctypes.CFUNCTYPE(None, c_void_p)


def prototype(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


capsule_new = prototype("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, c_void_p)
capsule_pointer = prototype("PyCapsule_GetPointer", c_void_p, ctypes.py_object, c_char_p)
capsule_name = prototype("PyCapsule_GetName", c_char_p, ctypes.py_object)
capsule_set_name = prototype("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, c_char_p)
# For destructors: the capsule has no reference left, and must not get one.
raw_is_valid = prototype("PyCapsule_IsValid", ctypes.c_int, c_void_p, c_char_p)
raw_pointer = prototype("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)

# Names as statically allocated as Python has it.
OLD, NEW = b"dltensor", b"dltensor_versioned"
USED = {OLD: b"used_dltensor", NEW: b"used_dltensor_versioned"}
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
KINDS = {code: kind for kind, code in CODES.items()}
