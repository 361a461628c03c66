# SPDX-License-Identifier: Apache-2.0
"""Who else has memory of the buffer that a tensor is in.

What Python can tell: wrappers and torch tensors are known to its garbage collector, blobs to their
workspaces. NumPy arrays, buffers and DLPack tensors are known to nobody; those that hold an owner
of the bridge's are counted by its references.
"""

from __future__ import annotations

import sys

from bridge.c10.storage import Storage
from bridge.c10.tensor_impl import TensorImpl
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.blob_tensor import BlobTensor
from bridge.caffe2.workspaces.current import current
from bridge.see import inside
from bridge.see.memory import Memory, space_of
from bridge.see.naming import kind_of
from bridge.see.read import of_impl
from bridge.wrapper import Wrapper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["sharers"]


def sharers(x: Any, memory: Memory) -> list[str]:
    """Name who else has memory in the buffer that `memory`, that of `x`, is in.

    Looks at all objects that the garbage collector knows: some milliseconds.
    """
    impl = _impl_of(x)
    if impl is not None and not impl.defined():
        return []  # all undefined tensors have the same TensorImpl, and no memory
    memory.keep = None  # its references to the owner are not to be counted
    storage = x if isinstance(x, Storage) else _storage_of(impl)
    torch = sys.modules.get("torch")
    tensor_class = getattr(torch, "Tensor", None)
    classes: list[Any] = [Wrapper, Blob]
    if tensor_class is not None:
        classes.append(tensor_class)
    jax_class = _jax_class()
    if jax_class is not None:
        classes.append(jax_class)
    alive = inside.living(classes)
    wrappers = [one for one in alive if isinstance(one, Wrapper)]
    blobs = {id(one._tensor): one for one in alive if isinstance(one, Blob)}
    names = _names()
    found: list[str] = []
    unseen: set[int] = {id(x)}
    lent = 0
    for one in wrappers:
        other = inside.impl_of(one)
        unseen |= inside.hidden(other)
        if storage is not None and _storage_of(other) is storage and other is not impl:
            lent += inside.lends(other)
        same = _relation(impl, storage, memory, other)
        if same is None:
            continue
        blob = blobs.get(id(one))
        if blob is x or one is x or (isinstance(x, BlobTensor) and x._tensor is one):
            continue
        if blob is not None:
            found.append(f"{names.get(id(blob), 'a blob without a name')}, {same}")
        else:
            found.append(f"{kind_of(one)}, {same}")
    if memory.buffer is not None and tensor_class is not None:
        found += _tensors(memory.buffer, alive, tensor_class, unseen)
    if memory.buffer is not None and jax_class is not None:
        mine = memory.address if isinstance(x, jax_class) else None
        found += _jax_arrays(memory.buffer, alive, jax_class, mine)
    if storage is not None:
        found += _holders(storage, impl, lent)
    return found


def _impl_of(x: Any) -> TensorImpl | None:
    if isinstance(x, Wrapper):
        return inside.impl_of(x)
    if isinstance(x, TensorImpl):
        return x
    if isinstance(x, (Blob, BlobTensor)):
        return None if x._tensor is None else inside.impl_of(x._tensor)
    return None


def _storage_of(impl: TensorImpl | None) -> Storage | None:
    return impl.get_storage() if impl is not None and impl.defined() else None


def _names() -> dict[int, str]:
    """The blobs that have names, by their ids."""
    names: dict[int, str] = {}
    for workspace_name, workspace in list(current.workspaces.items()):
        where = "" if workspace_name == current.name else f" of workspace {workspace_name!r}"
        for name, blob in list(workspace._blobs.items()):
            names[id(blob)] = f"blob {name!r}{where}"
    return names


def _relation(
    impl: TensorImpl | None, storage: Storage | None, memory: Memory, other: TensorImpl
) -> str | None:
    """Say what a TensorImpl has in common with the memory; None for nothing."""
    if other is impl:
        return "the same TensorImpl"
    others = _storage_of(other)
    if others is None:
        return None
    if others is storage:
        return "the same Storage"
    if memory.buffer is None:
        return None
    begin, nbytes = inside.buffer_of(others)
    if (
        not begin
        or not nbytes
        or not _meet(memory.buffer, (space_of(str(others.device())), begin, begin + nbytes))
    ):
        return None
    reach = of_impl(other)  # what lies where another tensor's memory was is another's now
    return "overlapping memory" if reach.note is None and reach.blocks else None


def _meet(a: tuple[str, int, int], b: tuple[str, int, int]) -> bool:
    return a[0] == b[0] and max(a[1], b[1]) < min(a[2], b[2])


def _tensors(
    buffer: tuple[str, int, int], alive: list[Any], cls: Any, unseen: set[int]
) -> list[str]:
    from bridge.see.read_torch import reach_of

    found = []
    for one in alive:
        if isinstance(one, cls) and id(one) not in unseen:
            reach = reach_of(one)
            if reach is not None and _meet(buffer, reach):
                found.append(f"{kind_of(one)} of sizes {list(one.shape)} at {one.data_ptr():#x}")
    return found


def _jax_class() -> Any:
    """Return the class of JAX's arrays, which jax.Array is but an abstract base of."""
    for name in ("jaxlib._jax", "jaxlib.xla_extension"):
        cls = getattr(sys.modules.get(name), "ArrayImpl", None)
        if cls is not None:
            return cls
    return None


def _jax_arrays(
    buffer: tuple[str, int, int], alive: list[Any], cls: Any, mine: int | None
) -> list[str]:
    # An array of JAX holds one for each device, over the same memory: they count as one.
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
        if address != mine and _meet(buffer, (space, address, address + one.nbytes)):
            found[address] = f"jax.Array of sizes {list(one.shape)} at {address:#x}"
    return list(found.values())


def _holders(storage: Storage, impl: TensorImpl | None, lent: int) -> list[str]:
    """Count what was handed out and holds the owner, or name the owner if it is a tensor."""
    owner = inside.owner_of(storage)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(owner, numpy.ndarray):
        return [f"numpy.ndarray of sizes {list(owner.shape)}, the owner"]
    if inside.kept_by(owner) is None:
        return []
    # besides the Storage, `owner` here, and torch's tensor that is kept to lend aliases of
    mine = 0 if impl is None else int(inside.lends(impl))
    held = inside.references(storage) - 2 - mine - lent
    if held <= 0:
        return []
    return [f"{held} held by NumPy arrays, buffers or DLPack tensors that were handed out"]
