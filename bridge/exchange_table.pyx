# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""DLPack's C exchange table, which both tensor classes provide (DLPack 1.3, DLPackExchangeAPI).

Its functions are called from C, all but the allocator with the GIL. On failure they return -1
with an exception pending; the allocator calls `set_error`.
"""

from cpython.exc cimport PyErr_SetObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t, int64_t, uintptr_t

from bridge.c10.device cimport device_of
from bridge.c10.reports cimport is_observed, outermost, report_shared, run_observed, unlikely
from bridge.c10.storage cimport READONLY
from bridge.c10.tensor_impl cimport TensorImpl, allocated, is_undefined, storage_flags
from bridge.c10.type_meta cimport TypeMeta, from_dlpack_type
from bridge.dlpack.abi cimport (
    DLPACK_IS_COPIED,
    DLPACK_MAJOR,
    DLPACK_MINOR,
    DLManagedTensorVersioned,
    DLPackExchangeAPI,
    DLSetError,
    DLTensor,
    has_streams,
)
from bridge.dlpack.capsule cimport ManagedTensor, own_versioned
from bridge.exchange.consumers cimport caller, is_tvm_ffi
from bridge.exchange.dlpack_export cimport borrow, export_versioned
from bridge.exchange.dlpack_import cimport adopt_managed
from bridge.exchange.torch_export cimport fit_for_torch
from bridge.wrapper cimport Wrapper

from bridge.c10.reports import Label


cdef int _from_object(void* obj, DLManagedTensorVersioned** out) noexcept:
    cdef TensorImpl impl
    try:
        impl = (<Wrapper?><object>obj).impl
        if not is_undefined(impl) and storage_flags(impl) & READONLY and is_tvm_ffi(caller):
            if unlikely(is_observed()) and outermost():
                impl = run_observed(
                    "exchange table", <object>obj, "DLPack tensor", _copied, (impl,))
            else:
                impl = _copied(impl)
            out[0] = export_versioned(impl, DLPACK_IS_COPIED)
            return 0
        out[0] = export_versioned(impl, 0)
        if unlikely(is_observed()):
            report_shared("exchange table", <object>obj, "DLPack tensor", _nbytes(<Wrapper>obj))
        return 0
    except BaseException as error:
        _set_error(error)
        return -1


def _copied(TensorImpl impl):
    return fit_for_torch(impl, None, False, "tvm-ffi", False)


cdef int _borrow_object(void* obj, DLTensor* out) noexcept:
    try:
        borrow((<Wrapper?><object>obj).impl, out)
        if unlikely(is_observed()):
            report_shared("exchange table", <object>obj, "DLTensor", _nbytes(<Wrapper>obj))
        return 0
    except BaseException as error:
        _set_error(error)
        return -1


cdef int import_object(
    DLManagedTensorVersioned* managed, void** out, object cls, str name,
) noexcept:
    """Set `out` to a new reference to a tensor of the class `cls`, whose public name is `name`.

    What a class's ``managed_tensor_to_py_object_no_sync`` does; it takes over `managed`.
    """
    try:
        if unlikely(is_observed()) and outermost():
            tensor = run_observed("exchange table", Label("DLPack tensor"), name, _imported,
                                  (own_versioned(managed), cls))
        else:
            tensor = _imported(own_versioned(managed), cls)
        Py_INCREF(tensor)
        out[0] = <void*>tensor
        return 0
    except BaseException as error:
        _set_error(error)
        return -1


def _imported(ManagedTensor managed, cls):
    return cls._wrap(adopt_managed(managed, 0, None))


cdef int _allocate(
    DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx, DLSetError set_error,
) noexcept with gil:
    cdef TypeMeta dtype
    try:
        if prototype.ndim < 0 or (prototype.ndim and prototype.shape == NULL):
            raise BufferError("The prototype has no shape.")
        dtype = from_dlpack_type(prototype.dtype)
        if dtype is None:
            raise BufferError("The prototype's element type is unknown.")
        device_of(prototype.device.device_type, prototype.device.device_id)
        out[0] = export_versioned(
            allocated(prototype.shape, prototype.ndim, dtype, prototype.device.device_type,
                      prototype.device.device_id, "managed_tensor_allocator"), 0)
        return 0
    except BaseException as error:
        kind = type(error).__name__.encode()
        message = str(error).encode()
        if set_error != NULL:
            set_error(error_ctx, kind, message)
        return -1


cdef int _work_stream(int32_t device_type, int32_t device_id, void** out) noexcept:
    cdef uintptr_t stream
    try:
        out[0] = NULL
        if has_streams(device_type):
            from bridge.exchange.streams import current_handle
            stream = current_handle(device_id)
            out[0] = <void*>stream
        return 0
    except BaseException as error:
        _set_error(error)
        return -1


cdef void _set_error(object error) noexcept:
    # for a C caller, which reads -1 and the pending exception
    PyErr_SetObject(type(error), error)


cdef object exchange_table(DLPackExchangeAPI* table, to_py_object import_function):
    """Fill `table`, which must live for ever, and return it as a capsule.

    `import_function`: makes tensors of the class by `import_object`. The capsule is for
    ``__dlpack_c_exchange_api__`` (DLPack 1.3, DLPackExchangeAPI).
    """
    table.header.version.major = DLPACK_MAJOR
    table.header.version.minor = DLPACK_MINOR
    table.header.prev_api = NULL
    table.managed_tensor_allocator = _allocate
    table.managed_tensor_from_py_object_no_sync = _from_object
    table.managed_tensor_to_py_object_no_sync = import_function
    table.dltensor_from_py_object_no_sync = _borrow_object
    table.current_work_stream = _work_stream
    return PyCapsule_New(table, "dlpack_exchange_api", NULL)


cdef inline int64_t _nbytes(Wrapper wrapper) noexcept:
    return wrapper.impl.c_numel * wrapper.impl.c_dtype.itemsize
