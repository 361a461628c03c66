# SPDX-License-Identifier: Apache-2.0
"""The memory of NumPy arrays."""

from __future__ import annotations

import sys
from typing import Any

from bridge.see.owner_links import owner_links
from bridge.see.tensor_memory import Block, TensorMemory, byte_range


def array_memory(array: Any) -> TensorMemory:
    """Return the memory of a NumPy array of any element type, byte order and alignment."""
    memory = TensorMemory()
    memory.device = "cpu"
    memory.dtype = array.dtype.name if array.dtype.isnative else str(array.dtype)
    memory.itemsize = int(array.dtype.itemsize)
    memory.sizes = list(array.shape)
    memory.strides = list(array.strides)
    memory.readonly = not array.flags.writeable
    memory.keep = array
    root = array
    while isinstance(root.base, sys.modules["numpy"].ndarray):
        root = root.base
    memory.chain = owner_links(array)
    memory.chain[0].update(dtype=memory.dtype, strides=memory.strides)
    memory.set_owner()
    whole = Block("host", root.ctypes.data, root.shape, root.strides, root.dtype.itemsize)
    memory.buffer = ("host", *byte_range(whole))
    memory.set_address(array.ctypes.data)
    return memory
