# SPDX-License-Identifier: Apache-2.0
"""Look into a DLPack capsule, which is not consumed; nothing in it is believed unseen."""

from __future__ import annotations

from typing import Any

from bridge.see import inside
from bridge.see.memory import Block, Memory, extent
from bridge.see.naming import kind_of

__all__ = ["of_capsule"]

# No machine has more bytes of address space.
_ADDRESSES = 2**63


def of_capsule(capsule: Any) -> Memory:
    """Find the memory of a DLPack capsule.

    Raises TypeError: it is a capsule of something else.
    """
    memory = Memory()
    memory.chain = [{"kind": kind_of(capsule)}]
    memory.keep = capsule
    try:
        address, sizes, strides, dtype, device, readonly = inside.peeked(capsule)
    except BufferError as error:
        if "not one of DLPack" in str(error):
            raise TypeError(f"A capsule is no tensor: {error}") from error
        memory.note = str(error)
        memory.unknown = True
        return memory
    memory.device = str(device)
    memory.readonly = readonly
    memory.sizes = sizes
    memory.owner = "whoever made the DLPack capsule"
    if dtype is None:
        memory.note = "The element type of the DLPack tensor is not known."
        memory.unknown = True
        return memory
    memory.dtype, memory.itemsize = dtype.name, dtype.itemsize
    memory.strides = [step * dtype.itemsize for step in strides]
    low, high = extent(Block("", address, sizes, memory.strides, dtype.itemsize))
    if low < 0 or high >= _ADDRESSES:
        memory.note = f"The DLPack tensor's strides {list(strides)} lead out of memory."
        memory.unknown = True
        return memory
    memory.found(address)
    return memory
