# SPDX-License-Identifier: Apache-2.0
"""Arrays that a subject makes its tensors from, in memory whose life the kit watches."""

from __future__ import annotations

import ctypes
import gc
import sys
import weakref
from collections.abc import Callable

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.verdict import skip


def settle() -> None:
    """Collect the objects without references."""
    for _ in range(3):
        gc.collect()


class Watch:
    """Tells whether memory is still alive, and which addresses lie in it."""

    def __init__(self, memory: Any) -> None:
        self.reference = weakref.ref(memory)
        self.start = ctypes.addressof(memory)
        self.end = self.start + len(memory)

    def alive(self) -> bool:
        """Return whether anything refers to the memory."""
        settle()
        return self.reference() is not None

    def holds(self, address: int | None) -> bool:
        """Return whether an address lies in the memory."""
        return address is not None and self.start <= address <= self.end


def given(values: Any) -> tuple[Any, Watch]:
    """Return a row-major array with these values, aligned to 256 bytes, and its memory's watch."""
    values = np.asarray(values)
    memory = (ctypes.c_char * (values.nbytes + 512))()
    offset = -ctypes.addressof(memory) % 256
    array = np.ndarray(values.shape, values.dtype, memory, offset)
    array[...] = values
    return array, Watch(memory)


def made(make: Callable[[Any], Any], array: Any) -> Any:
    """Return the subject's tensor of an array; a refusal ends the case as one that is skipped."""
    try:
        return make(array)
    except Exception as error:
        skip(f"make refused: {type(error).__name__}: {error}")


def values_of(to_numpy: Callable[[Any], Any], tensor: Any) -> Any:
    """Return the values of a subject's tensor in an array of their own."""
    try:
        return np.array(to_numpy(tensor), copy=True)
    except Exception as error:
        skip(f"to_numpy refused: {type(error).__name__}: {error}")


def is_shown(to_numpy: Callable[[Any], Any], tensor: Any) -> bool:
    """Return whether a subject's tensor shows values."""
    try:
        np.asarray(to_numpy(tensor)).tolist()
    except Exception:
        return False
    return True


def shown(found: Any, wanted: Any) -> str:
    """Return values for people, unless they only happened to be in memory."""
    plausible = {*np.ravel(wanted).tolist(), *range(100)}
    values = np.asarray(found).tolist()
    return str(values) if plausible.issuperset(np.ravel(values).tolist()) else "something else"


def immortal(*objects: Any) -> None:
    """Add references that last, so that a deleter that gives up too many frees nothing."""
    for one in objects * 100:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))


def references(x: Any) -> int:
    """Return how many references an object has, without the references of this call."""
    settle()
    return sys.getrefcount(x)
