# SPDX-License-Identifier: Apache-2.0
"""Find the memory of a tensor of any framework; nothing is copied, and it stays as it is."""

from __future__ import annotations

import sys

from bridge.c10.errors import EnforceBufferError, EnforceNotMet
from bridge.c10.storage import Storage
from bridge.c10.tensor_impl import TensorImpl
from bridge.exchange.import_tensor import import_tensor
from bridge.see import inside
from bridge.see.memory import Block, Memory, extent, space_of
from bridge.see.naming import kind_of
from bridge.wrapper import Wrapper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["links_of", "of_impl", "read"]

# TensorFlow's types without plain memory; its own DLPack ends the process on them.
_OPAQUE = ("string", "resource", "variant")
# Classes of what stands for a tensor while a function is traced.
_STAND_INS = {"Tracer", "SymbolicTensor", "KerasTensor"}


def read(x: Any) -> Memory:
    """Find the memory of `x`.

    Raises TypeError: it is no tensor.
    """
    if isinstance(x, Wrapper):
        memory = of_impl(inside.impl_of(x))
        memory.chain.insert(0, {"kind": kind_of(x)})
        return memory
    if isinstance(x, TensorImpl):
        return of_impl(x)
    if isinstance(x, Storage):
        return _of_storage(x)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, getattr(torch, "Tensor", ())):
        from bridge.see.read_torch import of_torch

        return of_torch(x)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(x, getattr(numpy, "ndarray", ())):
        return _of_array(x)
    if inside.is_capsule(x):
        from bridge.see.read_capsule import of_capsule

        return of_capsule(x)
    held = _of_blob(x)
    return _of_producer(x) if held is None else held


def of_impl(impl: TensorImpl) -> Memory:
    """Find the memory of a TensorImpl."""
    memory = Memory()
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
    memory.readonly = inside.is_readonly(storage)
    memory.keep = (impl, inside.owner_of(storage))
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
        address = inside.address_of(impl)
    except EnforceBufferError as error:
        memory.note = error.message
        _follow(memory, storage)
        return memory
    _follow(memory, storage)
    if dtype.is_pod:
        begin, nbytes = inside.buffer_of(storage)
        if begin and nbytes:
            memory.buffer = (space_of(memory.device), begin, begin + nbytes)
        memory.found(address)
    elif impl.numel():
        # Python objects: the elements of one list, counted and not addressed
        memory.note = f"Elements of {dtype} are Python objects, which have no address in common."
        owner = inside.owner_of(storage)
        space = f"elements of {id(owner):#x}"
        first = id(owner) + impl.storage_offset()
        memory.blocks = [Block(space, first, memory.sizes, list(impl.strides()), 1)]
    return memory


def _of_storage(storage: Storage) -> Memory:
    memory = Memory()
    begin, nbytes = inside.buffer_of(storage)
    memory.device = str(storage.device())
    memory.dtype = storage.dtype().name if storage.dtype() else None
    memory.itemsize = 1
    memory.sizes, memory.strides = [nbytes], [1]
    memory.readonly = inside.is_readonly(storage)
    memory.keep = inside.owner_of(storage)
    try:
        storage.data_ptr()
    except EnforceNotMet as error:
        memory.note = error.message
    _follow(memory, storage)
    if memory.note is None and (not storage.dtype() or storage.dtype().is_pod):
        memory.found(begin)
    return memory


def _follow(memory: Memory, storage: Storage) -> None:
    """Lengthen the chain by a Storage and what owns its buffer."""
    begin, nbytes = inside.buffer_of(storage)
    plain = not storage.dtype() or storage.dtype().is_pod
    memory.chain.append(
        {
            "kind": "Storage",
            "address": begin if memory.note is None and plain else None,
            "nbytes": nbytes,
            "device": str(storage.device()),
            "use_count": storage.use_count(),
            "readonly": inside.is_readonly(storage),
        }
    )
    owner = inside.owner_of(storage)
    if owner is None:
        memory.chain.append({"kind": "nothing", "text": "not allocated"})
        memory.owner = None
        return
    tensor_class: Any = getattr(sys.modules.get("torch"), "Tensor", ())
    if isinstance(owner, tensor_class) and not inside.is_lent(storage):
        # a tensor that the bridge made to hold on to it
        memory.chain.append({"kind": "torch storage", "text": "pinned, it cannot be resized"})
        _own_last(memory)
        return
    _own(memory, owner)


def _own(memory: Memory, owner: Any) -> None:
    """Lengthen the chain by an owner and what that in its turn keeps."""
    ours = inside.kept_by(owner)
    if ours is None:
        memory.chain.extend(links_of(owner))
    else:
        text, kept = ours
        memory.chain.append({"kind": type(owner).__name__, "text": text})
        if kept is not None:
            memory.chain.extend(links_of(kept))
    _own_last(memory)


def links_of(owner: Any) -> list[dict[str, Any]]:
    """Name an object that keeps memory, and what it keeps it by, down to the last."""
    links: list[dict[str, Any]] = []
    seen: set[int] = set()
    while owner is not None and id(owner) not in seen:
        seen.add(id(owner))
        link: dict[str, Any] = {"kind": kind_of(owner)}
        sizes = _shape_of(owner)
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


def _shape_of(owner: Any) -> Any:
    tensor_class: Any = getattr(sys.modules.get("torch"), "Tensor", ())
    if isinstance(owner, tensor_class):
        from bridge.see.read_torch import shape_of

        return shape_of(owner)
    return getattr(owner, "shape", None)


def _of_array(array: Any) -> Memory:
    """Find the memory of a NumPy array, of any type, byte order and alignment."""
    memory = Memory()
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
    memory.chain = links_of(array)
    memory.chain[0].update(dtype=memory.dtype, strides=memory.strides)
    _own_last(memory)
    whole = Block("host", root.ctypes.data, root.shape, root.strides, root.dtype.itemsize)
    memory.buffer = ("host", *extent(whole))
    memory.found(array.ctypes.data)
    return memory


def _own_last(memory: Memory) -> None:
    """Take the last link of the chain for the owner."""
    last = memory.chain[-1]
    memory.owner = f"{last['kind']}: {last['text']}" if "text" in last else last["kind"]


def _of_blob(x: Any) -> Memory | None:
    """Find the memory of what a blob holds; None where `x` is no blob."""
    from bridge.caffe2.blobs.blob import Blob
    from bridge.caffe2.blobs.blob_tensor import BlobTensor

    if isinstance(x, BlobTensor):
        held = x._tensor
    elif isinstance(x, Blob):
        if x._tensor is None:
            raise TypeError(f"{x!r} holds no tensor.")
        held = x._tensor
    else:
        return None
    memory = read(held)
    memory.chain.insert(0, {"kind": kind_of(x)})
    return memory


def _of_producer(x: Any) -> Memory:
    """Find the memory of any other tensor, by importing it for the moment."""
    kind = kind_of(x)
    opaque = getattr(getattr(x, "dtype", None), "name", None) in _OPAQUE
    refusal: BufferError | None = None
    impl = None
    if _has_none(x):
        refusal = BufferError(f"A {kind} has no memory here: it was deleted, or is being traced.")
    elif not (opaque and kind.startswith("tf.")):
        try:
            impl = import_tensor(x, None, False)
        except BufferError as error:
            refusal = error
    if impl is None:
        return _described(x, kind, refusal)
    memory = of_impl(impl)
    memory.keep = (memory.keep, x)
    memory.chain = [{"kind": kind, "sizes": memory.sizes, "dtype": memory.dtype}]
    memory.owner = kind
    if isinstance(x, memoryview):
        memory.chain.extend(links_of(x.obj))
        _own_last(memory)
    return memory


def _described(x: Any, kind: str, refusal: BufferError | None) -> Memory:
    """What a tensor whose memory cannot be had says of itself."""
    memory = Memory()
    if refusal is None:
        memory.note = f"A {kind} of {x.dtype.name} has no plain memory."
        memory.unknown = True
    else:
        memory.note = refusal.message if isinstance(refusal, EnforceNotMet) else str(refusal)
        memory.unknown = not _has_none(x)
    try:
        shape = getattr(x, "shape", None)  # of a memoryview that was released there is none
        memory.sizes = [int(n) for n in shape] if shape is not None else [len(x)]
    except (TypeError, ValueError, RuntimeError, AttributeError):
        memory.sizes = None
    if memory.unknown:
        _of_packed(x, memory)
    dtype = getattr(x, "dtype", getattr(x, "type", None))
    memory.dtype = None if dtype is None else str(getattr(dtype, "name", dtype))
    memory.chain = [{"kind": kind, "sizes": memory.sizes, "dtype": memory.dtype}]
    memory.owner = kind
    return memory


def _of_packed(x: Any, memory: Memory) -> None:
    """Find the bytes of a tensor whose elements are packed: they can be told, if not viewed."""
    array_class: Any = getattr(sys.modules.get("jax"), "Array", ())
    if memory.sizes is not None and 0 in memory.sizes:
        memory.unknown = False
    elif isinstance(x, array_class) and len(x.devices()) == 1:
        device = next(iter(x.devices()))
        if device.platform == "cpu":
            begin, nbytes = x.unsafe_buffer_pointer(), x.on_device_size_in_bytes()
            memory.blocks = [Block(space_of("cpu"), begin, (nbytes,), (1,), 1)]
            memory.unknown = False


def _has_none(x: Any) -> bool:
    """Return whether a tensor has no elements: it stands for others to come, or was deleted."""
    if {cls.__name__ for cls in type(x).__mro__} & _STAND_INS:
        return True
    deleted = getattr(x, "is_deleted", None)
    return callable(deleted) and bool(deleted())
