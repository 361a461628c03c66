# SPDX-License-Identifier: Apache-2.0
"""Find the other users of the buffer of a tensor.

Wrappers, torch tensors and JAX arrays are found by the garbage collector, blobs' names in their
workspaces. NumPy arrays, buffers and DLPack tensors cannot be listed; those that share memory of
the bridge are counted by the references to its owner.
"""

from __future__ import annotations

import sys
from typing import Any

from bridge.c10.storage import Storage
from bridge.c10.tensor_impl import TensorImpl
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.blob_tensor import BlobTensor
from bridge.caffe2.workspaces.current import current
from bridge.see import internals
from bridge.see.impl_memory import impl_memory
from bridge.see.tensor_memory import TensorMemory, address_space
from bridge.see.type_names import type_name
from bridge.wrapper import Wrapper


def sharers(x: Any, memory: TensorMemory) -> list[str]:
    """Describe the other users of the buffer of `x`, whose memory is `memory`; a text for each.

    Goes through all objects that the garbage collector tracks, which takes some milliseconds.
    """
    impl = _impl_of(x)
    if impl is not None and not impl.defined():
        return []  # all undefined tensors share one TensorImpl, without memory
    memory.keep = None  # its references to the owner must not be counted
    storage = x if isinstance(x, Storage) else _storage_of(impl)
    tensor_class, jax_class = getattr(sys.modules.get("torch"), "Tensor", None), _jax_class()
    classes = (Wrapper, Blob, tensor_class, jax_class)
    alive = internals.live_instances(cls for cls in classes if cls is not None)
    wrappers = [one for one in alive if isinstance(one, Wrapper)]
    blobs = {id(one._tensor): one for one in alive if isinstance(one, Blob)}
    names = _blob_names()
    found: list[str] = []
    excluded: set[int] = {id(x)}
    cached = 0
    for one in wrappers:
        other = one.unsafeGetTensorImpl()
        excluded |= internals.hidden_tensors(other)
        if storage is not None and _storage_of(other) is storage and other is not impl:
            cached += internals.caches_torch_tensor(other)
        same = _relation(impl, storage, memory, other)
        if same is None:
            continue
        blob = blobs.get(id(one))
        if blob is x or one is x or (isinstance(x, BlobTensor) and x._tensor is one):
            continue
        if blob is not None:
            found.append(f"{names.get(id(blob), 'a blob without a name')}, {same}")
        else:
            found.append(f"{type_name(one)}, {same}")
    if memory.buffer is not None and tensor_class is not None:
        found += _tensors(memory.buffer, alive, tensor_class, excluded)
    if memory.buffer is not None and jax_class is not None:
        mine = memory.address if isinstance(x, jax_class) else None
        found += _jax_arrays(memory.buffer, alive, jax_class, mine)
    if storage is not None:
        found += _holders(storage, impl, cached)
    return found


def _impl_of(x: Any) -> TensorImpl | None:
    if isinstance(x, Wrapper):
        return x.unsafeGetTensorImpl()
    if isinstance(x, TensorImpl):
        return x
    if isinstance(x, (Blob, BlobTensor)):
        return None if x._tensor is None else x._tensor.unsafeGetTensorImpl()
    return None


def _storage_of(impl: TensorImpl | None) -> Storage | None:
    return impl.get_storage() if impl is not None and impl.defined() else None


def _blob_names() -> dict[int, str]:
    """Return a description of each blob in a workspace, by the id of the blob."""
    names: dict[int, str] = {}
    for workspace_name, workspace in list(current.workspaces.items()):
        where = "" if workspace_name == current.name else f" of workspace {workspace_name!r}"
        for name, blob in list(workspace._blobs.items()):
            names[id(blob)] = f"blob {name!r}{where}"
    return names


def _relation(
    impl: TensorImpl | None, storage: Storage | None, memory: TensorMemory, other: TensorImpl
) -> str | None:
    """Return which part a TensorImpl shares with the memory; None if there is none."""
    if other is impl:
        return "the same TensorImpl"
    others = _storage_of(other)
    if others is None:
        return None
    if others is storage:
        return "the same Storage"
    if memory.buffer is None:
        return None
    begin, nbytes = internals.buffer_of(others)
    if (
        not begin
        or not nbytes
        or not _overlap(memory.buffer, (address_space(str(others.device())), begin, begin + nbytes))
    ):
        return None
    # If the other tensor's memory is gone, its address may have been reused.
    found = impl_memory(other)
    return "overlapping memory" if found.note is None and found.blocks else None


def _overlap(a: tuple[str, int, int], b: tuple[str, int, int]) -> bool:
    return a[0] == b[0] and max(a[1], b[1]) < min(a[2], b[2])


def _tensors(
    buffer: tuple[str, int, int], alive: list[Any], cls: Any, excluded: set[int]
) -> list[str]:
    from bridge.see.torch_memory import torch_byte_range

    found = []
    for one in alive:
        if isinstance(one, cls) and id(one) not in excluded:
            reach = torch_byte_range(one)
            if reach is not None and _overlap(buffer, reach):
                found.append(f"{type_name(one)} of sizes {list(one.shape)} at {one.data_ptr():#x}")
    return found


def _jax_class() -> Any:
    """Return the concrete class of JAX's arrays (jax.Array is abstract); None if not loaded."""
    for name in ("jaxlib._jax", "jaxlib.xla_extension"):
        cls = getattr(sys.modules.get(name), "ArrayImpl", None)
        if cls is not None:
            return cls
    return None


def _jax_arrays(
    buffer: tuple[str, int, int], alive: list[Any], cls: Any, mine: int | None
) -> list[str]:
    # A JAX array refers to one array per device, over the same memory: both count as one.
    found: dict[int, str] = {}
    for one in alive:
        if not isinstance(one, cls):
            continue
        try:
            address = one.unsafe_buffer_pointer()
            device = one.device
            platform, index = device.platform, device.local_hardware_id
        except (AttributeError, ValueError, RuntimeError):
            continue  # deleted, or on several devices
        space = "host" if platform == "cpu" else f"cuda:{index}"
        if address != mine and _overlap(buffer, (space, address, address + one.nbytes)):
            found[address] = f"jax.Array of sizes {list(one.shape)} at {address:#x}"
    return list(found.values())


def _holders(storage: Storage, impl: TensorImpl | None, cached: int) -> list[str]:
    """Describe the owner if it is an array, else the number of exported views that refer to it."""
    owner = internals.owner_of(storage)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(owner, numpy.ndarray):
        return [f"numpy.ndarray of sizes {list(owner.shape)}, the owner"]
    if internals.describe_owner(owner) is None:
        return []
    # Not counted: the Storage, `owner` here, and torch tensors cached for export.
    mine = 0 if impl is None else int(internals.caches_torch_tensor(impl))
    held = internals.owner_refcount(storage) - 2 - mine - cached
    if held <= 0:
        return []
    return [f"{held} held by exported NumPy arrays, buffers or DLPack tensors"]
