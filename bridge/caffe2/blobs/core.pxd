# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject

cimport bridge.c10.python_api   # BRIDGE_LOAD

from bridge.c10.reports cimport is_observed, unlikely
from bridge.caffe2.tensor.tensor cimport Tensor
from bridge.exchange.torch_export cimport imported_tensor

# The contents of a blob: a tensor, or else an object, or nothing.
cdef class BlobCore:
    cdef public Tensor _tensor      # None: the blob holds no tensor
    cdef public bint _own           # the tensor was created here: arrays may be copied into it
    cdef public object _object      # the contents where there is no tensor
    cdef public object _meta        # the TypeMeta of `_object`; None: the blob holds nothing
    cdef public object _handle      # a weak reference to the blob's BlobTensor, or None
    cdef object __weakref__

# Other threads may feed the blob meanwhile, so `_tensor` is read by `tensor_of` only and written by
# `hold_tensor`; from Python by the property, which is as safe.
cdef extern from *:
    """
    #define BRIDGE_TENSOR_OF(blob) BRIDGE_LOAD(blob, _tensor)
    #define BRIDGE_OWN_TENSOR(blob) bridge_own_tensor( \
        (PyObject *)(blob), (PyObject **)&(blob)->_tensor, &(blob)->_own)
    static CYTHON_UNUSED CYTHON_INLINE PyObject *bridge_own_tensor(
            PyObject *blob, PyObject **tensor, int *own) {
        PyObject *found;
        BRIDGE_LOCK(blob);
        found = Py_NewRef(*own ? *tensor : Py_None);
        BRIDGE_UNLOCK();
        return found;
    }
    """
    # Return the tensor that the blob holds, or None.
    Tensor tensor_of "BRIDGE_TENSOR_OF"(BlobCore blob)
    # The same; None if arrays are not to be copied into it.
    Tensor own_tensor_of "BRIDGE_OWN_TENSOR"(BlobCore blob)

cdef inline object torch_of_blob(BlobCore blob, object name, str caller):
    """Return the tensor of a blob as a torch.Tensor, shared: the one that was fed, or another.

    `name` (None: of no name) and `caller` are for its errors.
    """
    cdef Tensor tensor
    cdef PyObject* found
    if not unlikely(is_observed()):
        tensor = tensor_of(blob)
        found = NULL if tensor is None else imported_tensor(tensor)
        if found != NULL:
            return <object>found
    return export_blob(blob, name, caller)

cdef object export_blob(BlobCore blob, object name, str caller)
cdef int hold_tensor(BlobCore blob, Tensor tensor, bint own) except -1
