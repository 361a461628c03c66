# SPDX-License-Identifier: Apache-2.0
"""The structures of dlpack.h 1.3, flat, and Python's functions for capsules."""

from __future__ import annotations

import ctypes

from bridge.annotation import Any

TENSOR: list[Any] = [
    ("data", ctypes.c_void_p),
    ("device_type", ctypes.c_int32),
    ("device_id", ctypes.c_int32),
    ("ndim", ctypes.c_int32),
    ("code", ctypes.c_uint8),
    ("bits", ctypes.c_uint8),
    ("lanes", ctypes.c_uint16),
    ("shape", ctypes.c_void_p),
    ("strides", ctypes.c_void_p),
    ("byte_offset", ctypes.c_uint64),
]


class DLTensor(ctypes.Structure):
    """A tensor without an owner."""

    _fields_ = TENSOR


class DLManagedTensor(ctypes.Structure):
    """The structure in a capsule named "dltensor"."""

    _fields_ = [*TENSOR, ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class DLManagedTensorVersioned(ctypes.Structure):
    """The structure in a capsule named "dltensor_versioned"."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        *TENSOR,
    ]


# Called without the GIL, as any library may call a deleter.
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

# Prototypes of the kit's own: those of `ctypes.pythonapi` belong to the whole process.
capsule_new = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))
capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
capsule_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)
capsule_destructor = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(
    ("PyCapsule_GetDestructor", ctypes.pythonapi)
)

# A capsule keeps the address of its name, not a copy.
NAMES = {
    name: ctypes.create_string_buffer(name)
    for name in (
        b"dltensor",
        b"used_dltensor",
        b"dltensor_versioned",
        b"used_dltensor_versioned",
        b"some_other_name",
    )
}
