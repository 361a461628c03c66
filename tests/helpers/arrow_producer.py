# SPDX-License-Identifier: Apache-2.0
"""Objects with Arrow's C interface, made of structures by hand, sound or broken as a test wants."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

_api = ctypes.PyDLL(None)  # other libraries set the types of ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class ArrowSchema(ctypes.Structure):
    pass


class ArrowArray(ctypes.Structure):
    pass


class ArrowDeviceArray(ctypes.Structure):
    pass


class ArrowArrayStream(ctypes.Structure):
    pass


_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_GetSchema = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ArrowArrayStream), ctypes.POINTER(ArrowSchema)
)
_GetNext = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ArrowArrayStream), ctypes.POINTER(ArrowArray)
)
_GetError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ArrowArrayStream))

ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
    ("dictionary", ctypes.POINTER(ArrowSchema)),
    ("release", _Release),
    ("private_data", ctypes.c_void_p),
]
ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.POINTER(ArrowArray)),
    ("release", _Release),
    ("private_data", ctypes.c_void_p),
]
ArrowDeviceArray._fields_ = [
    ("array", ArrowArray),
    ("device_id", ctypes.c_int64),
    ("device_type", ctypes.c_int32),
    ("sync_event", ctypes.c_void_p),
    ("reserved", ctypes.c_int64 * 3),
]
ArrowArrayStream._fields_ = [
    ("get_schema", _GetSchema),
    ("get_next", _GetNext),
    ("get_last_error", _GetError),
    ("release", _Release),
    ("private_data", ctypes.c_void_p),
]


# Structures that live on when a test has ended: a tensor that dies after them releases them still.
_latest: deque[Struct] = deque(maxlen=1000)


class Struct:
    """A structure whose releases are counted, and what its pointers point to.

    `release=False` leaves its release NULL. Releasing sets release to NULL, as the specification
    asks for; the structure of a consumer that moved it is the one that is told. `given` has the
    fields as they were given.
    """

    def __init__(self, kind: type[ctypes.Structure], release: bool = True, **fields: Any) -> None:
        self.value = kind()
        self.given = fields
        self.releases = 0
        self._kept: list[Any] = []
        for name, value in fields.items():
            self.set(name, value)
        if release:
            self.value.release = self.keep(_Release(lambda _: self._release()))
            _latest.append(self)

    def keep(self, value: Any) -> Any:
        self._kept.append(value)
        return value

    def set(self, name: str, value: Any) -> None:
        """Set a field; `children` and `buffers` are sequences, None leaves the pointer NULL."""
        if value is None:
            return
        if name == "children":
            kind = type(self.value)
            entries = [
                None if child is None else ctypes.pointer(child.value) for child in self.keep(value)
            ]
            value = (ctypes.POINTER(kind) * len(entries))(*entries)
        elif name == "buffers":
            self.keep(value)
            addresses = [
                array.ctypes.data if isinstance(array, np.ndarray) else array for array in value
            ]
            value = (ctypes.c_void_p * len(addresses))(*addresses)
        elif name == "dictionary":
            value = ctypes.pointer(self.keep(value).value)
        if isinstance(value, ctypes.Array):
            fields: dict[str, Any] = dict(type(self.value)._fields_)
            value = ctypes.cast(self.keep(value), fields[name])
        setattr(self.value, name, self.keep(value))

    def _release(self) -> None:
        self.releases += 1


def schema(text: bytes | None, *children: Struct | None, **fields: Any) -> Struct:
    """Return an ArrowSchema."""
    fields = {"format": text, "n_children": len(children), "children": children, **fields}
    return Struct(ArrowSchema, **fields)


def array(length: int, *buffers: Any, **fields: Any) -> Struct:
    """Return an ArrowArray; buffers are NumPy arrays, addresses or None."""
    children = fields.get("children", ())
    fields = {
        "length": length,
        "n_buffers": len(buffers),
        "buffers": buffers,
        "n_children": len(children),
        **fields,
    }
    return Struct(ArrowArray, **fields)


def metadata(**pairs: bytes) -> bytes:
    """Return Arrow's encoding of metadata, the keys after ``ARROW:extension:``."""
    found = np.int32(len(pairs)).tobytes()
    for key, value in pairs.items():
        for text in (b"ARROW:extension:" + key.encode(), value):
            found += np.int32(len(text)).tobytes() + text
    return found


def capsule(value: Any, name: bytes) -> Any:
    """Return a capsule of a structure, without a destructor; `name` must be a constant."""
    return _api.PyCapsule_New(ctypes.addressof(value), name, None)


def pointer(of: Any, name: bytes) -> int:
    """Return the address in a capsule."""
    return int(_api.PyCapsule_GetPointer(of, name))


class Producer:
    """An object with `__arrow_c_array__` only; it keeps its structures."""

    def __init__(self, schema: Struct, array: Struct) -> None:
        self.schema, self.array = schema, array
        self.names = (b"arrow_schema", b"arrow_array")

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return (
            capsule(self.schema.value, self.names[0]),
            capsule(self.array.value, self.names[1]),
        )


class DeviceProducer:
    """An object with `__arrow_c_device_array__` before `__arrow_c_array__`, which it refuses."""

    def __init__(self, schema: Struct, array: Struct, **fields: Any) -> None:
        self.schema, self.array = schema, array
        self.device = ArrowDeviceArray(array=array.value, **fields)

    def __arrow_c_device_array__(self, requested_schema: Any = None, **options: Any) -> Any:
        return (
            capsule(self.schema.value, b"arrow_schema"),
            capsule(self.device, b"arrow_device_array"),
        )

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        raise AssertionError("the other method comes first")


class StreamProducer:
    """An object with `__arrow_c_stream__` only; `status` is what get_next returns at the end."""

    def __init__(self, schema: Struct, chunks: Iterable[Struct], status: int = 0) -> None:
        self.schema = schema
        self.chunks = list(chunks)
        self.status = status
        self.error: ctypes.Array[ctypes.c_char] | None = ctypes.create_string_buffer(b"no more")
        self.stream = Struct(
            ArrowArrayStream,
            get_schema=_GetSchema(self._get_schema),
            get_next=_GetNext(self._get_next),
            get_last_error=_GetError(self._get_last_error),
        )

    def _get_schema(self, _: Any, out: Any) -> int:
        out[0] = self.schema.value
        return 0

    def _get_next(self, _: Any, out: Any) -> int:
        if self.chunks:
            self.given = self.chunks.pop(0)
            out[0] = self.given.value
            return 0
        out[0] = ArrowArray()
        return self.status

    def _get_last_error(self, _: Any) -> int | None:
        return None if self.error is None else ctypes.addressof(self.error)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return capsule(self.stream.value, b"arrow_array_stream")


def taken_array(of: Any) -> ArrowArray:
    """Move the array out of a capsule, as a consumer does; `release` it with `released`."""
    found = ArrowArray.from_address(pointer(of, b"arrow_array"))
    moved = ArrowArray.from_buffer_copy(found)
    found.release = _Release()
    return moved


def released(struct: Any) -> None:
    """Release a structure that was moved or is in a capsule."""
    struct.release(ctypes.addressof(struct))
