# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Blobs over the memory of a module's tensors, for the time of a call."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memcmp

from bridge.c10.python_api cimport owned
from bridge.c10.storage cimport BORROWED, UNVERIFIED
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, device_type_of
from bridge.caffe2.blobs.core cimport BlobCore
from bridge.caffe2.tensor.tensor cimport wrap
from bridge.dlpack.abi cimport DL_COMPLEX, DL_CPU, DLDataType, DLTensor
from bridge.exchange.torch_api cimport torch_c, torch_type
from bridge.exchange.torch_description cimport described
from bridge.exchange.torch_export cimport export_torch
from bridge.exchange.torch_import cimport import_torch


def tensors_of(dict keys not None, dict parameters not None, dict buffers not None):
    """Return the parameters and buffers of a module, in the order of the values of `keys`."""
    cdef list found = []
    for key in keys.values():
        found.append(parameters[key] if key in parameters else buffers[key])
    return found


def share(tuple blobs not None, list tensors not None, bint with_grad, bint are_inputs):
    """Share the memory of torch tensors with the blobs; return whether that is possible.

    A blob that has the memory of its tensor, with its type and sizes, stays as it is. False: a
    tensor is of a subclass, is not on the CPU, not row-major, or, if `with_grad`, requires
    gradients. are_inputs: the tensors may stand for their negatives.
    """
    cdef BlobCore blob
    cdef Py_ssize_t i
    for i in range(len(blobs)):
        blob = <BlobCore>blobs[i]
        tensor = tensors[i]
        if not _is_plain(tensor, with_grad):
            return False
        if blob._tensor is not None and _has_memory_of(
                tensor, blob._tensor.impl, are_inputs):
            continue
        if not _share(blob, tensor, not are_inputs) or not blob._tensor.impl.flags & CONTIGUOUS:
            return False
    return True


def have_memory_of(tuple blobs not None, list tensors not None):
    """Return whether the blobs have the memory, types and sizes of row-major tensors."""
    cdef BlobCore blob
    cdef Py_ssize_t i
    for i in range(len(blobs)):
        blob = <BlobCore>blobs[i]
        if blob._tensor is None or not _is_plain(tensors[i], False) \
                or not _has_memory_of(tensors[i], blob._tensor.impl, False):
            return False
    return True


def clear(tuple blobs not None):
    """Release what the blobs hold."""
    cdef BlobCore blob
    for blob in blobs:
        blob._tensor = None


def put_buffers(tuple blobs not None, list tensors not None):
    """Share the memory of new torch tensors, unless None, with the blobs, for operators to write.
    """
    cdef Py_ssize_t i
    for i in range(len(blobs)):
        if tensors[i] is not None:
            _put(<BlobCore>blobs[i], tensors[i])


def take_results(tuple blobs not None):
    """Return the torch tensors of the blobs, or None; they hold nothing afterwards."""
    cdef list found = []
    cdef BlobCore blob
    for blob in blobs:
        found.append(None if blob._tensor is None else export_torch(blob._tensor.impl))
    for blob in blobs:
        blob._tensor = None
    return found


cdef bint _is_plain(object tensor, bint with_grad) except -1:
    if torch_c.dlpack == NULL or (
            type(tensor) is not <object>torch_type()
            and type(tensor) is not <object>torch_c.parameter_type):
        return False
    return not with_grad or not owned(
        torch_c.requires_grad(<PyObject*>tensor, torch_c.requires_grad_closure))


cdef bint _has_memory_of(object tensor, TensorImpl impl, bint may_be_negated) except -1:
    """Return whether `impl` is row-major and has the memory, type and sizes of a tensor."""
    cdef object _kept
    cdef DLTensor now
    cdef int64_t step = 1
    cdef bint is_single = True
    cdef int i
    if not impl.flags & CONTIGUOUS:
        return False
    if (_kept := described(tensor, &now)) is None:
        return False
    if <char*>now.data != impl.storage.data or now.ndim != impl.ndim \
            or now.device.device_type != DL_CPU \
            or memcmp(&now.dtype, &impl.c_dtype.c_dlpack, sizeof(DLDataType)) != 0:
        return False
    for i in range(now.ndim - 1, -1, -1):
        if now.shape[i] != impl.c_sizes[i] or (now.shape[i] > 1 and now.strides[i] != step):
            return False
        is_single = is_single and now.shape[i] == 1
        step *= max(now.shape[i], 1)
    # A parameter that stands for its negative is the imaginary part of complex elements, which is
    # row-major only if it is a single one.
    return not (may_be_negated or is_single) \
        or not owned(torch_c.is_neg(<PyObject*>tensor, NULL))


cdef bint _share(BlobCore blob, object tensor, bint checks) except -1:
    # Another tensor of the same memory: what happens to the caller's does not concern the blob.
    alias = owned(torch_c.data(<PyObject*>tensor, torch_c.data_closure))
    cdef TensorImpl impl = import_torch(alias, None)
    if device_type_of(impl) != DL_CPU or impl.origin is not alias \
            or impl.c_dtype.c_dlpack.code == DL_COMPLEX:
        return False
    if checks:
        impl.storage.check()
    # Each call looks at the tensor itself, so that its blob needs no further checks.
    impl.storage.flags &= ~(BORROWED | UNVERIFIED)
    blob._own = False
    blob._tensor = wrap(impl)
    return True


cdef int _put(BlobCore blob, object tensor) except -1:
    cdef TensorImpl impl = import_torch(tensor, None)
    impl.storage.flags &= ~(BORROWED | UNVERIFIED)
    blob._own = False
    blob._tensor = wrap(impl)
    return 0
