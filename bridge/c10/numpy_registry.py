# SPDX-License-Identifier: Apache-2.0
"""The element types that packages have registered with NumPy for DLPack.

NumPy 2.5 has ``numpy.dtypes.register_dlpack_dtype``, and no function that lists the types. So NumPy
is asked to export an element, or to import one.
"""

from __future__ import annotations

import ctypes

import numpy

from bridge.annotation import Any

_NAME = b"dltensor_versioned"
_CPU = 1


class _Exported(ctypes.Structure):
    """DLManagedTensorVersioned, dlpack.h 1.0."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
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
    )


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class _Element:
    """One element of a DLPack type, of zeros, for NumPy to import."""

    def __init__(self, code: int, bits: int) -> None:
        self._memory = (ctypes.c_uint64 * 4)()
        self._sizes = (ctypes.c_int64 * 1)(1)
        self._exported = _Exported(
            major=1, data=ctypes.addressof(self._memory), device_type=_CPU, ndim=1, lanes=1,
            code=code, bits=bits, shape=ctypes.addressof(self._sizes),
            strides=ctypes.addressof(self._sizes),
        )  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU, 0

    def __dlpack__(self, **options: Any) -> Any:
        return _new_capsule(ctypes.addressof(self._exported), _NAME, None)


def has_registry() -> bool:
    """Return whether this NumPy has such a registry."""
    return hasattr(getattr(numpy, "dtypes", None), "register_dlpack_dtype")


def code_and_bits(dtype: numpy.dtype[Any]) -> tuple[int, int] | None:
    """Return the DLPack type that a NumPy dtype is registered for, or None."""
    if not has_registry() or dtype.hasobject:
        return None
    try:
        capsule = numpy.zeros(1, dtype).__dlpack__(max_version=(1, 0))
    except BufferError:  # it is not registered
        return None
    found = _Exported.from_address(_pointer_of(capsule, _NAME))
    return (found.code, found.bits) if found.lanes == 1 else None


def registered(code: int, bits: int) -> numpy.dtype[Any] | None:
    """Return the NumPy dtype that is registered for a DLPack type, or None."""
    if not has_registry():
        return None
    element = _Element(code, bits)
    try:
        return numpy.from_dlpack(element).dtype
    except (BufferError, RuntimeError):  # none is registered
        return None
