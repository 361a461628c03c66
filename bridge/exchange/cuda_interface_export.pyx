# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""From TensorImpl to ``__cuda_array_interface__``, version 3."""

from libc.stdint cimport int64_t, uintptr_t

from bridge.c10.retained cimport retained_data
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


def export_cuda_interface(TensorImpl exported) -> dict[str, Any]:
    """Return the description of CUDA memory. Raises AttributeError: it is not CUDA memory, or
    the interface has no name for its element type."""
    # Not assigned to the argument: as in array_interface_export.pyx.
    cdef TensorImpl impl = seen(exported)
    cdef char* data
    cdef int64_t itemsize
    itemsize = impl.c_dtype.itemsize
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
    return {
        "shape": tuple(impl.sizes()),
        "typestr": dtype.str,
        # the address of no elements is 0 (version 3)
        "data": (<uintptr_t>data if impl.c_numel else 0, bool(storage_flags(impl) & READONLY)),
        "strides": None if impl.flags & CONTIGUOUS else tuple(
            stride * itemsize for stride in impl.strides()),
        "version": 3,
        "stream": current_stream(device_index_of(impl)),
    }
