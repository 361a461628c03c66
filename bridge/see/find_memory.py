# SPDX-License-Identifier: Apache-2.0
"""Find the memory of a tensor of any framework, without a copy and without a change to it."""

from __future__ import annotations

import sys

from bridge.annotation import Any
from bridge.c10.storage import Storage
from bridge.c10.tensor_impl import TensorImpl
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.blob_tensor import BlobTensor
from bridge.see.capsule_memory import capsule_memory, is_capsule
from bridge.see.impl_memory import impl_memory, owner_links, storage_memory
from bridge.see.producer_memory import producer_memory
from bridge.see.tensor_memory import Block, TensorMemory, byte_range
from bridge.see.type_names import type_name
from bridge.wrapper import Wrapper


def find_memory(x: Any) -> TensorMemory:
    """Return the memory of `x`: a tensor of any framework, a Storage or a blob.

    Raises TypeError: `x` is not a tensor, or is a blob without one.
    """
    if isinstance(x, Wrapper):
        return _wrapper_memory(x)
    if isinstance(x, TensorImpl):
        return impl_memory(x)
    if isinstance(x, Storage):
        return storage_memory(x)
    if isinstance(x, getattr(sys.modules.get("torch"), "Tensor", ())):
        from bridge.see.torch_memory import torch_memory

        return torch_memory(x)
    if isinstance(x, getattr(sys.modules.get("numpy"), "ndarray", ())):
        return _array_memory(x)
    if is_capsule(x):
        return capsule_memory(x)
    if isinstance(x, (Blob, BlobTensor)):
        return _blob_memory(x)
    return producer_memory(x)


def _wrapper_memory(wrapper: Wrapper) -> TensorMemory:
    memory = impl_memory(wrapper.unsafeGetTensorImpl())
    memory.chain.insert(0, {"kind": type_name(wrapper)})
    return memory


def _blob_memory(x: Blob | BlobTensor) -> TensorMemory:
    if x._tensor is None:
        raise TypeError(f"{x!r} holds no tensor.")
    memory = _wrapper_memory(x._tensor)
    memory.chain.insert(0, {"kind": type_name(x)})
    return memory


def _array_memory(array: Any) -> TensorMemory:
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
