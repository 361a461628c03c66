# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""What lies behind TensorImpls, Storages and capsules, read and left as it is."""

from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport (
    PyCapsule_CheckExact,
    PyCapsule_GetName,
    PyCapsule_GetPointer,
    PyCapsule_IsValid,
)
from libc.stdint cimport int64_t, uintptr_t

from bridge.c10.allocator cimport DataPtr
from bridge.c10.layout cimport contiguous_strides
from bridge.c10.storage cimport BORROWED, RETAINED, READONLY, Elements, ExternalPtr, Storage
from bridge.c10.tensor_impl cimport OWN_ORIGIN, TensorImpl
from bridge.c10.type_meta cimport from_dlpack_type
from bridge.dlpack.abi cimport (
    DLPACK_MAJOR,
    DLPACK_READ_ONLY,
    DLManagedTensor,
    DLManagedTensorVersioned,
    DLTensor,
)
from bridge.dlpack.capsule cimport ManagedTensor
from bridge.wrapper cimport Wrapper

import gc

from bridge.c10.device import Device

cdef extern from "Python.h":
    PyTypeObject* Py_TYPE(PyObject*)
    bint PyType_IsSubtype(PyTypeObject*, PyTypeObject*)
    Py_ssize_t Py_REFCNT(PyObject*)


def address_of(TensorImpl impl):
    """The address of the first element, 0 where there are none.

    Raises EnforceBufferError: they are not all there to read, and why.
    """
    cdef char* data = impl.data("explain")
    return <uintptr_t>data if impl.c_numel else 0


def buffer_of(Storage storage):
    """(address, bytes) of the buffer, as it was when the Storage got it."""
    return <uintptr_t>storage.data, storage.c_nbytes


def is_readonly(Storage storage):
    """Whether the memory must not be written."""
    return (storage.flags & READONLY) != 0


def owner_of(Storage storage):
    """What keeps the buffer: a framework's object, or one of ours; None: there is no buffer."""
    return storage.ctx


def is_lent(Storage storage):
    """Whether a framework's tensor holds the memory, and could still let go of it."""
    return (storage.flags & BORROWED) != 0


def references(Storage storage):
    """How many references there are to the owner of the buffer."""
    return Py_REFCNT(<PyObject*>storage.ctx)


def kept_by(owner):
    """(what it is, what it keeps alive or None) of an owner that is of the bridge."""
    if isinstance(owner, DataPtr):
        return f"{(<DataPtr>owner).c_nbytes} bytes of {_named((<DataPtr>owner).allocator)}", None
    if isinstance(owner, Elements):
        return f"{len((<Elements>owner).items)} Python objects", None
    if isinstance(owner, ExternalPtr):
        told = "its deleter is told" if (<ExternalPtr>owner).deleter is not None else \
            "nobody is told"
        return (f"memory from outside, shared by its address; {told} when it may go",
                (<ExternalPtr>owner).keep)
    if isinstance(owner, ManagedTensor):
        kind = "versioned" if (<ManagedTensor>owner).versioned else "legacy"
        return f"a {kind} DLPack tensor, whose deleter frees it", None
    return None


def _named(allocator):
    return f"the allocator {type(allocator).__name__}"


def hidden(TensorImpl impl):
    """The ids of tensors that the bridge made for itself behind `impl`."""
    cdef Storage storage = impl.storage
    found = set()
    if impl.flags & OWN_ORIGIN:
        found.add(id(impl.origin))
    if storage is not None and (storage.flags & RETAINED or not storage.flags & BORROWED):
        found.add(id(storage.ctx))      # that which was made to pin a framework's storage
    return found


def lends(TensorImpl impl):
    """Whether a framework's tensor is kept, to hand out aliases of it, that holds our buffer."""
    owner = impl.storage.ctx if impl.storage is not None else None
    if type(owner) is DataPtr and (<DataPtr>owner).memory is not None:
        return False            # the tensor holds the framework's own storage
    return (impl.flags & OWN_ORIGIN) != 0


def living(classes):
    """All objects of `classes` and their subclasses that the garbage collector knows."""
    cdef list found = []
    cdef PyTypeObject* cls
    cdef PyTypeObject* last = NULL
    cdef bint wanted = False
    classes = tuple(classes)
    for one in gc.get_objects():
        cls = Py_TYPE(<PyObject*>one)
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


def impl_of(Wrapper wrapper):
    """The TensorImpl of a wrapper."""
    return wrapper.impl


def is_capsule(x):
    """Whether `x` is a capsule, of DLPack or of anything else."""
    return PyCapsule_CheckExact(x)


def peeked(capsule):
    """What a DLPack capsule says, which stays unconsumed.

    (address, sizes, strides in elements, TypeMeta or None, device, read-only or None).
    Raises BufferError: it is none, was consumed, or does not say what can be.
    """
    cdef DLTensor* tensor
    cdef const char* name = PyCapsule_GetName(capsule)
    cdef int64_t[64] packed
    cdef int i
    readonly = None
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        managed = PyCapsule_GetPointer(capsule, "dltensor_versioned")
        version = (<DLManagedTensorVersioned*>managed).version.major
        if version != DLPACK_MAJOR:
            raise BufferError(f"The DLPack tensor is of major version {version}.")
        readonly = ((<DLManagedTensorVersioned*>managed).flags & DLPACK_READ_ONLY) != 0
        tensor = &(<DLManagedTensorVersioned*>managed).dl_tensor
    elif PyCapsule_IsValid(capsule, "dltensor"):
        managed = PyCapsule_GetPointer(capsule, "dltensor")
        tensor = &(<DLManagedTensor*>managed).dl_tensor
    else:
        shown = None if name == NULL else (<bytes>name).decode("utf-8", "backslashreplace")
        if shown is not None and shown.startswith("used_dltensor"):
            raise BufferError("The DLPack capsule has been consumed; a capsule is taken once.")
        raise BufferError(f"The capsule's name is {shown!r}, so it is not one of DLPack.")
    if tensor.ndim < 0 or tensor.ndim > 64 or tensor.ndim and tensor.shape == NULL:
        raise BufferError(f"The DLPack tensor says that it has {tensor.ndim} dimensions.")
    sizes = [tensor.shape[i] for i in range(tensor.ndim)]
    if tensor.strides == NULL:
        contiguous_strides(tensor.shape, packed, tensor.ndim)
        strides = [packed[i] for i in range(tensor.ndim)]
    else:
        strides = [tensor.strides[i] for i in range(tensor.ndim)]
    try:
        device = Device((tensor.device.device_type, tensor.device.device_id))
    except (TypeError, ValueError) as error:
        raise BufferError(f"The DLPack tensor is on no device there is: {error}") from error
    dtype = from_dlpack_type(tensor.dtype)
    return (<uintptr_t>tensor.data + tensor.byte_offset, sizes, strides, dtype, device, readonly)
