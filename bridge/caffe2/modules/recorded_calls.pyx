# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""RecordedCalls: the torch calls of a module's functions, made again where gradients are wanted."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from bridge.c10.python_api cimport owned
from bridge.caffe2.execution.calls cimport Call
from bridge.caffe2.execution.torch_state cimport is_neutral, is_observed_now
from bridge.dlpack.abi cimport DL_COMPLEX, DLTensor
from bridge.exchange.torch_api cimport is_plain, torch_c
from bridge.exchange.torch_description cimport described

cdef enum:
    MOST_DIMS = 8
    FIELDS = 4 + 2 * MOST_DIMS      # of a tensor, in its part of a signature

cdef object _is_grad_enabled = None
cdef object _is_deterministic = None


def gradient_signature(
    list inputs not None, dict keys not None, dict parameters not None, dict buffers not None,
):
    """Return what decides about the calls of a module's functions, where gradients are wanted.

    That is types, sizes, strides and devices of inputs and parameters, and which of them require
    gradients. None: none does, or they are not plain tensors, or torch has settings or observers
    that change what is computed.
    """
    global _is_grad_enabled, _is_deterministic
    cdef Py_ssize_t n = len(inputs) + len(keys), i = 0
    cdef int64_t* fields
    cdef bint wants = False
    if torch_c.dlpack == NULL:
        return None
    if _is_grad_enabled is None:
        import torch

        _is_grad_enabled = torch.is_grad_enabled
        _is_deterministic = torch.are_deterministic_algorithms_enabled
    if not _is_grad_enabled() or is_observed_now() or not is_neutral():
        return None
    fields = <int64_t*>PyMem_Malloc((n * FIELDS + 1) * sizeof(int64_t))
    if fields == NULL:
        raise MemoryError()
    try:
        fields[n * FIELDS] = _is_deterministic()
        for tensor in inputs:
            if not _describe(tensor, &fields[i * FIELDS], &wants):
                return None
            i += 1
        for key in keys.values():
            tensor = parameters[key] if key in parameters else buffers[key]
            if not _describe(tensor, &fields[i * FIELDS], &wants):
                return None
            i += 1
        if not wants:
            return None
        return PyBytes_FromStringAndSize(<char*>fields, (n * FIELDS + 1) * sizeof(int64_t))
    finally:
        PyMem_Free(fields)


cdef bint _describe(object tensor, int64_t* fields, bint* wants) except -1:
    cdef object _kept
    cdef DLTensor now
    cdef bint requires_grad
    cdef int i
    if not is_plain(tensor) or (_kept := described(tensor, &now)) is None:
        return False
    if now.ndim > MOST_DIMS or now.dtype.code == DL_COMPLEX \
            or owned(torch_c.is_neg(<PyObject*>tensor, NULL)):
        return False
    requires_grad = owned(
        torch_c.requires_grad(<PyObject*>tensor, torch_c.requires_grad_closure))
    wants[0] = wants[0] or requires_grad
    fields[0] = now.ndim
    fields[1] = now.dtype.code | now.dtype.bits << 8 | now.dtype.lanes << 16
    fields[2] = now.device.device_type
    fields[3] = now.device.device_id << 1 | requires_grad
    for i in range(MOST_DIMS):
        fields[4 + i] = now.shape[i] if i < now.ndim else 0
        fields[4 + MOST_DIMS + i] = now.strides[i] if i < now.ndim else 0
    return True


cdef class RecordedCalls:
    """Calls of torch functions on a module's inputs and parameters, which have the first slots.

    calls: a list of Call. slots: their number. results: the slots of the outputs.
    """

    cdef list calls
    cdef int slots
    cdef tuple results

    def __init__(self, list calls not None, int slots, tuple results not None):
        self.calls = calls
        self.slots = slots
        self.results = results

    def __call__(
        self, list inputs not None, dict keys not None, dict parameters not None,
        dict buffers not None,
    ):
        """Return the outputs."""
        cdef list values = [None] * self.slots
        cdef Py_ssize_t i = 0
        cdef Call call
        cdef object index
        for tensor in inputs:
            values[i] = tensor
            i += 1
        for key in keys.values():
            values[i] = parameters[key] if key in parameters else buffers[key]
            i += 1
        for call in self.calls:
            call.make(values)
            if call.last is not None:
                call.forget(values)
        return [values[<Py_ssize_t>index] for index in self.results]
