# SPDX-License-Identifier: Apache-2.0
"""Memory: what is known of where the elements of a tensor lie, whatever framework it is of."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["Block", "Memory", "extent", "space_of"]

# Device types whose memory has an address that the CPU can use, the same for all of them.
_HOST = ("cpu", "cuda_host", "rocm_host", "cuda_managed", "ext_dev")


def space_of(device: str) -> str:
    """Name the address space of a device: equal addresses of one space are the same memory.

    >>> from bridge.see.memory import space_of
    >>> space_of("cuda_host"), space_of("cuda:1")
    ('host', 'cuda:1')
    """
    return "host" if device.partition(":")[0] in _HOST else device


class Block:
    """Elements in memory: the address of the first, sizes, strides in bytes, bytes an element."""

    __slots__ = ("address", "itemsize", "sizes", "space", "strides")

    def __init__(
        self,
        space: str,
        address: int,
        sizes: Sequence[int],
        strides: Sequence[int],
        itemsize: int,
    ) -> None:
        self.space = space
        self.address = address
        self.sizes = tuple(sizes)
        self.strides = tuple(strides)
        self.itemsize = itemsize


def extent(block: Block) -> tuple[int, int]:
    """Return the first byte and the byte after the last; equal where there are none.

    >>> from bridge.see.memory import Block, extent
    >>> extent(Block("host", 1000, (3, 2), (-8, 4), 4))
    (984, 1008)
    """
    if 0 in block.sizes or not block.itemsize:
        return block.address, block.address
    spans = [(n - 1) * step for n, step in zip(block.sizes, block.strides, strict=True)]
    low = sum(span for span in spans if span < 0)
    high = sum(span for span in spans if span > 0)
    return block.address + low, block.address + high + block.itemsize


class Memory:
    """The memory of one tensor.

    `strides` are in bytes (in elements where there is no type yet), None where there are none to
    tell; `address` is that of the first element, None where it has none that can be told, and
    `note` says why. `blocks`: all the memory, of which a sparse tensor has several blocks;
    `unknown`: there is more than is told.
    `buffer`: the buffer that the elements are in, as (space, first byte, byte after the last).
    `chain`: what leads to the memory, a dict each, from what was asked about to the owner.
    """

    __slots__ = (
        "address",
        "blocks",
        "buffer",
        "chain",
        "device",
        "dtype",
        "itemsize",
        "keep",
        "note",
        "owner",
        "readonly",
        "sizes",
        "strides",
        "unknown",
    )

    def __init__(self) -> None:
        self.address: int | None = None
        self.blocks: list[Block] = []
        self.buffer: tuple[str, int, int] | None = None
        self.chain: list[dict[str, Any]] = []
        self.device: str | None = None
        self.dtype: str | None = None
        self.itemsize = 0
        self.keep: Any = None  # what keeps the memory there while it is looked at
        self.note: str | None = None
        self.owner: str | None = None
        self.readonly: bool | None = None
        self.sizes: list[int] | None = None
        self.strides: list[int] | None = None
        self.unknown = False

    def found(self, address: int) -> None:
        """Take the first element to be at `address`, everything else being set."""
        assert self.sizes is not None
        assert self.strides is not None
        self.address = address
        if 0 not in self.sizes:
            space = space_of(self.device or "cpu")
            block = Block(space, address, self.sizes, self.strides, self.itemsize)
            self.blocks = [block]
            if self.buffer is None:
                self.buffer = (space, *extent(block))

    @property
    def nbytes(self) -> int | None:
        """Bytes that the elements take."""
        if self.sizes is None or (not self.itemsize and self.dtype is not None):
            return None
        total = self.itemsize
        for n in self.sizes:
            total *= n
        return total
