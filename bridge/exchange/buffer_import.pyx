# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""From objects with Python's buffer protocol (PEP 3118) to TensorImpl.

A memoryview owns the buffer, since garbage collection can traverse it. Formats of one plain
number in native byte order are parsed here; NumPy parses the others and reports what it cannot.
"""

cimport cython
from cpython.buffer cimport PyBUF_FULL_RO, PyBuffer_Release
from cpython.memoryview cimport PyMemoryView_FromObject, PyMemoryView_GET_BUFFER
from libc.stdint cimport int64_t, uintptr_t

from bridge.c10.copy cimport requested_copy
from bridge.c10.layout cimport block
from bridge.c10.python_api cimport take_pending
from bridge.c10.storage cimport EXTERNAL, READONLY, Storage, install, new_storage
from bridge.c10.tensor_impl cimport TensorImpl, new_impl
from bridge.c10.type_meta cimport TypeMeta, from_dlpack_type
from bridge.dlpack.abi cimport (
    DL_BOOL,
    DL_COMPLEX,
    DL_CPU,
    DL_FLOAT,
    DL_INT,
    DL_UINT,
    DLDataType,
)
from bridge.exchange.numpy cimport import_array, numpy_generic_type, numpy_loaded

cdef extern from "Python.h":
    int get_buffer "PyObject_GetBuffer"(object, Py_buffer*, int)


cdef TypeMeta _type_of(const char* format, Py_ssize_t itemsize):
    """Return the TypeMeta of a buffer's elements; None if they are not plain native numbers."""
    cdef DLDataType dtype
    cdef const char* code = "B"
    if format != NULL:
        code = format
    if itemsize < 1 or itemsize > 16:
        return None
    if code[0] == b"@" or code[0] == b"=" or code[0] == b"<":
        code += 1
    elif (code[0] == b">" or code[0] == b"!") and itemsize == 1:
        code += 1
    dtype.lanes = 1
    dtype.bits = <unsigned char>(8 * itemsize)
    if code[0] == b"Z" and (code[1] == b"f" or code[1] == b"d") and code[2] == 0:
        dtype.code = DL_COMPLEX
        return from_dlpack_type(dtype) if itemsize == (8 if code[1] == b"f" else 16) else None
    if code[0] == 0 or code[1] != 0:
        return None
    if code[0] == b"f" and itemsize == 4 or code[0] == b"d" and itemsize == 8 \
            or code[0] == b"e" and itemsize == 2:
        dtype.code = DL_FLOAT
    elif code[0] == b"?" and itemsize == 1:
        dtype.code = DL_BOOL
    elif code[0] == b"b" and itemsize == 1 or code[0] == b"h" and itemsize == 2 \
            or (code[0] in b"ilqn") and (itemsize == 4 or itemsize == 8):
        dtype.code = DL_INT
    elif (code[0] == b"B" or code[0] == b"c") and itemsize == 1 \
            or code[0] == b"H" and itemsize == 2 \
            or (code[0] in b"ILQN") and (itemsize == 4 or itemsize == 8):
        dtype.code = DL_UINT
    else:
        return None
    return from_dlpack_type(dtype)


@cython.final
@cython.freelist(64)
cdef class OwnedBuffer:
    """A buffer that is released with this object; garbage collection does not traverse it."""

    cdef Py_buffer buffer

    def __dealloc__(self):
        PyBuffer_Release(&self.buffer)


cdef TensorImpl _plain(Py_buffer* buffer, object owner):
    """Return the TensorImpl of a buffer that `owner` keeps; None if only NumPy can parse it."""
    cdef TypeMeta dtype = _type_of(buffer.format, buffer.itemsize)
    cdef TensorImpl impl
    cdef Storage storage
    cdef int64_t itemsize, alignment, nbytes = 0, low = 0, stride
    cdef int i
    if dtype is None or buffer.suboffsets != NULL \
            or buffer.ndim and (buffer.shape == NULL or buffer.strides == NULL):
        return None
    itemsize = buffer.itemsize
    alignment = itemsize // 2 if dtype.c_dlpack.code == DL_COMPLEX else itemsize
    if buffer.len and <uintptr_t>buffer.buf % <uintptr_t>alignment != 0:
        return None
    storage = new_storage(DL_CPU, 0)
    impl = new_impl(storage, dtype)
    impl.set_ndim(buffer.ndim)
    for i in range(buffer.ndim):
        stride = buffer.strides[i] // itemsize
        if stride * itemsize != buffer.strides[i] and buffer.shape[i] > 1 and buffer.len:
            return None
        impl.c_sizes[i] = buffer.shape[i]
        impl.c_strides()[i] = stride
    impl.finish()
    if impl.c_numel:
        nbytes = block(<uintptr_t>buffer.buf, impl.c_sizes, impl.c_strides(), impl.ndim, itemsize,
                       &low)
        if nbytes < 0:
            raise BufferError("The strides of the buffer reach out of the address space.")
    impl.offset = -low
    install(storage, owner, <char*>buffer.buf + low * itemsize, dtype, nbytes,
            EXTERNAL | READONLY if buffer.readonly else EXTERNAL)
    return impl


cdef TensorImpl fast_import_buffer(object x):
    """Return the TensorImpl of a buffer of plain native numbers, shared; None if `x` has none.

    For frameworks, which can be imported in other ways, too, and do not refer to our tensors:
    the owner of the buffer takes no part in garbage collection.
    """
    cdef OwnedBuffer owner = OwnedBuffer.__new__(OwnedBuffer)
    if get_buffer(x, &owner.buffer, PyBUF_FULL_RO) != 0:
        take_pending()
        return None
    return _plain(&owner.buffer, owner)


cdef TensorImpl import_buffer(object x, object copy):
    """Return the TensorImpl of any buffer: shared, or copied if its format requires it.

    Raises BufferError: no buffer, no element type, or ``copy=False`` and a copy is needed.
    """
    cdef TensorImpl impl
    # the buffers of NumPy's scalars of times and strings do not describe their type
    if numpy_loaded() and isinstance(x, numpy_generic_type) and x.dtype.kind not in "biufc":
        if copy is False:
            raise BufferError(
                f"A scalar of {x.dtype!r} has no memory to share. Allow a copy with copy=None.")
        import numpy
        return import_array(numpy.asarray(x), None)
    try:
        view = PyMemoryView_FromObject(x)
    except (BufferError, TypeError, ValueError) as error:
        raise BufferError(
            f"{type(x).__name__} exports no buffer, as those without elements or of other types "
            f"than numbers may do: {error}") from error
    impl = _plain(PyMemoryView_GET_BUFFER(view), view)
    if impl is not None:
        return requested_copy(impl, "from_dlpack") if copy is True else impl
    import numpy
    if not numpy_loaded():
        raise ImportError("NumPy was imported but is not in sys.modules.")
    if view.itemsize == 0 and view.nbytes == 0 and view.format not in ("B", "b"):
        raise BufferError(f"{type(x).__name__} has elements of no size.")
    try:
        array = numpy.asarray(view)
    except (TypeError, ValueError) as error:
        raise BufferError(
            f"The buffer of {type(x).__name__} has the format {view.format!r}, which is not an "
            f"element type: {error}. Its bytes are those of memoryview(x).cast('B').") from error
    if array.dtype.kind in "SU" and view.format == "c":
        array = array.view("uint8")
    return import_array(array, copy)
