# SPDX-License-Identifier: Apache-2.0
from bridge.c10.storage cimport READONLY
from bridge.c10.tensor_impl cimport TensorImpl, storage_flags
from bridge.exchange.conversion cimport export_source, remaining_copy
from bridge.exchange.numpy cimport export_array, numpy_array_type, numpy_loaded
from bridge.exchange.torch_api cimport is_tensor, is_torch_tensor, torch_type
from bridge.exchange.torch_export cimport export_torch, export_torch_once
from bridge.exchange.torch_import cimport clone_torch
from bridge.wrapper cimport Wrapper

# (inline, since they are called for every tensor: by `bridge.front`, and for the leaves of trees)


cdef inline object torch_of(object x, object copy, bint writable, bint readonly):
    """Return a torch.Tensor of the memory of `x`; see bridge.to_torch."""
    cdef TensorImpl impl
    if is_tensor(x) or (torch_type() == NULL and is_torch_tensor(x)):
        return clone_torch(x) if copy is True else x
    impl = export_source(x, copy)
    if copy is True:
        copy = remaining_copy(x, impl, copy)
    elif readonly and storage_flags(impl) & READONLY:
        return readonly_torch_of(impl, copy)
    if not isinstance(x, Wrapper):
        return export_torch_once(impl, copy, writable)
    return export_torch(impl, copy, writable)


cdef inline object numpy_of(object x, object copy):
    """Return a numpy.ndarray of the memory of `x`; see bridge.to_numpy."""
    cdef TensorImpl impl
    if numpy_loaded() and isinstance(x, numpy_array_type):
        return copied_array(x) if copy is True else x
    impl = export_source(x, copy)
    array = export_array(impl, "to_numpy")
    if copy is not True or remaining_copy(x, impl, copy) is None:
        return array
    return copied_array(array)


cdef object readonly_torch_of(TensorImpl impl, object copy)
cdef object copied_array(object array)
cdef object wrapper_of(object x, bint caffe2, object copy)
cdef object exporter_of(str name)
cdef tuple BUILT_IN
