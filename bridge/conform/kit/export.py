# SPDX-License-Identifier: Apache-2.0
"""A capsule of a producer, read as the documents say."""

from __future__ import annotations

import ctypes

import numpy as np

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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The kind of numbers of each code that NumPy has, too: DLDataTypeCode.
KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}


def integers(address: int | None, n: int) -> list[int]:
    """Return the `n` 64-bit integers at an address."""
    return list((ctypes.c_int64 * n).from_address(address)) if address and n else []


def read_values(tensor: Any) -> Any:
    """Return a copy of the values of a DLTensor, or of a structure that begins or ends with one."""
    shape = integers(tensor.shape, tensor.ndim)
    try:
        dtype = np.dtype(f"{KINDS[tensor.code]}{tensor.bits // 8}")
    except (KeyError, TypeError):
        skip(f"NumPy has no elements of code {tensor.code} with {tensor.bits} bits")
    if 0 in shape:
        return np.empty(shape, dtype)
    steps = integers(tensor.strides, tensor.ndim)
    steps = steps or [int(np.prod(shape[i + 1 :])) for i in range(tensor.ndim)]
    reach = [(n - 1) * step * dtype.itemsize for n, step in zip(shape, steps, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    start = (tensor.data or 0) + tensor.byte_offset + low
    memory: Any = (ctypes.c_char * (high - low + dtype.itemsize)).from_address(start)
    strides = [step * dtype.itemsize for step in steps]
    return np.ndarray(shape, dtype, memory, -low, strides).copy()


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
        first = DLManagedTensorVersioned.from_address(self.address)
        self.versioned = self.name == b"dltensor_versioned"
        if misnamed(first, self.name):
            skip(f"the capsule is named {self.name!r} and holds the other structure")
        self.managed = first if self.versioned else DLManagedTensor.from_address(self.address)
        self.flags = first.flags if self.versioned else 0
        self.shape = integers(self.managed.shape, self.managed.ndim)
        self.start = (self.managed.data or 0) + self.managed.byte_offset

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
