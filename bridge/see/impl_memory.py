# SPDX-License-Identifier: Apache-2.0
"""The memory of the bridge's own TensorImpls and Storages, and the chain of its owners."""

from __future__ import annotations

import sys
from typing import Any

from bridge.c10.errors import EnforceBufferError, EnforceNotMet
from bridge.c10.storage import Storage
from bridge.c10.tensor_impl import TensorImpl
from bridge.see import internals
from bridge.see.tensor_memory import Block, TensorMemory, address_space
from bridge.see.type_names import type_name


def impl_memory(impl: TensorImpl) -> TensorMemory:
    """Return the memory of a TensorImpl."""
    memory = TensorMemory()
    if not impl.defined():
        memory.note = "The tensor is undefined: it has neither sizes nor memory."
        memory.chain = [{"kind": "UndefinedTensorImpl"}]
        return memory
    dtype, storage = impl.dtype(), impl.get_storage()
    memory.device = str(impl.device())
    memory.dtype = dtype.name if dtype else None
    memory.itemsize = dtype.itemsize
    memory.sizes = list(impl.sizes())
    memory.strides = [step * (memory.itemsize or 1) for step in impl.strides()]
    memory.readonly = storage.readonly
    memory.keep = (impl, internals.owner_of(storage))
    memory.chain = [
        {
            "kind": "TensorImpl",
            "sizes": memory.sizes,
            "strides": list(impl.strides()),
            "dtype": memory.dtype,
            "storage_offset": impl.storage_offset(),
        }
    ]
    try:
        address = internals.address_of(impl)
    except EnforceBufferError as error:
        memory.note = error.message
        _add_storage(memory, storage)
        return memory
    _add_storage(memory, storage)
    if dtype.is_pod:
        begin, nbytes = internals.buffer_of(storage)
        if begin and nbytes:
            memory.buffer = (address_space(memory.device), begin, begin + nbytes)
        memory.set_address(address)
    elif impl.numel():
        # The elements are items of one list; their positions stand in for addresses.
        memory.note = f"Elements of {dtype} are Python objects, without a common address."
        owner = internals.owner_of(storage)
        space = f"elements of {id(owner):#x}"
        first = id(owner) + impl.storage_offset()
        memory.blocks = [Block(space, first, memory.sizes, list(impl.strides()), 1)]
    return memory


def storage_memory(storage: Storage) -> TensorMemory:
    """Return the memory of a Storage, as bytes."""
    memory = TensorMemory()
    begin, nbytes = internals.buffer_of(storage)
    memory.device = str(storage.device())
    memory.dtype = storage.dtype().name if storage.dtype() else None
    memory.itemsize = 1
    memory.sizes, memory.strides = [nbytes], [1]
    memory.readonly = storage.readonly
    memory.keep = internals.owner_of(storage)
    try:
        storage.data_ptr()
    except EnforceNotMet as error:
        memory.note = error.message
    _add_storage(memory, storage)
    if memory.note is None and (not storage.dtype() or storage.dtype().is_pod):
        memory.set_address(begin)
    return memory


def _add_storage(memory: TensorMemory, storage: Storage) -> None:
    """Append a Storage and the owner of its buffer to the chain."""
    begin, nbytes = internals.buffer_of(storage)
    plain = not storage.dtype() or storage.dtype().is_pod
    memory.chain.append(
        {
            "kind": "Storage",
            "address": begin if memory.note is None and plain else None,
            "nbytes": nbytes,
            "device": str(storage.device()),
            "use_count": storage.use_count(),
            "readonly": storage.readonly,
        }
    )
    owner = internals.owner_of(storage)
    if owner is None:
        memory.chain.append({"kind": "nothing", "text": "not allocated"})
        return
    torch = sys.modules.get("torch")
    classes: Any = () if torch is None else (torch.Tensor, torch.UntypedStorage)
    if isinstance(owner, classes) and not internals.is_borrowed(storage):
        # torch's storage, or a tensor that the bridge created to retain it.
        memory.chain.append({"kind": "torch storage", "text": "retained, it cannot be resized"})
    else:
        _add_owner(memory.chain, owner)
    memory.set_owner()


def _add_owner(chain: list[dict[str, Any]], owner: Any) -> None:
    """Append an owner, and the objects that it keeps alive."""
    own = internals.describe_owner(owner)
    if own is None:
        chain.extend(owner_links(owner))
        return
    text, kept = own
    chain.append({"kind": type(owner).__name__, "text": text})
    if kept is not None:
        chain.extend(owner_links(kept))


def owner_links(owner: Any) -> list[dict[str, Any]]:
    """Return a link for an object that keeps memory alive, and for each object that it refers to.

    NumPy arrays are followed by their ``base``, memoryviews by their ``obj``.
    """
    links: list[dict[str, Any]] = []
    seen: set[int] = set()
    while owner is not None and id(owner) not in seen:
        seen.add(id(owner))
        link: dict[str, Any] = {"kind": type_name(owner)}
        sizes = _sizes(owner)
        if isinstance(sizes, tuple) and all(isinstance(n, int) for n in sizes):
            link["sizes"] = list(sizes)
        links.append(link)
        array_class: Any = getattr(sys.modules.get("numpy"), "ndarray", ())
        if isinstance(owner, array_class):
            if owner.base is None:
                link["text"] = "it owns its memory"
            owner = owner.base
        elif isinstance(owner, memoryview):
            owner = owner.obj
        else:
            owner = None
    return links


def _sizes(owner: Any) -> Any:
    tensor_class: Any = getattr(sys.modules.get("torch"), "Tensor", ())
    if isinstance(owner, tensor_class):
        from bridge.see.torch_memory import torch_sizes

        return torch_sizes(owner)
    return getattr(owner, "shape", None)
