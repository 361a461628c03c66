# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, binding=False, embedsignature=True, embedsignature.format=clinic
"""The functions behind ``bridge.h``, in a capsule that ``bridge_import`` fetches."""

from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint32_t, uintptr_t

from bridge.at.tensor cimport wrap
from bridge.c10.copy cimport contiguous_copy
from bridge.c10.device cimport host_accessible
from bridge.c10.dims cimport require_numel
from bridge.c10.python_api cimport Py_TYPE
from bridge.c10.reports cimport is_observed, outermost, run_observed, unlikely
from bridge.c10.storage cimport READONLY, Storage
from bridge.c10.tensor_impl cimport (
    TensorImpl,
    allocated,
    is_contiguous_now,
    snapshot,
)
from bridge.c10.type_meta cimport TypeMeta, from_dlpack_type
from bridge.dlpack.abi cimport DL_CPU, DLDataType
from bridge.exchange.import_tensor cimport import_tensor
from bridge.exchange.numpy cimport import_array, numpy_type
from bridge.exchange.torch_api cimport torch_type
from bridge.exchange.torch_import cimport import_torch
from bridge.exchange.torch_layout cimport reads_contained
from bridge.wrapper cimport Wrapper

from bridge.at.factories import from_blob
from bridge.at.storage_ops import mark_readonly
from bridge.front import convert

cdef extern from "include/bridge.h":
    ctypedef struct bridge_tensor:
        void* data
        const int64_t* shape
        const int64_t* strides
        int64_t numel
        int32_t ndim, type, itemsize, device_type, device_id, readonly
        PyObject* owner
        PyObject* memory
    ctypedef void (*bridge_deleter)(void* context) noexcept
    ctypedef struct bridge_api:
        uint32_t version, nbytes
        int (*take)(PyObject*, bridge_tensor*, int, int, int) except -1
        PyObject* (*make)(int, int, const int64_t*, bridge_tensor*) except NULL
        PyObject* (*wrap)(
            void*, int, int, const int64_t*, const int64_t*, int, bridge_deleter, void*
        ) except NULL
        PyObject* (*convert)(PyObject*, const char*) except NULL
    enum:
        BRIDGE_WRITABLE
        BRIDGE_CONTIGUOUS
        BRIDGE_COPY
        BRIDGE_ANY_DEVICE
        BRIDGE_READONLY
    const int BRIDGE_ANY_TYPE
    const int BRIDGE_ANY_NDIM
    const int BRIDGE_API_VERSION
    const char* BRIDGE_API_CAPSULE


cdef int _FLAGS = (
    BRIDGE_WRITABLE | BRIDGE_CONTIGUOUS | BRIDGE_COPY | BRIDGE_ANY_DEVICE | BRIDGE_READONLY)


cdef class _Deleter:
    """Calls a C function once, in place of the deleter in Python that `from_blob` takes."""

    cdef bridge_deleter function
    cdef void* context

    def __call__(self, address):
        cdef bridge_deleter function = self.function
        self.function = NULL
        if function != NULL:
            function(self.context)


cdef inline int _type_code(TypeMeta dtype) noexcept:
    return dtype.c_dlpack.code << 8 | dtype.c_dlpack.bits


cdef TypeMeta _type_of(int code):
    cdef DLDataType dtype
    dtype.code, dtype.bits, dtype.lanes = <unsigned char>(code >> 8), <unsigned char>code, 1
    cdef TypeMeta found = from_dlpack_type(dtype)
    if found is None or _type_code(found) != code:
        raise ValueError(f"{code} is not an element type; bridge.h has their names.")
    return found


cdef int _require_shape(int ndim, const int64_t* shape) except -1:
    if ndim < 0:
        raise ValueError(f"{ndim} is not a number of dimensions.")
    if ndim > 0 and shape == NULL:
        raise ValueError(f"The shape of {ndim} dimensions is NULL.")
    return 0


def _imported(x, copy):
    return import_tensor(x, None, copy)


cdef int _describe(TensorImpl impl, bridge_tensor* out, object source) except -1:
    """Fill `out`, which keeps the TensorImpl and the memory.

    `source`: what `impl` was imported from just now, or None.
    """
    cdef char* data = NULL
    cdef Storage storage = impl.storage
    cdef object memory
    if Py_TYPE(source) == torch_type() and storage.ctx is source \
            and reads_contained(storage, <PyObject*>source):
        # No Python ran since the import, so the tensor has this memory still.
        data, memory = storage.data, source
    else:
        memory = impl.held(&data, "bridge_take")
    out.data = data
    out.shape = impl.c_sizes
    out.strides = impl.c_strides()
    out.numel = impl.c_numel
    out.ndim = impl.ndim
    out.type = _type_code(impl.c_dtype)
    out.itemsize = impl.c_dtype.itemsize
    out.device_type = impl.storage.device_type
    out.device_id = impl.storage.device_index
    out.readonly = (impl.storage.flags & READONLY) != 0
    Py_INCREF(impl)
    out.owner = <PyObject*>impl
    Py_INCREF(memory)
    out.memory = <PyObject*>memory
    return 0


cdef int _take(PyObject* x, bridge_tensor* out, int type, int ndim, int flags) except -1:
    cdef TensorImpl impl
    cdef object source = <object>x
    cdef object copy = None if flags & BRIDGE_COPY else False
    out.owner = out.memory = NULL
    if flags & BRIDGE_COPY and flags & BRIDGE_WRITABLE:
        raise ValueError("What is written into a copy is lost: BRIDGE_WRITABLE or BRIDGE_COPY.")
    if ndim < BRIDGE_ANY_NDIM or flags & ~_FLAGS:
        raise ValueError(f"{ndim} dimensions and the flags {flags} are not what bridge.h has.")
    if unlikely(is_observed()) and outermost():
        impl = run_observed("bridge_take", source, "C", _imported, (source, copy))
    elif Py_TYPE(source) == numpy_type():
        impl = import_array(source, copy)
    elif Py_TYPE(source) == torch_type():
        impl = import_torch(source, copy)
    else:
        impl = import_tensor(source, None, copy)
    if not impl.c_dtype.c_is_pod or type != BRIDGE_ANY_TYPE and _type_code(impl.c_dtype) != type:
        needed = "numbers" if type == BRIDGE_ANY_TYPE else _type_of(type)
        raise TypeError(f"A tensor of {needed} is required, and this one has {impl.c_dtype}.")
    if ndim >= 0 and impl.ndim != ndim:
        raise ValueError(
            f"A tensor of {ndim} dimensions is required, and this one has sizes "
            f"{impl.sizes().vec()}.")
    if not flags & BRIDGE_ANY_DEVICE and not host_accessible(impl.storage.device_type):
        raise BufferError(
            f"A tensor in host memory is required, and this one is on {impl.device()}. Pass "
            "x.cpu().")
    if flags & BRIDGE_WRITABLE and impl.storage.flags & READONLY:
        raise BufferError("The tensor would be written, and its memory is read-only. Pass a copy.")
    if flags & BRIDGE_CONTIGUOUS and not is_contiguous_now(impl):
        if not flags & BRIDGE_COPY:
            raise BufferError(
                f"A contiguous tensor is required, and this one has sizes {impl.sizes().vec()} "
                f"with strides {impl.strides().vec()}. Pass x.contiguous().")
        impl = contiguous_copy(impl, "bridge_take")
    return _describe(impl, out, source)


cdef PyObject* _make(int type, int ndim, const int64_t* shape, bridge_tensor* out) except NULL:
    cdef TypeMeta dtype = _type_of(type)
    cdef TensorImpl impl
    _require_shape(ndim, shape)
    require_numel(shape, ndim, "bridge_new")
    impl = allocated(shape, ndim, dtype, DL_CPU, 0, "bridge_new")
    result = wrap(impl)
    if out != NULL:
        _describe(snapshot(impl), out, None)      # the sizes of `impl` may change
    Py_INCREF(result)
    return <PyObject*>result


cdef PyObject* _wrap(
        void* data, int type, int ndim, const int64_t* shape, const int64_t* strides, int flags,
        bridge_deleter deleter, void* context) except NULL:
    cdef _Deleter called = _Deleter()
    cdef int i
    _require_shape(ndim, shape)
    sizes = [shape[i] for i in range(ndim)]
    steps = None if strides == NULL else [strides[i] for i in range(ndim)]
    result = from_blob(
        <uintptr_t>data, sizes, steps, dtype=_type_of(type),
        deleter=None if deleter == NULL else called)
    if flags & BRIDGE_READONLY:
        mark_readonly((<Wrapper>result).impl)
    # Only now: until here the memory is the caller's.
    called.context, called.function = context, deleter
    Py_INCREF(result)
    return <PyObject*>result


cdef PyObject* _convert(PyObject* x, const char* library) except NULL:
    result = convert(<object>x, library.decode())
    Py_INCREF(result)
    return <PyObject*>result


cdef bridge_api _api
_api.version = BRIDGE_API_VERSION
_api.nbytes = sizeof(bridge_api)
_api.take, _api.make, _api.wrap, _api.convert = _take, _make, _wrap, _convert

C_API = PyCapsule_New(&_api, BRIDGE_API_CAPSULE, NULL)  # pyi: CapsuleType
