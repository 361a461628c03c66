# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, freethreading_compatible=True
"""A compiled function that takes a tensor of any framework without a copy.

    pip install cython setuptools
    cythonize -i examples/native_sum.pyx
    cd examples && python -c "import torch, native_sum; print(native_sum.total(torch.ones(3)))"

`bridge.from_dlpack` imports the argument and keeps its memory alive. The exchange table of
`at.Tensor` then fills a DLTensor in some nanoseconds, without creating an object. C and C++ use the
same table, DLPackExchangeAPI of dlpack.h: the attribute `__dlpack_c_exchange_api__` of the class
`bridge.at.Tensor` is a capsule of it with the name "dlpack_exchange_api".
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t

from bridge.dlpack.abi cimport DL_CPU, DL_FLOAT, DLPackExchangeAPI, DLTensor

import bridge

# As declared in the table, and -1 means that a Python exception is set.
ctypedef int (*Borrow)(void* py_object, DLTensor* out) except -1

cdef DLPackExchangeAPI* table = <DLPackExchangeAPI*>PyCapsule_GetPointer(
    bridge.at.Tensor.__dlpack_c_exchange_api__, "dlpack_exchange_api")
cdef Borrow borrow = <Borrow>table.dltensor_from_py_object_no_sync


def total(x):
    """Return the sum of `x`, a float64 tensor of any framework and strides, in host memory.

    The memory is shared. Raises BufferError if it cannot be shared, TypeError for other element
    types, ValueError for other devices.
    """
    cdef DLTensor view
    tensor = bridge.from_dlpack(x, copy=False)
    borrow(<void*>tensor, &view)  # valid while `tensor` exists
    if view.device.device_type != DL_CPU:
        raise ValueError(f"total requires host memory, and the tensor is on {tensor.device()}")
    if view.dtype.code != DL_FLOAT or view.dtype.bits != 64:
        raise TypeError(f"total takes float64, not {tensor.dtype()}")
    return sum_from(&view, <char*>view.data + view.byte_offset, 0)


cdef double sum_from(const DLTensor* view, const char* start, int axis) noexcept:
    """Return the sum over the dimensions from `axis` on, of the elements from `start` on."""
    cdef double sum_ = 0
    cdef int64_t i
    if axis == view.ndim:
        return (<const double*>start)[0]
    for i in range(view.shape[axis]):
        # DLPack counts strides in elements.
        sum_ += sum_from(view, start + i * view.strides[axis] * <int64_t>sizeof(double), axis + 1)
    return sum_
