# SPDX-License-Identifier: Apache-2.0
"""Allocators in Python over host buffers: one that counts, one that fails, one that lies."""

import ctypes
from typing import Any

from bridge import c10

ALIGNMENT = 64


class HostAllocator(c10.Allocator):
    """Counts: `live` maps each address that is out to its size, `freed` lists those that came back.

    A `raw_deallocate` of an address that is not out raises KeyError, so a double free shows.
    """

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[int, int] = {}
        self.freed: list[int] = []
        self._buffers: dict[int, Any] = {}

    def raw_allocate(self, nbytes: int) -> int:
        buffer = ctypes.create_string_buffer(nbytes + ALIGNMENT)
        address = -(-ctypes.addressof(buffer) // ALIGNMENT) * ALIGNMENT
        self.live[address] = nbytes
        self._buffers[address] = buffer
        return address

    def raw_deallocate(self, address: int) -> None:
        del self.live[address]
        del self._buffers[address]
        self.freed.append(address)


class FailingAllocator(c10.Allocator):
    """Raises `error` at each allocation."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def raw_allocate(self, nbytes: int) -> int:
        raise self.error

    def raw_deallocate(self, address: int) -> None:
        raise AssertionError("nothing was allocated here")


class RubbishAllocator(c10.Allocator):
    """Returns `rubbish` where an address is due."""

    def __init__(self, rubbish: Any) -> None:
        super().__init__()
        self.rubbish = rubbish

    def raw_allocate(self, nbytes: int) -> int:
        return self.rubbish

    def raw_deallocate(self, address: int) -> None:
        raise AssertionError("nothing was allocated here")
