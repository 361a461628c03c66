# SPDX-License-Identifier: Apache-2.0
"""Bytes taken apart into what structures are made of, and the memory that these describe."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from bridge import c10

T = TypeVar("T")

REFUSALS = (
    BufferError,
    TypeError,
    ValueError,
    MemoryError,
    c10.EnforceNotMet,
    DeprecationWarning,  # NumPy's, of old names of types, where warnings are errors
)

# What the structures describe: a pattern, so that a wrong place is a wrong value, without NaN in
# any type. Nothing is read through a pointer that another part contradicts: the sizes that a
# producer gives are believed.
MEMORY = (np.arange(1 << 15) % 251).astype(np.uint8).view(np.float64)
NBYTES = MEMORY.nbytes
MOST_READ = 1 << 12  # elements that are compared


class Words:
    """Takes bytes apart into numbers; zeros follow the last of them."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def rest(self) -> bytes:
        return self.data[self.at :]

    def rarely(self, of_256: int = 16) -> bool:
        """Return True for as many of the values of a byte."""
        return self.byte() >= 256 - of_256

    def choice(self, of: Sequence[T]) -> T:
        return of[self.byte() % len(of)]

    def size(self) -> int:
        """A number that is mostly small and sometimes extreme."""
        kind, low = self.byte(), self.byte()
        if kind < 200:
            return low % 7
        wide = (low - 128) << (kind % 56)
        return (wide, 2**63 - 1 - low, -(2**63) + low, low - 4)[kind % 4]

    def sizes(self) -> tuple[int, ...]:
        return tuple(self.size() for _ in range(self.byte() % 6))

    def text(self, words: Sequence[str]) -> str:
        found = words[self.byte() % (len(words) + 1) - 1] if self.byte() < 230 else ""
        return found or bytes(self.byte() for _ in range(4)).decode("latin-1")


def elements_at(
    offset: int, shape: Sequence[int], strides: Sequence[int] | None, itemsize: int
) -> bytes | None:
    """Return the elements in row-major order that strides in bytes lead to; by NumPy.

    None where they are not all in the memory, or too many.
    """
    if any(size < 0 for size in shape) or math.prod(shape) > MOST_READ:
        return None
    if 0 in shape:
        return b""
    if strides is not None:  # NumPy's own check overflows
        spans = [(size - 1) * step for size, step in zip(shape, strides, strict=True)]
        low, high = sum(min(span, 0) for span in spans), sum(max(span, 0) for span in spans)
        if offset + low < 0 or offset + high + itemsize > NBYTES:
            return None
        # of one element, any: it may be more than NumPy takes
        strides = [0 if size == 1 else step for size, step in zip(shape, strides, strict=True)]
    elif offset < 0 or offset + math.prod(shape) * itemsize > NBYTES:
        return None
    kind = np.dtype((np.void, itemsize))
    found: np.ndarray[Any, Any] = np.ndarray(
        tuple(shape), kind, MEMORY.data.cast("B"), offset, strides and tuple(strides)
    )
    return found.tobytes()


def refused(action: Callable[[], None]) -> bool:
    """Return whether an import is refused as `from_dlpack` is documented to refuse.

    Nothing keeps the frames of the action afterwards.
    """
    try:
        action()
    except (BufferError, MemoryError, DeprecationWarning):  # the last is NumPy's, of old names
        return True
    except TypeError as error:
        if isinstance(error, c10.EnforceNotMet):
            raise
        return True
    return False
