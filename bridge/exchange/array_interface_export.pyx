# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""From TensorImpl to ``__array_interface__``, version 3 (NumPy's array interface protocol)."""

from libc.stdint cimport int64_t, uintptr_t

from weakref import WeakKeyDictionary

from bridge.c10.device cimport host_accessible
from bridge.c10.retained cimport retained_owner
from bridge.c10.storage cimport READONLY
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, device_type_of, seen, storage_flags
from bridge.exchange.numpy cimport most_dimensions

from bridge.c10.errors import EnforceNotMet

# TensorImpl -> the owners of the memory whose addresses were handed out. A consumer keeps the
# tensor and no owner, and the tensor may be given other memory.
cdef object _owners = WeakKeyDictionary()


def export_array_interface(TensorImpl exported) -> dict[str, Any]:
    """Return the description of host memory. Raises AttributeError: the memory is not the host's,
    not allocated, or the interface has no name for its element type."""
    # Not assigned to the argument: where Cython finds no memory for what the generator below
    # shares, it releases the assigned arguments that it has not retained yet.
    cdef TensorImpl impl = seen(exported)
    cdef int64_t itemsize
    cdef char* data
    itemsize = impl.c_dtype.itemsize
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
    return {
        "shape": tuple(impl.sizes()),
        "typestr": dtype.str,
        "data": (<uintptr_t>data, bool(storage_flags(impl) & READONLY)),
        "strides": None if impl.flags & CONTIGUOUS else tuple(
            stride * itemsize for stride in impl.strides()),
        "version": 3,
    }
