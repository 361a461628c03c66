# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""The addresses of torch tensors, for kernels.

A tape passes a `Memory`, which has the address; see `bridge.caffe2.execution.tape`.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uintptr_t

from bridge.c10.python_api cimport take_pending
from bridge.caffe2.execution.tape cimport Memory
from bridge.dlpack.abi cimport DLTensor
from bridge.exchange.torch_api cimport torch_c

from bridge.c10.errors import EnforceNotMet


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
