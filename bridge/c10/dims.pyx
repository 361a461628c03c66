# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Sizes and strides read from Python arguments, and checked: every tensor's sizes pass here."""

cimport cython
from cpython.long cimport PyLong_Check
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from bridge.c10.array_ref cimport INLINE_DIMS, ArrayRef, to_int64
from bridge.c10.layout cimport checked_mul, checked_numel

from bridge.c10.errors import EnforceIndexError, EnforceTypeError, EnforceValueError


@cython.final
@cython.freelist(16)
@cython.no_gc
cdef class Dims:
    """`n` sizes or strides read from arguments; internal, never seen by users."""

    def __dealloc__(self):
        if self.data != self.inline:
            free(self.data)


cdef Dims new_dims(Py_ssize_t n):
    """Return room for `n` values, which are not set. Raises MemoryError."""
    cdef Dims dims = Dims.__new__(Dims)
    dims.data = dims.inline
    if n > INLINE_DIMS:
        dims.data = <int64_t*>malloc(n * sizeof(int64_t)) if n < 0x7FFFFFFF else NULL
        if dims.data == NULL:
            dims.data = dims.inline
            raise MemoryError(f"{n} dimensions")
    dims.n = <int>n
    return dims


cdef Dims parse_dims(object source, str caller):
    """Read sizes from one argument: an int, or any iterable of ints.

    Only their type is checked here; `require_numel` refuses negative sizes and too many elements.
    Raises EnforceTypeError: `source` is neither. EnforceValueError: a size does not fit an int64.
    """
    cdef Dims dims
    cdef ArrayRef ref
    cdef Py_ssize_t i, n
    if type(source) is tuple:
        n = len(<tuple>source)
        dims = new_dims(n)
        for i in range(n):
            dims.data[i] = to_int64((<tuple>source)[i], caller)
        return dims
    if isinstance(source, ArrayRef):
        ref = <ArrayRef>source
        dims = new_dims(ref.n)
        memcpy(dims.data, ref.ptr, ref.n * sizeof(int64_t))
        return dims
    if PyLong_Check(source):
        dims = new_dims(1)
        dims.data[0] = to_int64(source, caller)
        return dims
    if isinstance(source, (str, bytes, bytearray, dict, set, frozenset)):
        raise EnforceTypeError(
            f"Sizes are integers or a sequence of them, not {type(source).__name__}.", caller)
    if hasattr(source, "__index__") and not hasattr(source, "__len__"):
        return parse_dims((source,), caller)
    try:
        values = tuple(source)
    except TypeError as error:
        # a 0-d array or scalar of some framework
        if hasattr(source, "__index__"):
            return parse_dims((source,), caller)
        raise EnforceTypeError(
            f"Sizes are integers or a sequence of them, not {type(source).__name__}.",
            caller) from error
    return parse_dims(values, caller)


cdef Dims parse_dims_args(tuple args, str caller):
    """Read sizes from ``*args``: one sequence, or the sizes one by one. Raises as `parse_dims`."""
    if len(args) == 1 and not PyLong_Check(args[0]):
        return parse_dims(args[0], caller)
    return parse_dims(args, caller)


cdef int64_t require_numel(const int64_t* sizes, int ndim, str caller) except -1:
    """Return the number of elements of a tensor of these sizes.

    Every size that comes from outside is checked here. Raises EnforceValueError: a size is
    negative, or there are more elements than an int64 counts.
    """
    cdef int64_t numel = checked_numel(sizes, ndim)
    cdef int i
    if numel < 0:
        shown = [sizes[i] for i in range(ndim)]
        for i in range(ndim):
            if sizes[i] < 0:
                raise EnforceValueError(
                    f"Sizes must not be negative: {sizes[i]} in {shown}.",
                    caller, condition="size >= 0")
        raise EnforceValueError(
            f"The sizes {shown} make more elements than an int64 counts.", caller,
            condition="numel() < 2**63")
    return numel


cdef int require_nbytes(int64_t numel, int64_t itemsize, str caller) except -1:
    """Raise EnforceValueError if the elements are more bytes than an int64 counts.

    Every number of elements that may exceed the memory is checked here: a stride of zero repeats
    elements.
    """
    if checked_mul(numel, itemsize) < 0:
        raise EnforceValueError(
            f"{numel} elements of {itemsize} bytes are more bytes than an int64 counts.", caller,
            condition="nbytes() < 2**63")
    return 0


cdef int64_t wrap_dim(int64_t dim, int64_t ndim, str caller) except -1:
    """Return `dim` counted from the front; a tensor without dimensions is treated as having one.

    Raises EnforceIndexError: out of range.
    """
    cdef int64_t n = ndim if ndim > 0 else 1
    if dim < -n or dim >= n:
        raise EnforceIndexError(
            f"Dimension {dim} is out of range for {ndim} dimensions: {-n} to {n - 1}.", caller,
            condition="-dim() <= dim < dim()")
    return dim + n if dim < 0 else dim
