# SPDX-License-Identifier: Apache-2.0
"""A producer in plain Python that keeps to DLPack, but for the faults that it is given."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from typing import Any

import numpy as np

from tests.conform.subject_structs import (
    CODES,
    DELETER,
    DESTRUCTOR,
    NEW,
    OLD,
    New,
    Old,
    capsule_new,
    raw_is_valid,
    raw_pointer,
)

LIVE: dict[int, Any] = {}  # what exports hold, by the address of the structure
LEAKED: list[Any] = []
SHARED = (ctypes.c_int64 * 64)()
FAULTS: set[str] = set()
MAIN = threading.get_ident()


def has(fault: str) -> bool:
    return fault in FAULTS


def delete(address: int) -> None:
    if has("deleter-never"):
        return
    if has("deleter-main-thread-only") and threading.get_ident() != MAIN:
        return
    if has("deleter-raises"):
        LIVE.pop(address, None)
        raise RuntimeError("in the deleter")
    if has("deleter-keeps-array"):
        LEAKED.append(LIVE[address][1])
    if has("deleter-keeps-struct"):
        LEAKED.append(LIVE[address][0])
    if has("deleter-twice-decref"):
        held = LIVE[address][1]
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(held))
    if has("deleter-frees-others"):
        LIVE.clear()
        return
    if has("deleter-hangs"):
        time.sleep(60)
    if has("deleter-exits"):
        os._exit(0)
    if has("deleter-writes-past-end"):
        dims = LIVE[address][2]
        ctypes.memset(ctypes.addressof(dims) + ctypes.sizeof(dims), 0, 8)
    if has("deleter-twice-free"):
        libc = ctypes.CDLL(None)
        libc.malloc.restype = ctypes.c_void_p
        block = ctypes.c_void_p(libc.malloc(64))
        libc.free(block)
        libc.free(block)
    LIVE.pop(address, None)


DELETE = DELETER(delete)


def destroy(capsule: int) -> None:
    if has("destructor-never"):
        return
    for name in (OLD, NEW):
        if raw_is_valid(capsule, name):
            delete(raw_pointer(capsule, name))
        used = b"used_" + name
        if raw_is_valid(capsule, used) and has("destructor-deletes-used"):
            delete(raw_pointer(capsule, used))


DESTROY = DESTRUCTOR(destroy)


class Array:
    """A tensor around a NumPy array."""

    __slots__ = ("__weakref__", "_cached", "_exported", "array")

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self._cached: Any = None
        self._exported = 0

    def __dlpack_device__(self) -> Any:
        if has("device-list"):
            return [1, 0]
        if has("device-text"):
            return ("cpu", 0)
        if has("device-unknown"):
            return (99, 0)
        if has("device-number"):
            return (1, 3)
        if has("device-cuda"):
            return (2, 0)
        if has("device-needs-export") and not self._exported:
            raise BufferError("not exported yet")
        if has("device-changes"):
            return (1 if not self._exported else 2, 0)
        if has("device-leaks"):
            LEAKED.append(self)
        if has("device-refuses-type") and self.array.dtype.kind not in CODES:
            raise BufferError("no such type")
        return (1, 0)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: Any = None,
    ) -> Any:
        if has("no-copy-argument") and copy is not None:
            raise TypeError("unexpected keyword argument 'copy'")
        if has("no-max-version") and max_version is not None:
            raise TypeError("unexpected keyword argument 'max_version'")
        if has("no-dl-device") and dl_device is not None:
            raise TypeError("unexpected keyword argument 'dl_device'")
        if stream is not None and stream != -1 and not has("stream-taken"):
            raise ValueError("the CPU has no streams")
        if dl_device is not None and tuple(map(int, dl_device)) != (1, 0):
            if has("dl-device-cuda-ignored") and dl_device[0] == 2:
                return self._capsule(self.array, True, False, max_version)
            if has("dl-device-wrong-error"):
                raise ValueError("no such device")
            if not has("dl-device-ignored"):
                raise BufferError("only the CPU")
        if dl_device is not None and has("dl-device-refused"):
            raise BufferError("no dl_device")
        if dl_device is not None and has("dl-device-copies"):
            copy = True
        array = self.array
        if array.dtype.kind not in CODES and not has("exports-anything"):
            if has("refuses-by-type-error"):
                raise TypeError(f"no elements of type {array.dtype}")
            raise BufferError(f"no elements of type {array.dtype}")
        if not array.dtype.isnative and not has("byte-order-ignored"):
            raise BufferError("not in this byte order")
        if max_version is None and has("old-call-error"):
            raise RuntimeError("max_version is needed")
        if copy is False and has("copy-false-refused"):
            raise BufferError("always copies")
        if max_version == (1, 0) and has("max-version-strict"):
            raise BufferError("the consumer is too old")
        self._exported += 1
        copied = bool(copy) and not has("copy-true-shares")
        if has("copy-ignored-with-device") and dl_device is not None:
            copied = False
        if has("copies-strided") and not array.flags.c_contiguous:
            array = array.copy()
        if has("copies-always") or (has("copies-by-default") and copy is None):
            copied = True
        if has("copy-false-copies") and copy is False:
            copied = True
        if copied:
            array = self._copy()
        new = max_version is not None and max_version[0] >= 1
        if has("old-call-copy-versioned") and copied:
            new = True
        if has("old-call-versioned") or (has("max-version-ignored") and max_version is not None):
            new = True
        if has("always-old"):
            new = False
        if has("same-capsule"):
            if self._cached is None:
                self._cached = self._capsule(array, new, copied, max_version)
            return self._cached
        if has("gives-none"):
            return None
        return self._capsule(array, new, copied, max_version)

    def _copy(self) -> np.ndarray:
        if has("copy-cached"):
            if self._cached is None:
                self._cached = self.array.copy()
            return self._cached  # type: ignore[no-any-return]
        if has("copy-in-memory-order"):
            return self.array.ravel(order="K").reshape(self.array.shape)
        if has("copy-wrong"):
            return self.array.copy() + 1
        return self.array.copy()

    def _capsule(self, array: np.ndarray, new: bool, copied: bool, version: Any) -> Any:
        name = NEW if new else OLD
        if has("name-wrong"):
            name = b"tensor"
        if has("name-old-for-new") and new:
            name = OLD
        if has("name-new-for-old") and not new:
            name = NEW
        address = self.export(array, new, copied, version)
        if has("name-lost"):
            name = bytes(bytearray(name) + b"x")[:-1]
        return capsule_new(address, name, ctypes.cast(DESTROY, ctypes.c_void_p))

    def export(self, array: np.ndarray, new: bool, copied: bool, version: Any = None) -> int:
        managed: Any = New() if new else Old()
        dims = fill(managed.dl, array, new)
        managed.deleter = ctypes.cast(DELETE, ctypes.c_void_p).value
        if has("deleter-null"):
            managed.deleter = None
        if new:
            managed.major, managed.minor = 1, 3
            if has("version-major"):
                managed.major = 2
            if has("version-zero"):
                managed.major = managed.minor = 0
            if has("version-minor"):
                managed.minor = 77
            if has("version-echoed"):
                managed.major, managed.minor = version or (1, 3)
            managed.flags = flags_of(array, copied)
        held: Any = array
        if has("holds-nothing"):
            held = None
        if has("holds-tensor-weakly"):
            held = array.__array_interface__
        if has("shape-freed"):
            dims = None
        LIVE[ctypes.addressof(managed)] = (managed, held, dims)
        if has("export-leaks"):
            LEAKED.append(array)
        if has("export-leaks-tensor"):
            LEAKED.append(self)
        if has("zero-size-leaks") and not array.size:
            LEAKED.append(self)
        if has("copy-leaks") and copied:
            LEAKED.append(array)
        if has("export-freezes"):
            array.flags.writeable = False
        if has("export-writes"):
            with_write(array)
        return ctypes.addressof(managed)


def with_write(array: np.ndarray) -> None:
    if array.flags.writeable and array.size:
        array[...] = 0


def flags_of(array: np.ndarray, copied: bool) -> int:
    flags = 0 if array.flags.writeable else 1
    flags |= 2 if copied else 0
    if has("flag-read-only-never"):
        flags &= ~1
    if has("flag-read-only-always"):
        flags |= 1
    if has("flag-copied-never"):
        flags &= ~2
    if has("flag-copied-always"):
        flags |= 2
    if has("flag-padded"):
        flags |= 4
    if has("flag-unknown"):
        flags |= 1 << 9
    return flags


def fill(dl: Any, array: np.ndarray, new: bool) -> Any:
    """Describe an array; return what shape and strides are kept in."""
    n = array.ndim
    size = array.itemsize
    shape, strides = list(array.shape), [step // size for step in array.strides]
    if has("strides-bytes"):
        strides = list(array.strides)
    if has("strides-absolute"):
        strides = [abs(step) for step in strides]
    if has("strides-row-major"):
        strides = [int(np.prod(shape[i + 1 :])) for i in range(n)]
    if has("strides-no-broadcast"):
        strides = [step or 1 for step in strides]
    if has("strides-reversed"):
        strides.reverse()
    if has("shape-reversed"):
        shape.reverse()
    if has("shape-of-zero"):
        shape = [0 if 0 in shape else one for one in shape]
    if has("scalar-as-vector") and n == 0:
        n, shape, strides = 1, [1], [1]
    if has("size-negative"):
        shape = [-1 if one == 1 else one for one in shape]
    dims = (ctypes.c_int64 * (2 * n + 1))(*shape, *strides)
    if has("shape-shared"):
        dims = SHARED
        dims[: 2 * n] = [*shape, *strides]
    dl.ndim = n
    start = ctypes.addressof(dims)
    dl.shape = ctypes.cast(start, ctypes.POINTER(ctypes.c_int64))
    dl.strides = ctypes.cast(start + 8 * n, ctypes.POINTER(ctypes.c_int64))
    if has("strides-null"):
        dl.strides = None
    if has("shape-null"):
        dl.shape = None
    data, offset = array.ctypes.data, 0
    if has("byte-offset-used"):
        data, offset = data - data % 256, data % 256
    if has("byte-offset-twice"):
        offset = data % 256
    if has("data-of-base"):
        base = array
        while isinstance(base.base, np.ndarray):
            base = base.base
        data = base.ctypes.data
    if has("data-null"):
        data = 0
    dl.data = data if array.size or has("zero-size-data") else None
    dl.byte_offset = offset
    dl.device_type, dl.device_id = 1, 0
    if has("capsule-cuda"):
        dl.device_type = 2
    if has("capsule-device-number"):
        dl.device_id = 5
    dl.code, dl.bits, dl.lanes = CODES.get(array.dtype.kind, 3), size * 8, 1
    describe_type(dl, array)
    return dims


def describe_type(dl: Any, array: np.ndarray) -> None:
    kind = array.dtype.kind
    if has("type-bool-as-uint") and kind == "b":
        dl.code = 1
    if has("type-bool-bits") and kind == "b":
        dl.bits = 1
    if has("type-uint-as-int") and kind == "u":
        dl.code = 0
    if has("type-int-as-uint") and kind == "i":
        dl.code = 1
    if has("type-float-as-bfloat") and array.dtype == np.float16:
        dl.code = 4
    if has("type-complex-halves") and kind == "c":
        dl.bits //= 2
    if has("type-bits-as-bytes"):
        dl.bits //= 8
    if has("type-no-lanes"):
        dl.lanes = 0
    if has("type-complex-lanes") and kind == "c":
        dl.code, dl.bits, dl.lanes = 2, dl.bits // 2, 2
