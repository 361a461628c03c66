# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""A function in C that takes a tensor of any framework, without a copy and without a framework.

    pip install cython setuptools
    cythonize -i examples/native_sum.pyx
    cd examples && python -c "import torch, native_sum; print(native_sum.total(torch.ones(3)))"

`bridge.from_dlpack` takes the argument, whoever made it, and keeps its memory alive; the exchange
table of `at.Tensor` then fills a plain DLTensor, in some nanoseconds and without an object. In C or
C++ it is the same table, DLPackExchangeAPI of dlpack.h: the capsule `__dlpack_c_exchange_api__`
that the class `bridge.at.Tensor` has, under the name "dlpack_exchange_api".
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t

from bridge.dlpack.abi cimport DL_CPU, DL_FLOAT, DLPackExchangeAPI, DLTensor

import bridge

# As the table declares it, and with Cython told that -1 is a Python error.
ctypedef int (*Borrow)(void* py_object, DLTensor* out) except -1

cdef DLPackExchangeAPI* table = <DLPackExchangeAPI*>PyCapsule_GetPointer(
    bridge.at.Tensor.__dlpack_c_exchange_api__, "dlpack_exchange_api")
cdef Borrow borrow = <Borrow>table.dltensor_from_py_object_no_sync


def total(x):
    """Add up all elements of `x`, a tensor of float64 in host memory, of any framework.

    Shares the memory, whatever its strides. Raises BufferError where that cannot be, TypeError for
    other element types, ValueError for other devices.
    """
    cdef DLTensor view
    tensor = bridge.from_dlpack(x, copy=False)
    borrow(<void*>tensor, &view)  # valid as long as `tensor` is
    if view.device.device_type != DL_CPU:
        raise ValueError(f"total adds up host memory, and the tensor is on {tensor.device()}")
    if view.dtype.code != DL_FLOAT or view.dtype.bits != 64:
        raise TypeError(f"total takes float64, not {tensor.dtype()}")
    return added(&view, <char*>view.data + view.byte_offset, 0)


cdef double added(const DLTensor* view, const char* start, int axis) noexcept:
    """What lies from `start` on along the dimensions from `axis` on; strides are in elements."""
    cdef double sum_ = 0
    cdef int64_t i
    if axis == view.ndim:
        return (<const double*>start)[0]
    for i in range(view.shape[axis]):
        sum_ += added(view, start + i * view.strides[axis] * <int64_t>sizeof(double), axis + 1)
    return sum_
