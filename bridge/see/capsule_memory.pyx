# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""The memory of DLPack capsules, which are not consumed; their fields are checked before use."""

from cpython.pycapsule cimport (
    PyCapsule_CheckExact,
    PyCapsule_GetName,
    PyCapsule_GetPointer,
    PyCapsule_IsValid,
)
from libc.stdint cimport int64_t, uintptr_t

from bridge.c10.layout cimport contiguous_strides
from bridge.c10.type_meta cimport from_dlpack_type
from bridge.dlpack.abi cimport (
    DLPACK_MAJOR,
    DLPACK_READ_ONLY,
    DLManagedTensor,
    DLManagedTensorVersioned,
    DLTensor,
)

from bridge.c10.device import Device
from bridge.see.tensor_memory import Block, TensorMemory, byte_range
from bridge.see.type_names import type_name

cdef enum:
    MAX_NDIM = 64

cdef tuple _NAMES = ("dltensor", "dltensor_versioned")

# No address space is larger, in bytes.
cdef object _ADDRESS_LIMIT = 2**63


def is_capsule(x: object) -> bool:
    """Return whether `x` is a capsule, of DLPack or of anything else."""
    return PyCapsule_CheckExact(x)


def capsule_memory(capsule: object) -> TensorMemory:
    """Return the memory of a DLPack capsule, which stays unconsumed.

    Raises TypeError: it is a capsule of something else.
    """
    memory = TensorMemory()
    memory.chain = [{"kind": type_name(capsule)}]
    memory.keep = capsule
    name = _name(capsule)
    if name is None or name not in _NAMES and not name.startswith("used_dltensor"):
        raise TypeError(f"A capsule with the name {name!r} is not a DLPack tensor.")
    try:
        address, sizes, strides, dtype, device, readonly = _fields(capsule, name)
    except BufferError as error:
        memory.note = str(error)
        memory.unknown = True
        return memory
    memory.device = str(device)
    memory.readonly = readonly
    memory.sizes = sizes
    memory.owner = "the producer of the DLPack capsule"
    if dtype is None:
        memory.note = "The element type of the DLPack tensor is not known."
        memory.unknown = True
        return memory
    memory.dtype, memory.itemsize = dtype.name, dtype.itemsize
    memory.strides = [step * dtype.itemsize for step in strides]
    low, high = byte_range(Block("", address, sizes, memory.strides, dtype.itemsize))
    if low < 0 or high >= _ADDRESS_LIMIT:
        memory.note = f"The DLPack tensor's strides {strides} lead out of memory."
        memory.unknown = True
        return memory
    memory.set_address(address)
    return memory


cdef object _name(object capsule):
    cdef const char* name = PyCapsule_GetName(capsule)
    return None if name == NULL else (<bytes>name).decode("utf-8", "backslashreplace")


cdef tuple _fields(object capsule, str name):
    """Return (address, sizes, strides in elements, TypeMeta or None, device, read-only or None).

    Raises BufferError: the capsule was consumed, or its fields are not valid.
    """
    cdef DLTensor* tensor
    cdef int64_t[MAX_NDIM] packed
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
        raise BufferError("The DLPack capsule has been consumed; it can be imported once only.")
    if tensor.ndim < 0 or tensor.ndim > MAX_NDIM or tensor.ndim and tensor.shape == NULL:
        raise BufferError(f"The DLPack tensor reports {tensor.ndim} dimensions.")
    sizes = [tensor.shape[i] for i in range(tensor.ndim)]
    if tensor.strides == NULL:
        contiguous_strides(tensor.shape, packed, tensor.ndim)
        strides = [packed[i] for i in range(tensor.ndim)]
    else:
        strides = [tensor.strides[i] for i in range(tensor.ndim)]
    try:
        device = Device((tensor.device.device_type, tensor.device.device_id))
    except (TypeError, ValueError) as error:
        raise BufferError(f"The DLPack tensor is on an unknown device: {error}") from error
    dtype = from_dlpack_type(tensor.dtype)
    return (<uintptr_t>tensor.data + tensor.byte_offset, sizes, strides, dtype, device, readonly)
