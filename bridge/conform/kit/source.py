# SPDX-License-Identifier: Apache-2.0
"""A producer of the kit: it exports the tensor that a case asks for, and notes its release."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.export import KINDS
from bridge.conform.kit.given import given, settle
from bridge.conform.kit.structures import (
    DELETER,
    NAMES,
    DLManagedTensor,
    DLManagedTensorVersioned,
    capsule_destructor,
    capsule_name,
    capsule_new,
)
from bridge.conform.kit.verdict import broken, skip

CODES = {kind: code for code, kind in KINDS.items()}
KEPT: list[Any] = []  # memory that a consumer may still point to, until the process ends
# A deleter, or destructor, in C that does nothing, whatever the state of the interpreter.
CONSTANT = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value


class Exported:
    """A structure in a capsule. The kit keeps the capsule, so that its name can be read later."""

    def __init__(
        self, array: Any, root: Any, kind: Any, name: bytes, fields: dict[str, Any]
    ) -> None:
        self.root, self.name = root, name
        self.deleted: list[bool] = []  # for each call of the deleter, if it was given the structure
        self.blocks: list[Any] = []
        self.intact = self.poison = True
        strides = [step // array.itemsize for step in array.strides]
        filled = {"data": array.ctypes.data, "device_type": 1, "ndim": array.ndim, "lanes": 1}
        filled |= {"code": CODES.get(array.dtype.kind, 0), "bits": array.itemsize * 8}
        filled |= {"shape": array.shape, "strides": strides, **fields}
        self.callback = DELETER(self.delete)
        filled.setdefault("deleter", ctypes.cast(self.callback, ctypes.c_void_p).value)
        for numbers in ("shape", "strides"):
            if isinstance(filled[numbers], (list, tuple)):
                block = (ctypes.c_int64 * (len(filled[numbers]) or 1))(*filled[numbers])
                self.blocks.append(block)
                filled[numbers] = ctypes.addressof(block)
        self.managed = kind(**{field: filled.get(field, 0) for field, _ in kind._fields_})
        self.managed.manager_ctx = filled.get("manager_ctx", ctypes.addressof(self.managed))
        self.written = bytes(self.managed)
        self.bytes = bytes(root)
        self.address = ctypes.addressof(self.managed)
        self.capsule = capsule_new(self.address, ctypes.addressof(NAMES[name]), CONSTANT)
        KEPT.append(self)

    def delete(self, address: int) -> None:
        """Note the call, and make the memory, the shape and the strides useless."""
        if not self.deleted:
            self.intact = bytes(self.managed) == self.written and bytes(self.root) == self.bytes
        if self.poison and not self.deleted:
            self.root[...] = 0xA5
            for block in self.blocks:
                ctypes.memset(block, 0, ctypes.sizeof(block))
        self.deleted.append(address == self.address)

    def times(self) -> int:
        """Return how often the deleter was called, or would be by the capsule's destructor.

        A capsule that others than the kit still hold never comes to its destructor.
        """
        armed = not self.used() and capsule_destructor(self.capsule) is not None
        armed = armed and sys.getrefcount(self.capsule) <= 2
        return len(self.deleted) + armed

    def used(self) -> bool:
        """Return whether the capsule was renamed as one that was taken."""
        return bool(capsule_name(self.capsule) == b"used_" + self.name)


def answer(source: Any, arguments: dict[str, Any]) -> None:
    """Note the arguments of a call of a source's `__dlpack__`, and raise what it raises."""
    source.asked.append(arguments)
    for name in arguments:
        if name not in source.knows:
            raise TypeError(f"__dlpack__() got an unexpected keyword argument {name!r}")
    if source.raises is not None and (not source.once or len(source.asked) == 1):
        raise source.raises
    device = arguments.get("dl_device")
    if device not in (None, source.device):
        raise BufferError(f"the tensor is on device {source.device}")


class Source:
    """An object with both methods of DLPack."""

    def __init__(
        self,
        values: Any,
        *,
        view: Callable[[Any], Any] = lambda array: array,
        version: tuple[int, int] | None = (1, 3),
        flags: int = 0,
        device: tuple[int, int] = (1, 0),
        knows: tuple[str, ...] = ("stream", "max_version", "dl_device", "copy"),
        raises: Exception | None = None,
        name: bytes | None = None,
        poison: bool = True,
        once: bool = False,
        **fields: Any,
    ) -> None:
        self.base, self.watch = given(values)
        self.root = self.base.reshape(-1).view(np.uint8)
        self.array = view(self.base)
        self.wanted = np.array(self.array)
        self.version, self.flags, self.device, self.knows = version, flags, device, knows
        self.raises, self.name, self.poison, self.fields = raises, name, poison, fields
        self.once = once  # whether only the first call raises
        self.asked: list[dict[str, Any]] = []  # the arguments of each call of __dlpack__
        self.exports: list[Exported] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **arguments: Any) -> Any:
        answer(self, arguments)
        new = arguments.get("max_version") is not None and self.version is not None
        return self.export(new, bool(arguments.get("copy"))).capsule

    def export(self, new: bool, copy: bool = False) -> Exported:
        """Return a new export, in the new or the old structure."""
        array, root = self.array, self.root
        if copy:
            array = given(np.array(array))[0]
            root = array.reshape(-1).view(np.uint8)
        fields = {"device_type": self.device[0], "device_id": self.device[1], **self.fields}
        name = b"dltensor"
        if new:
            name = b"dltensor_versioned"
            fields |= {"major": self.version[0], "minor": self.version[1]} if self.version else {}
            fields["flags"] = self.flags | 2 * copy
        name = self.name or name
        kind = DLManagedTensorVersioned if new else DLManagedTensor
        self.exports.append(Exported(array, root, kind, name, fields))
        self.exports[-1].poison = self.poison
        return self.exports[-1]

    def versioned(self) -> bool:
        """Return whether a consumer asked for a versioned capsule."""
        return any(arguments.get("max_version") is not None for arguments in self.asked)

    def deletions(self) -> list[int]:
        """Return how often each export was or would be deleted: by the consumer, or its capsule."""
        settle()
        return [one.times() for one in self.exports]

    def called(self) -> int:
        """Return how often the consumer called deleters."""
        settle()
        return sum(len(one.deleted) for one in self.exports)


def imported(from_dlpack: Callable[..., Any], source: Source, **arguments: Any) -> Any:
    """Return the consumer's tensor of a source; if it refuses, the case is skipped."""
    try:
        return from_dlpack(source, **arguments)
    except Exception as error:
        skip(f"from_dlpack refused: {type(error).__name__}: {error}")


def required(from_dlpack: Callable[..., Any], source: Source, what: str, **arguments: Any) -> Any:
    """Return the consumer's tensor of a source that it must take."""
    try:
        return from_dlpack(source, **arguments)
    except Exception as error:
        broken(f"{what} was refused: {type(error).__name__}: {error}")
