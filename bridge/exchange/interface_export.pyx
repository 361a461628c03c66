# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""From TensorImpl to ``__array_interface__`` and ``__cuda_array_interface__``, both version 3."""

from libc.stdint cimport uintptr_t

from weakref import WeakKeyDictionary

from bridge.c10.device cimport host_accessible
from bridge.c10.retained cimport retained_data, retained_owner
from bridge.c10.storage cimport READONLY
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    TensorImpl,
    device_index_of,
    device_type_of,
    is_undefined,
    seen,
    storage_flags,
)
from bridge.dlpack.abi cimport DL_CUDA, DL_CUDA_MANAGED
from bridge.exchange.numpy cimport most_dimensions

from bridge.c10.errors import EnforceNotMet

# TensorImpl -> the owners of the memory whose addresses were handed out. A consumer keeps the
# tensor and no owner, and the tensor may be given other memory.
cdef object _owners = WeakKeyDictionary()


cdef dict _described(TensorImpl impl, object dtype, uintptr_t address):
    """Return what both interfaces say of memory at `address`."""
    return {
        "shape": tuple(impl.sizes()),
        "typestr": dtype.str,
        "data": (address, bool(storage_flags(impl) & READONLY)),
        "strides": None if impl.flags & CONTIGUOUS else tuple(
            [step * impl.c_dtype.itemsize for step in impl.strides()]),
        "version": 3,
    }


def export_array_interface(TensorImpl exported) -> dict[str, Any]:
    """Return the description of host memory. Raises AttributeError: the memory is not the host's,
    not allocated, or the interface has no name for its element type."""
    cdef TensorImpl impl = seen(exported)
    cdef char* data
    try:
        impl.require_defined("__array_interface__")
        dtype = impl.c_dtype.numpy if impl.c_dtype.c_is_pod else None
        # ml_dtypes adds types that have no name of their own
        if dtype is None or dtype.isbuiltin != 1:
            raise AttributeError(
                f"__array_interface__ has no name for elements of {impl.c_dtype}; numpy() and "
                "__dlpack__ have.")
        if impl.ndim > most_dimensions():       # which NumPy 1.26 does not check
            raise AttributeError(
                f"__array_interface__ is for at most {most_dimensions()} dimensions, and the "
                f"tensor has {impl.ndim}.")
        if not host_accessible(device_type_of(impl)):
            raise AttributeError(
                f"__array_interface__ is for host memory, and this tensor is on {impl.device()}.")
        owner = retained_owner(impl, &data, "__array_interface__")
    except (EnforceNotMet, ImportError) as error:
        raise AttributeError(f"__array_interface__: {error}") from error
    owners = _owners.setdefault(exported, [])
    if not any([one is owner for one in owners]):
        owners.append(owner)
    return _described(impl, dtype, <uintptr_t>data)


def export_cuda_interface(TensorImpl exported) -> dict[str, Any]:
    """Return the description of CUDA memory. Raises AttributeError: it is not CUDA memory, or
    the interface has no name for its element type."""
    cdef TensorImpl impl = seen(exported)
    cdef char* data
    if is_undefined(impl) or device_type_of(impl) not in (DL_CUDA, DL_CUDA_MANAGED):
        where = "undefined" if is_undefined(impl) else f"on {impl.device()}"
        raise AttributeError(
            f"__cuda_array_interface__ is for CUDA memory, and this tensor is {where}.")
    if not impl.c_dtype.c_is_pod:
        raise AttributeError("__cuda_array_interface__ is for POD elements.")
    dtype = impl.c_dtype.numpy
    # torch describes bfloat16 as NumPy's "V2"; for other types that NumPy lacks, that is ambiguous.
    # Types of ml_dtypes are not built in: "f1", say, names none of them.
    if dtype is None or not dtype.isbuiltin == 1 and impl.c_dtype.name != "bfloat16":
        raise AttributeError(
            f"__cuda_array_interface__ has no name for elements of {impl.c_dtype}; "
            "__dlpack__ has.")
    data = retained_data(impl, "__cuda_array_interface__")
    from bridge.exchange.streams import current_stream
    # the address of no elements is 0 (version 3)
    description = _described(impl, dtype, <uintptr_t>data if impl.c_numel else 0)
    description["stream"] = current_stream(device_index_of(impl))
    return description
