# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""NumPy arrays to TensorImpl and back, through NumPy's C API.

The API is loaded with the first array, since ``import bridge`` must not import NumPy: so neither
the import macro of NumPy's headers nor Cython's is used. The capsule ``_ARRAY_API`` holds a table
of functions, whose positions are the same in NumPy 1.7 to 2.x (NumPy's C API reference, "Array
API"), and so are the first fields of PyArrayObject.
"""

import sys
import threading

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from bridge.c10.copy cimport requested_copy, require_copy
from bridge.c10.device cimport host_accessible
from bridge.c10.layout cimport block, checked_mul, wrapped_mul
from bridge.c10.python_api cimport (
    RELEASE_GIL_NBYTES,
    owned,
    publish_pointer,
    raise_pending,
)
from bridge.c10.retained cimport retained_owner
from bridge.c10.storage cimport BORROWED, EXTERNAL, READONLY, Storage, flags_of, install
from bridge.c10.tensor_impl cimport (
    TensorImpl,
    allocated,
    checked_data,
    device_type_of,
    is_pod_now,
    ndim_of,
    new_pair,
    seen,
    storage_of,
)
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.dlpack.abi cimport DL_CPU
from bridge.exchange.dlpack_export cimport refuse_non_pod

from bridge.c10.errors import EnforceBufferError
from bridge.c10.type_meta import NO_FLOAT0 as _NO_FLOAT0
from bridge.c10.type_meta import type_of_elements

cdef extern from *:
    """
    /* The part of PyArrayObject and PyArray_Descr that every NumPy since 1.7 has. */
    typedef struct {
        PyObject_HEAD
        PyTypeObject *typeobj;
        char kind, type, byteorder, former_flags;
        int type_num;
    } bridge_descr;
    typedef struct {
        PyObject_HEAD
        char *data;
        int nd;
        Py_ssize_t *dimensions;
        Py_ssize_t *strides;
        PyObject *base;
        bridge_descr *descr;
        int flags;
    } bridge_array;
    """
    ctypedef struct bridge_descr:
        char kind
        char byteorder
        int type_num
    ctypedef struct bridge_array:
        char* data
        int nd
        Py_ssize_t* dimensions
        Py_ssize_t* strides
        bridge_descr* descr
        int flags

cdef enum:
    BIG_ENDIAN_MARK = 62        # '>' ; a little-endian machine is all that is built for
    ARRAY_ALIGNED = 0x0100
    ARRAY_WRITEABLE = 0x0400
    PLACE_TYPE = 2              # PyArray_Type
    PLACE_NEW_FROM_DESCR = 94   # PyArray_NewFromDescr
    PLACE_SET_BASE = 282        # PyArray_SetBaseObject
    TYPE_NUMS = 24              # built-in types have numbers below this

ctypedef PyObject* (*new_from_descr)(
    PyTypeObject*, PyObject*, int, const Py_ssize_t*, const Py_ssize_t*, void*, int,
    PyObject*) noexcept
ctypedef int (*set_base_object)(PyObject*, PyObject*) noexcept

cdef new_from_descr _new_from_descr = NULL
cdef set_base_object _set_base_object = NULL
cdef object numpy_array_type = None
cdef PyTypeObject* numpy_class = NULL
cdef object _fetching = threading.RLock()
cdef object numpy_generic_type = None
cdef object _masked_array = None
cdef int _max_ndim = 32
# the TypeMeta of each built-in type number, None: not exchanged
cdef list _type_of_num = [None] * TYPE_NUMS


cdef bint numpy_loaded() except -1:
    """Return whether NumPy is imported, and load its C API. Does not import it."""
    if numpy_type() != NULL:
        return True
    # None: marked as absent; without ndarray: in the middle of being imported
    if getattr(sys.modules.get("numpy"), "ndarray", None) is None:
        return False
    _fetch()
    return True


cdef int _fetch() except -1:
    import numpy
    with _fetching:
        if numpy_type() == NULL:
            _look_up(numpy)
    return 0


cdef int most_dimensions() except -1:
    """Return the greatest number of dimensions of a NumPy array."""
    if numpy_type() == NULL:
        _fetch()
    return _max_ndim


cdef int _look_up(object numpy) except -1:
    """Fill the variables above; the one that says that they are filled last."""
    global _new_from_descr, _set_base_object, _max_ndim, _masked_array
    global numpy_array_type, numpy_generic_type
    cdef void** api
    major = int(numpy.__version__.partition(".")[0])
    if major >= 2:
        from numpy._core import _multiarray_umath as umath
        _max_ndim = 64
    else:
        from numpy.core import _multiarray_umath as umath
    api = <void**>PyCapsule_GetPointer(umath._ARRAY_API, NULL)
    if <PyObject*>numpy.ndarray != <PyObject*>api[PLACE_TYPE]:
        raise ImportError(
            f"NumPy {numpy.__version__} keeps its C API in other places than the bridge knows.")
    for name in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                 "uint64", "float16", "float32", "float64", "complex64", "complex128"):
        _type_of_num[numpy.dtype(name).num] = as_type(name)
    # long and long long have different numbers, and one of them is int64
    for kind in ("l", "q", "L", "Q", "i", "I"):
        dtype = numpy.dtype(kind)
        _type_of_num[dtype.num] = as_type(dtype.name)
    _new_from_descr = <new_from_descr>api[PLACE_NEW_FROM_DESCR]
    _set_base_object = <set_base_object>api[PLACE_SET_BASE]
    _masked_array = numpy.ma.MaskedArray
    numpy_generic_type = numpy.generic
    numpy_array_type = numpy.ndarray
    publish_pointer(<void**>&numpy_class, <void*>numpy_array_type)
    return 0


cdef TypeMeta _type_of(object array, bridge_descr* descr):
    """Return the TypeMeta of an array's elements, whatever their byte order."""
    cdef TypeMeta found = None
    if 0 <= descr.type_num < TYPE_NUMS:
        found = <TypeMeta>_type_of_num[descr.type_num]
        if found is not None:
            return found
    try:
        found = type_of_elements(array.dtype)
    except TypeError as error:
        raise BufferError(
            f"Arrays of {array.dtype!r} are not exchanged: {_why_not(array.dtype)}") from error
    if not found.c_is_pod:
        raise BufferError(
            f"Arrays of {array.dtype!r} are not exchanged: {_why_not(array.dtype)}")
    return found


def _why_not(dtype):
    kind = dtype.kind
    if kind == "O":
        return ("their elements are Python objects, not memory. Use astype(), as in "
                "array.astype('float64'); bridge.asarray takes strings.")
    if kind in "SU":
        return ("their elements are strings. Feed them with caffe2.workspace.FeedBlob, or use "
                "view('uint8').")
    if kind in "Mm":
        return "DLPack has no times. Use view('int64')."
    if dtype.names == ("float0",):
        return _NO_FLOAT0
    if dtype.names is not None:
        return "their elements are structures. Use one field, as in array['name']."
    if kind in "fc":
        return "long double differs from machine to machine. Use astype('float64')."
    return "the bridge has no such element type."


cpdef TensorImpl import_array(object array: np.ndarray[Any, Any], object copy: bool | None):
    """Return the TensorImpl of a NumPy array: shared, or copied if sharing is impossible."""
    cdef bridge_array* a = <bridge_array*><PyObject*>array
    cdef TypeMeta dtype
    cdef TensorImpl impl
    cdef int64_t itemsize, numel = 1, nbytes = 0, low = 0, stride
    cdef int64_t* strides
    cdef int i
    cdef bint whole = True
    if numpy_type() == NULL:
        _fetch()
    if type(array) is not numpy_array_type and isinstance(array, _masked_array):
        raise BufferError(
            "A masked array has no plain memory for what is masked. Use filled(value), or "
            "take .data and .mask apart.")
    dtype = _type_of(array, a.descr)
    itemsize = dtype.itemsize
    if itemsize > 1 and a.descr.byteorder == BIG_ENDIAN_MARK:
        return _copied(array, copy, f"its byte order, {array.dtype.str}, is foreign")
    if not a.flags & ARRAY_ALIGNED:
        return _copied(array, copy, "its elements are not aligned")
    impl = new_pair(DL_CPU, 0, dtype)
    impl.set_ndim(a.nd)
    strides = impl.c_strides()
    for i in range(a.nd):
        impl.c_sizes[i] = a.dimensions[i]
        numel *= a.dimensions[i]
        stride = a.strides[i] // itemsize
        if stride * itemsize != a.strides[i]:
            if a.dimensions[i] > 1:
                whole = False
            else:
                stride = 1
        strides[i] = stride
    if not whole and numel:
        return _copied(array, copy, "its strides are not a whole number of elements")
    impl.finish()
    if numel:
        nbytes = block(<uintptr_t>a.data, impl.c_sizes, strides, a.nd, itemsize, &low)
        if nbytes < 0:
            raise BufferError("The strides of the array reach out of the address space.")
    impl.offset = -low
    install(impl.storage, array, a.data + low * itemsize, dtype, nbytes,
            EXTERNAL if a.flags & ARRAY_WRITEABLE else EXTERNAL | READONLY)
    if copy is True:
        return requested_copy(impl, "from_dlpack")
    return impl


cdef TensorImpl _copied(object array, object copy, str why):
    cdef bridge_array* a = <bridge_array*><PyObject*>array
    cdef TensorImpl out
    cdef int64_t none = 0
    require_copy(copy, array.nbytes, why)
    import numpy
    # into memory of our own, which is aligned for every framework; a subclass is not asked, since
    # it may not let go of what it adds, such as a unit
    out = allocated(
        <const int64_t*>a.dimensions if a.nd else &none,    # NumPy's are NULL where there are none
        a.nd, _type_of(array, a.descr), DL_CPU, 0, "from_dlpack")
    numpy.copyto(export_array(out, "from_dlpack"), numpy.ndarray.view(array, numpy.ndarray))
    return out


cdef object _new_array(
    TensorImpl impl, int nd, const Py_ssize_t* sizes, const Py_ssize_t* strides, char* data,
    int flags,
):
    """Return an array over `data`, which it does not own; over new memory if `data` is NULL."""
    descr = impl.c_dtype.numpy
    Py_INCREF(descr)            # NewFromDescr steals a reference
    return owned(_new_from_descr(
        <PyTypeObject*>numpy_array_type, <PyObject*>descr, nd, sizes, strides, data, flags, NULL))


cdef object _wrap(
    TensorImpl impl, int nd, const Py_ssize_t* sizes, const Py_ssize_t* strides, char* data,
    int flags, object ctx,
):
    """Return an array over `data`; it keeps `ctx`, the owner of the memory."""
    array = _new_array(impl, nd, sizes, strides, data, flags)
    if data != NULL:
        Py_INCREF(ctx)          # SetBaseObject steals a reference
        if _set_base_object(<PyObject*>array, <PyObject*>ctx) != 0:
            raise_pending()
    return array


cdef int _require_array(TensorImpl impl, str caller) except -1:
    """Raise EnforceBufferError unless NumPy can hold the memory."""
    impl.require_defined(caller)
    if not is_pod_now(impl):
        refuse_non_pod(impl, caller)
    if not host_accessible(device_type_of(impl)):
        raise EnforceBufferError(
            f"The memory is on {impl.device()}, which NumPy cannot reach. Copy it with cpu().",
            caller)
    if ndim_of(impl) > most_dimensions():
        raise EnforceBufferError(
            f"NumPy arrays have at most {_max_ndim} dimensions, and the tensor has "
            f"{ndim_of(impl)}. Use view() or to_torch().", caller)
    if impl.c_numel == 0 and not _counts(seen(impl)):
        raise EnforceBufferError(
            f"The sizes {impl.sizes().vec()} are too large for NumPy, also of an array without "
            "elements. Use to_torch().", caller)
    return 0


cdef bint _counts(TensorImpl impl) noexcept:
    """Return whether an int64 counts the bytes if sizes of zero are left out, as NumPy does."""
    cdef int64_t nbytes = impl.c_dtype.itemsize
    cdef int i
    for i in range(impl.ndim):
        if impl.c_sizes[i]:
            nbytes = checked_mul(nbytes, impl.c_sizes[i])
    return nbytes >= 0


cpdef object export_array(TensorImpl impl, str caller):  # pyi: np.ndarray[Any, Any]
    """Return a NumPy array of the same memory, writable if the memory is."""
    cdef Py_ssize_t[16] small
    cdef Py_ssize_t* strides = small
    cdef Storage storage
    cdef char* data
    cdef int64_t itemsize
    cdef int i, flags
    impl = seen(impl)
    _require_array(impl, caller)
    ctx = retained_owner(impl, &data, caller)
    storage = impl.storage
    itemsize = impl.c_dtype.itemsize
    if impl.ndim > 16:
        strides = <Py_ssize_t*>malloc(impl.ndim * sizeof(Py_ssize_t))
        if strides == NULL:
            raise MemoryError()
    for i in range(impl.ndim):
        strides[i] = wrapped_mul(impl.c_strides()[i], itemsize)
    flags = ARRAY_ALIGNED if flags_of(storage) & READONLY else ARRAY_ALIGNED | ARRAY_WRITEABLE
    try:
        return _wrap(impl, impl.ndim, <const Py_ssize_t*>impl.c_sizes, strides, data, flags, ctx)
    finally:
        if strides != small:
            free(strides)


cdef object copy_to_array(TensorImpl impl, str caller):
    """Return a new NumPy array with a copy of the elements of a contiguous tensor.

    Raises as export_array does. The tensor's memory is not exported, so it is not retained.
    """
    cdef object array
    cdef Storage storage
    cdef char* data
    cdef char* copy
    cdef int64_t nbytes
    while True:
        _require_array(impl, caller)
        storage = storage_of(impl)
        if flags_of(storage) & BORROWED:
            storage.check()
        # At once, so that one thread feeds it and another fetches it: a second section that has to
        # wait lets go of the first.
        with cython.critical_section(impl, storage):
            if impl.storage is not storage or not impl.c_dtype.c_is_pod:
                continue
            data = checked_data(impl, storage, caller)
            array = _new_array(impl, impl.ndim, <const Py_ssize_t*>impl.c_sizes, NULL, NULL, 0)
            copy = (<bridge_array*><PyObject*>array).data
            nbytes = impl.c_numel * impl.c_dtype.itemsize
            # Another thread could free what a framework's tensor holds; `_keep` has other memory.
            _keep = storage.ctx
            if nbytes > RELEASE_GIL_NBYTES and not storage.flags & BORROWED:
                with nogil:
                    memcpy(copy, data, nbytes)
            elif nbytes:
                memcpy(copy, data, nbytes)
            return array


cdef object flat_array(TensorImpl impl, bint writable, str caller):
    """Return a one-dimensional NumPy array over a contiguous tensor in host memory."""
    cdef Py_ssize_t n, step
    cdef char* data
    if numpy_type() == NULL:
        _fetch()
    impl = seen(impl)
    n, step = impl.c_numel, impl.c_dtype.itemsize
    ctx = retained_owner(impl, &data, caller)
    return _wrap(impl, 1, &n, &step, data,
                 ARRAY_ALIGNED | (ARRAY_WRITEABLE if writable else 0), ctx)
