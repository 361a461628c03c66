# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Which torch tensors kernels take, and the addresses of these.

A tape passes a `Memory`, which has the address; see `bridge.caffe2.execution.tape`.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uintptr_t

from bridge.c10.python_api cimport Py_TYPE, take_pending
from bridge.caffe2.execution.tape cimport Memory
from bridge.caffe2.operators.base.row_memory cimport row_at
from bridge.dlpack.abi cimport DL_CPU, DLTensor
from bridge.exchange.torch_api cimport load_torch, torch_c
from bridge.exchange.torch_layout cimport described, has_lazy_bit
from bridge.exchange.torch_settings cimport is_observed

from torch import is_grad_enabled
from torch._C import _is_any_autocast_enabled

from bridge.c10.errors import EnforceIndexError, EnforceNotMet

load_torch()


def are_plain(tuple tensors not None: tuple[Any, ...], object dtype) -> bool:
    """Return whether torch tensors of this type are row-major on the CPU, and nobody looks on.

    That is nobody traces, transforms or casts what is computed, or wants its gradients.
    """
    cdef DLTensor now
    cdef object x, _kept
    cdef bint with_gradients = is_grad_enabled()
    for x in tensors:
        if (Py_TYPE(x) != torch_c.tensor_type and Py_TYPE(x) != torch_c.parameter_type) \
                or x.dtype is not dtype or (with_gradients and x.requires_grad) \
                or (_kept := described(x, &now)) is None \
                or now.device.device_type != DL_CPU or not is_row_major(&now) \
                or has_lazy_bit(x, False):
            return False
    return not is_observed() and not _is_any_autocast_enabled()


cdef bint is_row_major(const DLTensor* x) noexcept:
    cdef int64_t step = 1
    cdef bint found = True
    cdef int i
    for i in range(x.ndim - 1, -1, -1):
        if x.shape[i] == 0:
            return True
        found &= x.shape[i] == 1 or x.strides[i] == step
        step *= x.shape[i]
    return found


cdef float* floats_of(object tensor, int64_t numel) except? NULL:
    """Return the address of the elements of a tensor, for a kernel that accesses `numel` of them.

    NULL if there are none. Raises EnforceNotMet: it has another number of elements, since another
    thread gave the blob other sizes while the operator runs.
    """
    cdef DLTensor now
    cdef int64_t there = 1
    cdef int i
    if type(tensor) is Memory:
        if (<Memory>tensor).numel == numel:
            return <float*>(<Memory>tensor).data
        tensor = (<Memory>tensor).owner
    if torch_c.dlpack == NULL:
        there = tensor.numel()
        now.data = <void*><uintptr_t>tensor.data_ptr()
    elif torch_c.dlpack.dltensor_from_py_object_no_sync(<PyObject*>tensor, &now) != 0:
        raise EnforceNotMet("A tensor has no memory that a kernel can read.") from take_pending()
    else:
        for i in range(now.ndim):
            there *= now.shape[i]
    if there != numel:
        raise EnforceNotMet(
            f"A tensor of sizes {list(tensor.shape)} was to have {numel} elements: another thread "
            "changed a blob of the operator while it ran.")
    return <float*>now.data


cdef int check_rows(
    const void *indices, bint wide, int64_t n, int64_t first, int64_t rows
) except -1:
    """Raise EnforceNotMet, also an IndexError, unless indices are from `first` to below `rows`."""
    cdef const int64_t *longs = <const int64_t *>indices
    cdef const int32_t *ints = <const int32_t *>indices
    cdef int64_t i
    cdef bint fits = True
    if wide:
        for i in range(n):
            fits &= (longs[i] >= first) & (longs[i] < rows)
    else:
        for i in range(n):
            fits &= (ints[i] >= first) & (ints[i] < rows)
    if not fits:
        given = sorted({row_at(indices, wide, i) for i in range(n)})
        raise EnforceIndexError(
            f"An index of {given} is out of range for {rows} rows along axis 0.",
            condition="0 <= idx && idx < N")
    return 0
