# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Copying strings between NumPy's object arrays and tensors of strings.

For arrays of many short strings the time is in the memory accesses, one per string object, so each
is accessed once per copy.
"""

from cpython.buffer cimport PyBUF_ND, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.unicode cimport (
    PyUnicode_4BYTE_KIND,
    PyUnicode_AsUTF8String,
    PyUnicode_CheckExact,
    PyUnicode_FromKindAndData,
)
from libc.stdint cimport int64_t, uint32_t, uintptr_t

from bridge.c10 cimport allocation
from bridge.c10.python_api cimport lock_object, unlock_object
from bridge.c10.storage cimport Elements, owner_of
from bridge.c10.tensor_impl cimport TensorImpl, seen, storage_of
from bridge.c10.type_meta cimport string_type
from bridge.wrapper cimport Wrapper

from bridge.c10.errors import EnforceNotMet

cdef extern from "Python.h":
    ctypedef struct ListFields "PyListObject":
        PyObject** ob_item


def plain_elements(array: np.ndarray[Any, Any]) -> list[bytes] | None:
    """Return the elements of a contiguous object array as a list of `bytes`, text as UTF-8.

    None if an element is not exactly of the class `bytes` or `str`. Raises UnicodeEncodeError: text
    with a lone surrogate.
    """
    cdef Py_buffer view
    cdef Py_ssize_t i, n
    cdef PyObject** objects
    cdef list items
    cdef object item
    PyObject_GetBuffer(array, &view, PyBUF_ND)
    try:
        objects = <PyObject**>view.buf
        n = view.len // <Py_ssize_t>sizeof(PyObject*)
        items = [None] * n
        for i in range(n):
            item = <object>objects[i]
            if PyBytes_CheckExact(item):
                items[i] = item
            elif PyUnicode_CheckExact(item):
                items[i] = PyUnicode_AsUTF8String(item)
            else:
                return None
        return items
    finally:
        PyBuffer_Release(&view)


def fixed_width_elements(array: np.ndarray[Any, Any]) -> list[bytes]:
    """Return the elements of a contiguous array of NumPy's fixed-width bytes or text, as `bytes`.

    Text is encoded as UTF-8; trailing NULs are dropped, as NumPy does. The byte order is native.

    Raises UnicodeEncodeError: text with a lone surrogate.
    """
    cdef Py_ssize_t width = array.dtype.itemsize
    cdef bint text = array.dtype.kind == "U"
    cdef Py_ssize_t i, n = array.size
    cdef list items = [b""] * n
    cdef char* at
    if n == 0 or width == 0:
        return items
    at = <char*><uintptr_t>array.ctypes.data
    for i in range(n):
        items[i] = _encoded(<const uint32_t*>at, width // 4) if text else _trimmed(at, width)
        at += width
    return items


cdef bytes _trimmed(const char* at, Py_ssize_t n):
    while n and at[n - 1] == 0:
        n -= 1
    return PyBytes_FromStringAndSize(at, n)


cdef bytes _encoded(const uint32_t* at, Py_ssize_t n):
    cdef bytes item
    cdef char* to
    cdef uint32_t bits = 0
    cdef Py_ssize_t i
    while n and at[n - 1] == 0:
        n -= 1
    for i in range(n):
        bits |= at[i]
    if bits >= 0x80:
        return PyUnicode_AsUTF8String(PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, at, n))
    item = PyBytes_FromStringAndSize(NULL, n)
    to = PyBytes_AS_STRING(item)
    for i in range(n):
        to[i] = <char>at[i]
    return item


cdef list _strings(TensorImpl impl):
    """Return the list that has the elements of a tensor of strings from `impl.offset` on."""
    if impl.c_dtype is not string_type:
        raise EnforceNotMet(
            f"The tensor holds {impl.c_dtype}, not strings.", "Tensor.data",
            condition="IsType(string)")
    owner = owner_of(storage_of(impl))
    if not isinstance(owner, Elements):     # in another thread the buffer was replaced
        raise EnforceNotMet(
            "The memory of the tensor was replaced while it was read.", "Tensor.data",
            condition="storage() is kept")
    return (<Elements>owner).items


cdef int _changed() except -1:
    raise RuntimeError("The list of the tensor's elements was changed from outside.")


def put_elements(Wrapper tensor not None, list items not None: list[bytes]) -> None:
    """Exchange the elements of a tensor of strings and the items of the list `items`.

    Raises EnforceNotMet, MemoryError as
    `mutable_data` does; ValueError: another number of elements.
    """
    cdef TensorImpl impl = tensor.impl
    cdef PyObject** ours
    cdef PyObject** theirs
    cdef list strings
    cdef bint enough
    cdef int64_t i
    allocation.mutable_data(impl, string_type, "Tensor.mutable_data")
    impl = seen(impl)
    if len(items) != impl.c_numel:
        raise ValueError(f"{len(items)} strings for {impl.c_numel} elements")
    if impl.c_numel == 0:
        return
    strings = _strings(impl)
    lock_object(strings)
    enough = PyList_GET_SIZE(strings) >= impl.offset + impl.c_numel
    if enough:
        ours = (<ListFields*><PyObject*>strings).ob_item + impl.offset
        theirs = (<ListFields*><PyObject*>items).ob_item
        for i in range(impl.c_numel):
            ours[i], theirs[i] = theirs[i], ours[i]
    unlock_object()
    if not enough:
        _changed()


def array_of_strings(Wrapper tensor not None) -> np.ndarray[Any, Any]:
    """Return the elements of a tensor of strings as a new object array of its shape.

    Raises EnforceNotMet: nothing is allocated, or the elements are not strings. MemoryError.
    """
    from numpy import empty

    cdef TensorImpl impl = seen(tensor.impl)
    cdef Py_buffer view
    cdef PyObject** objects
    cdef PyObject** ours
    cdef PyObject* old
    cdef list strings
    cdef bint enough
    cdef int64_t i
    impl.data("Tensor.data")
    array = empty([impl.c_sizes[i] for i in range(impl.ndim)], object)
    if impl.c_numel == 0:
        return array
    strings = _strings(impl)
    PyObject_GetBuffer(array, &view, PyBUF_ND | PyBUF_WRITABLE)
    objects = <PyObject**>view.buf
    lock_object(strings)
    enough = PyList_GET_SIZE(strings) >= impl.offset + impl.c_numel
    if enough:
        ours = (<ListFields*><PyObject*>strings).ob_item + impl.offset
        for i in range(impl.c_numel):
            old = objects[i]
            Py_INCREF(<object>ours[i])
            objects[i] = ours[i]
            Py_XDECREF(old)
    unlock_object()
    PyBuffer_Release(&view)
    if not enough:
        _changed()
    return array
