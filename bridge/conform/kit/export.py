# SPDX-License-Identifier: Apache-2.0
"""A capsule of a producer, read as the documents say."""

from __future__ import annotations

import ctypes
import types
from collections.abc import Callable

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.given import given, made
from bridge.conform.kit.structures import (
    DELETER,
    NAMES,
    DLManagedTensor,
    DLManagedTensorVersioned,
    capsule_name,
    capsule_pointer,
    capsule_rename,
)
from bridge.conform.kit.verdict import skip

# The kind of numbers of each code that NumPy has, too: DLDataTypeCode.
KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}


def integers(address: int | None, n: int) -> list[int]:
    """Return the `n` 64-bit integers at an address."""
    return list((ctypes.c_int64 * n).from_address(address)) if address and n else []


def read_values(tensor: Any) -> Any:
    """Return a copy of the values of a DLTensor, or of a structure that begins or ends with one."""
    if tensor.code not in KINDS or tensor.bits % 8:
        skip(f"NumPy has no elements of code {tensor.code} with {tensor.bits} bits")
    dtype = np.dtype(f"{KINDS[tensor.code]}{tensor.bits // 8}")
    shape = tuple(integers(tensor.shape, tensor.ndim))
    if 0 in shape:
        return np.empty(shape, dtype)
    steps = tuple(step * dtype.itemsize for step in integers(tensor.strides, tensor.ndim))
    seen = {"typestr": dtype.str, "shape": shape, "strides": steps or None, "version": 3}
    seen["data"] = ((tensor.data or 0) + tensor.byte_offset, True)
    return np.array(types.SimpleNamespace(__array_interface__=seen))


def asked(tensor: Any, **arguments: Any) -> Any:
    """Return the result of `__dlpack__`; a BufferError ends the case as one that is skipped.

    A producer that does not know `max_version` is asked in the old way: another rule says so.
    """
    try:
        return tensor.__dlpack__(**arguments)
    except BufferError as error:
        skip(f"__dlpack__ refused: {error}")
    except TypeError as error:
        if not arguments:
            raise
        if "max_version" not in arguments:
            skip(f"__dlpack__ does not know what it is asked: {error}")
        del arguments["max_version"]
        return asked(tensor, **arguments)


def calls(tensor: Any) -> list[dict[str, Any]]:
    """Return the arguments of the ways to ask a producer that it answers: new, old."""
    found: list[dict[str, Any]] = []
    for version in ((1, 3), None):
        try:
            tensor.__dlpack__(max_version=version)
        except BufferError:
            continue
        except TypeError:
            if version:
                continue
        found.append({"max_version": version})
    return found or skip("__dlpack__ refused both calls")


def ways(make: Callable[[Any], Any]) -> list[dict[str, Any]]:
    """Return the arguments of the ways to ask that tensors of a subject answer."""
    return calls(made(make, given(np.arange(6, dtype="f4"))[0]))


def misnamed(first: Any, name: Any) -> bool:
    """Return whether a capsule of this name holds the other structure.

    One begins with a version, the other with the address of the data, or NULL.
    """
    if first.major == first.minor == 0:
        return False
    return bool((first.major < 1000 and first.minor < 1000) != (name == b"dltensor_versioned"))


class Export:
    """A capsule and the structure in it. Its owner is the capsule until `take`."""

    def __init__(self, tensor: Any, **arguments: Any) -> None:
        self.capsule = asked(tensor, **(arguments or {"max_version": (1, 3)}))
        if type(self.capsule).__name__ != "PyCapsule":
            skip("__dlpack__ did not give a capsule")
        self.name = capsule_name(self.capsule)
        if self.name not in (b"dltensor", b"dltensor_versioned"):
            skip(f"the capsule is named {self.name!r}")
        self.address = capsule_pointer(self.capsule, self.name)
        self.managed: Any = DLManagedTensorVersioned.from_address(self.address)
        if misnamed(self.managed, self.name):
            skip(f"the capsule is named {self.name!r} and holds the other structure")
        if not self.versioned:
            self.managed = DLManagedTensor.from_address(self.address)

    versioned: Any = property(lambda self: self.name == b"dltensor_versioned")
    flags: Any = property(lambda self: self.managed.flags if self.versioned else 0)
    shape: Any = property(lambda self: integers(self.managed.shape, self.managed.ndim))
    start: Any = property(lambda self: (self.managed.data or 0) + self.managed.byte_offset)

    def __del__(self) -> None:
        self.capsule = None  # here no exception is on its way, whatever the destructor runs

    def values(self) -> Any:
        """Return a copy of the values, if Python can read them."""
        if self.managed.device_type not in (1, 3, 11, 13):
            skip(f"the memory is on device type {self.managed.device_type}")
        return read_values(self.managed)

    def take(self) -> None:
        """Take the structure from the capsule, as a consumer does."""
        capsule_rename(self.capsule, ctypes.addressof(NAMES[b"used_" + self.name]))

    def delete(self) -> None:
        """Call the deleter, without the GIL."""
        if self.managed.deleter:
            DELETER(self.managed.deleter)(self.address)

    def release(self) -> None:
        """Take the structure, drop the capsule, call the deleter."""
        self.take()
        self.capsule = None
        self.delete()
