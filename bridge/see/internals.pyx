# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Read-only access to the internals of TensorImpls, Storages and the owners of buffers."""

from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport uintptr_t

from bridge.c10.allocator cimport DataPtr
from bridge.c10.python_api cimport Py_TYPE
from bridge.c10.storage cimport (
    BORROWED,
    RETAINED,
    Elements,
    ExternalPtr,
    Storage,
    begin_of,
    flags_of,
    nbytes_of,
    owner_of as c_owner_of,
)
from bridge.c10.tensor_impl cimport (
    OWN_ORIGIN,
    TensorImpl,
    impl_flags,
    numel_of,
    origin_of,
    storage_of,
)
from bridge.dlpack.capsule cimport ManagedTensor
from bridge.exchange.arrow_structures cimport ArrowOwner
from bridge.exchange.fresh_memory cimport KeptMemory

import gc

from bridge.see.type_names import class_name

cdef extern from "Python.h":
    bint PyType_IsSubtype(PyTypeObject*, PyTypeObject*)
    Py_ssize_t Py_REFCNT(PyObject*)


def address_of(TensorImpl impl) -> int:
    """Return the address of the first element; 0 if there are no elements.

    Raises EnforceBufferError: the memory is not accessible, for the reason in its message.
    """
    cdef char* data = impl.data("explain")
    return <uintptr_t>data if numel_of(impl) else 0


def buffer_of(Storage storage) -> tuple[int, int]:
    """Return (address, number of bytes) of the buffer, as known when the Storage received it."""
    return <uintptr_t>begin_of(storage), nbytes_of(storage)


def owner_of(Storage storage) -> Any:
    """Return the object that keeps the buffer alive, of a framework or the bridge; or None."""
    return c_owner_of(storage)


def is_borrowed(Storage storage) -> bool:
    """Return whether a framework's tensor owns the memory and could still resize or free it."""
    return (flags_of(storage) & BORROWED) != 0


def owner_refcount(Storage storage) -> int:
    """Return the reference count of the owner of the buffer."""
    owner = c_owner_of(storage)
    return Py_REFCNT(<PyObject*>owner) - 1      # (`owner` is one)


def describe_owner(owner: object) -> tuple[str, Any] | None:
    """Return (a description, the object that it keeps alive or None) of an owner of the bridge.

    None for an owner of another package.
    """
    if isinstance(owner, DataPtr):
        kind = type((<DataPtr>owner).allocator).__name__
        return f"{(<DataPtr>owner).c_nbytes} bytes of the allocator {kind}", None
    if isinstance(owner, Elements):
        return f"{len((<Elements>owner).items)} Python objects", None
    if isinstance(owner, ExternalPtr):
        end = "a deleter is called at the end" if (<ExternalPtr>owner).deleter is not None else \
            "without a deleter"
        return f"external memory, shared by its address; {end}", (<ExternalPtr>owner).keep
    if isinstance(owner, ManagedTensor):
        kind = "versioned" if (<ManagedTensor>owner).versioned else "legacy"
        return f"a {kind} DLPack tensor{_source((<ManagedTensor>owner).source)}, whose deleter " \
               "frees it", None
    if isinstance(owner, KeptMemory):
        return "memory that lives as long as its source", (<KeptMemory>owner).source
    if isinstance(owner, ArrowOwner):
        return f"the memory of a {class_name((<ArrowOwner>owner).source)}, which Arrow's " \
               "release callback frees", None
    return None


def _source(cls):
    """Return which library's class an owner is from, behind its name."""
    if cls is None:
        return ""
    name = class_name(cls)
    package = cls.__module__.partition(".")[0]
    return f" of {name}" if name.startswith(package) else f" of {name} ({package})"


def hidden_tensors(TensorImpl impl) -> set[int]:
    """Return the ids of torch tensors that the bridge created for its own use behind `impl`."""
    cdef Storage storage = storage_of(impl)
    found = set()
    if impl_flags(impl) & OWN_ORIGIN:
        found.add(id(origin_of(impl)))
    if storage is not None and storage.base is not None:
        found.add(id(storage.base))
    if storage is not None and (
            flags_of(storage) & RETAINED or not flags_of(storage) & BORROWED):
        found.add(id(c_owner_of(storage)))      # created to retain a framework's storage
    return found


def caches_torch_tensor(TensorImpl impl) -> bool:
    """Return whether a torch tensor over the bridge's buffer is cached, to export aliases of it."""
    cdef Storage storage = storage_of(impl)
    owner = None if storage is None else c_owner_of(storage)
    if type(owner) is DataPtr and (<DataPtr>owner).memory is not None:
        return False            # the tensor refers to the framework's own storage
    return storage is not None and storage.base is not None


def live_instances(classes: Iterable[type]) -> list[Any]:
    """Return all instances of `classes` and their subclasses that the garbage collector tracks."""
    cdef list found = []
    cdef PyTypeObject* cls
    cdef PyTypeObject* last = NULL
    cdef bint wanted = False
    classes = tuple(classes)
    for one in gc.get_objects():
        cls = Py_TYPE(one)
        if cls != last:
            last = cls
            wanted = False
            for base in classes:
                if PyType_IsSubtype(cls, <PyTypeObject*><PyObject*>base):
                    wanted = True
                    break
        if wanted:
            found.append(one)
    return found
