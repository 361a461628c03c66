# SPDX-License-Identifier: Apache-2.0
"""Memory that is used once: freed objects stay as they are, other freed memory is spoiled."""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from typing import Any

import pytest

from bridge.conform.isolation import isolated

pytestmark = pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="its allocator stays as it is"
)


class Tensor:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


def test_a_freed_object_stays_and_is_freed_once() -> None:
    def use() -> list[Any]:
        one = Tensor("first")
        address = id(one)
        del one
        others = [Tensor(str(n)) for n in range(1000)]
        again = ctypes.cast(address, ctypes.py_object).value
        again = None
        seen = type(ctypes.cast(address, ctypes.py_object).value).__name__
        return [address in map(id, others), again, seen]

    assert isolated(use) == ("done", [False, None, "Tensor"])


@pytest.mark.parametrize(("spoil", "wanted"), [(True, [0xDD] * 100), (False, list(range(100)))])
def test_other_memory_that_is_freed_is_filled_or_stays(spoil: bool, wanted: list[int]) -> None:
    def use() -> list[int]:
        block = (ctypes.c_ubyte * 100)(*range(100))
        address = ctypes.addressof(block)
        del block
        return list((ctypes.c_ubyte * 100).from_address(address))

    assert isolated(use, spoil=spoil) == ("done", wanted)


def test_the_text_of_freed_bytes_is_spoiled() -> None:
    def use() -> int:
        text = bytes(bytearray(b"dltensor"))
        address = id(text) + bytes.__basicsize__ - 1
        del text
        return ctypes.c_ubyte.from_address(address).value

    assert isolated(use) == ("done", 0xDD)


def test_addresses_are_the_same_in_each_process() -> None:
    def use() -> int:
        return ctypes.addressof((ctypes.c_ubyte * 5000)())

    first = isolated(use)
    kept = [bytearray(100) for _ in range(10_000)]
    assert isolated(use) == first
    del kept


def test_blocks_in_use_are_counted() -> None:
    def use() -> bool:
        before = sys.getallocatedblocks()
        kept = [bytearray(600) for _ in range(1000)]
        during = sys.getallocatedblocks()
        del kept
        after = sys.getallocatedblocks()
        return during - before >= 1000 and after - before < 100

    assert isolated(use) == ("done", True)


def test_memory_of_any_size_is_given() -> None:
    def use() -> list[int]:
        large = bytearray(1 << 30)  # more than there is of the other
        grown: list[int] = []
        for n in range(100_000):
            grown.append(n)
        zeros = (ctypes.c_ubyte * 100_000)()
        return [len(large), sum(grown), sum(zeros)]

    assert isolated(use) == ("done", [1 << 30, sum(range(100_000)), 0])
