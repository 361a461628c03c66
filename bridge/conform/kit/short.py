# SPDX-License-Identifier: Apache-2.0
"""A producer of few lines, for programs: NumPy makes the capsules.

A program that does not show its broken rule with this one is made with `Source` of the kit.
"""

from __future__ import annotations

import ctypes
import weakref

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.given import settle
from bridge.conform.kit.source import answer
from bridge.conform.kit.structures import (
    DELETER,
    DLManagedTensor,
    DLManagedTensorVersioned,
    capsule_destructor,
    capsule_name,
    capsule_pointer,
)


class ShortWatch:
    """Tells whether an array is still alive, and which addresses lie in it."""

    def __init__(self, array: Any) -> None:
        self.reference = weakref.ref(array)
        self.start = array.ctypes.data
        self.end = self.start + array.nbytes

    def alive(self) -> bool:
        """Return whether anything refers to the array."""
        settle()
        return self.reference() is not None

    def holds(self, address: Any) -> bool:
        """Return whether an address lies in the array."""
        return address is not None and self.start <= address <= self.end


def short_given(values: Any) -> Any:
    """Return a new array with these values, and its watch."""
    array = np.array(values)
    return array, ShortWatch(array)


class ShortSource:
    """An array of NumPy whose exports are changed as a case asks, and their deleters counted."""

    def __init__(
        self,
        values: Any,
        *,
        view: Any = None,
        version: Any = (1, 3),
        device: Any = (1, 0),
        knows: Any = ("stream", "max_version", "dl_device", "copy"),
        raises: Any = None,
        once: Any = False,
        poison: Any = True,
        name: Any = None,
        **fields: Any,
    ) -> None:
        if name is not None:
            raise ValueError("NumPy gives the capsule its name")
        self.base, self.watch = short_given(values)
        self.array = self.base
        if view is not None:
            self.array = view(self.base)
        self.wanted = np.array(self.array)
        self.version = version
        self.device = device
        self.knows = knows
        self.raises = raises
        self.once = once
        self.fields = fields
        self.asked: list[Any] = []
        self.exports: list[Any] = []

    def __dlpack_device__(self) -> Any:
        return self.device

    def __dlpack__(self, **arguments: Any) -> Any:
        answer(self, arguments)
        fields = {**self.fields}
        if self.version is None:
            arguments = {}
        elif self.version != (1, 3):
            fields["major"], fields["minor"] = self.version
        if "stream" in arguments:
            arguments = {**arguments, "stream": None}
        if self.device != (1, 0):
            fields["device_type"], fields["device_id"] = self.device
        capsule = self.array.__dlpack__(**arguments)
        self.exports.append(ShortExport(capsule, fields))
        return capsule

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


class ShortExport:
    """A capsule of NumPy, some fields of its structure, and the calls of its deleter."""

    def __init__(self, capsule: Any, fields: dict[str, Any]) -> None:
        self.capsule = capsule
        self.name = capsule_name(capsule)
        self.address = capsule_pointer(capsule, self.name)
        self.managed: Any = DLManagedTensorVersioned.from_address(self.address)
        if self.name == b"dltensor":
            self.managed = DLManagedTensor.from_address(self.address)
        self.count()
        self.numbers: list[Any] = []
        for field, value in fields.items():
            if isinstance(value, tuple):
                self.numbers.append((ctypes.c_int64 * len(value))(*value))
                value = ctypes.addressof(self.numbers[-1])
            setattr(self.managed, field, value)

    def count(self) -> None:
        """Put a deleter that is counted, and lasts, in the place of NumPy's."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        self.deleted: list[bool] = []
        self.callback = DELETER(lambda address: self.deleted.append(address == self.address))
        self.managed.deleter = ctypes.cast(self.callback, ctypes.c_void_p).value

    def times(self) -> int:
        """Return how often the deleter was called, or would be by the capsule's destructor."""
        armed = not self.used() and capsule_destructor(self.capsule) is not None
        return len(self.deleted) + armed

    def used(self) -> bool:
        """Return whether the capsule was renamed as one that was taken."""
        return bool(capsule_name(self.capsule) == b"used_" + (self.name or b""))
