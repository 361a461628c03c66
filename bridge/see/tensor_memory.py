# SPDX-License-Identifier: Apache-2.0
"""TensorMemory: where the elements of a tensor are stored, for a tensor of any framework."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

# Device types whose memory the CPU can address; they share one address space.
_HOST = ("cpu", "cuda_host", "rocm_host", "cuda_managed", "ext_dev", "tpu_host")


def address_space(device: str) -> str:
    """Return the address space of a device; equal addresses in one space are the same memory.

    >>> from bridge.see.tensor_memory import address_space
    >>> address_space("cuda_host"), address_space("tpu_host"), address_space("cuda:1")
    ('host', 'host', 'cuda:1')
    """
    return "host" if device.partition(":")[0] in _HOST else device


class Block(NamedTuple):
    """Elements in memory: address of the first, sizes, strides and item size in bytes."""

    space: str
    address: int
    sizes: Sequence[int]
    strides: Sequence[int]
    itemsize: int


def byte_range(block: Block) -> tuple[int, int]:
    """Return the addresses of the first byte and after the last; equal if there are no elements.

    >>> from bridge.see.tensor_memory import Block, byte_range
    >>> byte_range(Block("host", 1000, (3, 2), (-8, 4), 4))
    (984, 1008)
    """
    if 0 in block.sizes or not block.itemsize:
        return block.address, block.address
    spans = [(n - 1) * step for n, step in zip(block.sizes, block.strides, strict=True)]
    low = sum(span for span in spans if span < 0)
    high = sum(span for span in spans if span > 0)
    return block.address + low, block.address + high + block.itemsize


def merged_dims(block: Block) -> list[tuple[int, int]]:
    """Return the bytes of a block in as few dimensions as possible, each (size, stride in bytes).

    Strides are positive, counted from the lowest byte, and increase.

    >>> from bridge.see.tensor_memory import Block, merged_dims
    >>> (
    ...     merged_dims(Block("host", 0, (5, 2, 3), (-24, 12, 4), 4)),
    ...     merged_dims(Block("host", 0, (3,), (8,), 4)),
    ... )
    ([(120, 1)], [(4, 1), (3, 8)])
    """
    dims = [(block.itemsize, 1)]
    dims += [(n, abs(step)) for n, step in zip(block.sizes, block.strides, strict=True)]
    merged: list[tuple[int, int]] = []
    for size, step in sorted((dim for dim in dims if dim[0] > 1 and dim[1]), key=lambda d: d[1]):
        if merged:
            below, low_step = merged[-1]
            times, rest = divmod(step, low_step)
            if rest == 0 and times <= below:
                # each step leads to an existing position, or right after the last one
                merged[-1] = (below + times * (size - 1), low_step)
                continue
        merged.append((size, step))
    return merged


def byte_runs(block: Block, limit: int) -> list[tuple[int, int]] | None:
    """Return the runs of contiguous bytes as (first address, address after), in their order.

    None if there are more than `limit`. Runs may overlap where strides do.

    >>> from bridge.see.tensor_memory import Block, byte_runs
    >>> byte_runs(Block("host", 100, (3, 2), (16, 4), 4), 8)
    [(100, 108), (116, 124), (132, 140)]
    """
    low, high = byte_range(block)
    if low == high:
        return []
    dims = merged_dims(block)
    size = 1
    if dims and dims[0][1] == 1:
        size, dims = dims[0][0], dims[1:]
    starts = [low]
    for n, step in dims:
        if len(starts) * n > limit:
            return None
        starts = [start + i * step for i in range(n) for start in starts]
    return [(start, start + size) for start in sorted(starts)]


@dataclass(slots=True)
class TensorMemory:
    """The memory of one tensor.

    Unknown attributes are None. `strides` are in bytes, or in elements while there is no element
    type. `address` is the address of the first element; `note` explains why it is None. `blocks` is
    all the memory: several blocks for a sparse tensor. `unknown`: there is more memory, whose place
    is not known. `buffer` is the buffer with the elements, as (address space, first byte, byte
    after the last). `chain` has a dict for each object from the tensor to the owner of the memory.
    """

    address: int | None = None
    blocks: list[Block] = field(default_factory=list)
    buffer: tuple[str, int, int] | None = None
    chain: list[dict[str, Any]] = field(default_factory=list)
    device: str | None = None
    dtype: str | None = None
    itemsize: int = 0
    keep: Any = None  # keeps the memory alive while it is compared
    note: str | None = None
    owner: str | None = None
    readonly: bool | None = None
    sizes: list[int] | None = None
    strides: list[int] | None = None
    unknown: bool = False

    def set_address(self, address: int) -> None:
        """Set the address of the first element, after all other attributes, and `blocks`."""
        assert self.sizes is not None
        assert self.strides is not None
        self.address = address
        if 0 not in self.sizes:
            space = address_space(self.device or "cpu")
            block = Block(space, address, self.sizes, self.strides, self.itemsize)
            self.blocks = [block]
            if self.buffer is None:
                self.buffer = (space, *byte_range(block))

    def set_owner(self) -> None:
        """Set `owner` to the last link of the chain."""
        last = self.chain[-1]
        self.owner = f"{last['kind']}: {last['text']}" if "text" in last else last["kind"]

    @property
    def nbytes(self) -> int | None:
        """The size of all elements in bytes."""
        if self.sizes is None or (not self.itemsize and (self.unknown or self.dtype is not None)):
            return None
        if not self.itemsize and self.device is None and 0 not in self.sizes:
            return None
        return prod(self.sizes, start=self.itemsize)
