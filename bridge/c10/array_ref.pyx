# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""ArrayRef, the read-only view of int64 values, and the reading of sizes from arguments."""

from collections.abc import Mapping, Sequence

cimport cython
from cpython.buffer cimport (
    PyBUF_FORMAT,
    PyBUF_ND,
    PyBUF_STRIDES,
    PyBUF_WRITABLE,
    PyObject_CheckBuffer,
)
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from bridge.c10.errors import EnforceTypeError, EnforceValueError, EnforceIndexError

cdef extern from "Python.h":
    bint PyLong_Check(object)


cdef int64_t index_to_int64(object value, str caller) except? -1:
    """Return what `to_int64` does, for everything but a small ``int``."""
    cdef int overflow = 0
    cdef int64_t result
    if not PyLong_Check(value):
        try:
            value = value.__index__()
        except AttributeError:
            raise EnforceTypeError(
                f"Sizes are integers, not {type(value).__name__}: {value!r}.",
                caller) from None
        except TypeError as error:
            raise EnforceTypeError(
                f"Sizes are integers, not {type(value).__name__}.", caller) from error
        if not PyLong_Check(value):
            raise EnforceTypeError(
                f"Sizes are integers, and this __index__ gives {value!r}.", caller)
    result = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow:
        raise EnforceValueError(f"{value} does not fit an int64.", caller)
    return result


@cython.final
@cython.freelist(16)
@cython.no_gc
cdef class Dims:
    """Sizes or strides read from arguments; internal, never seen by users."""

    def __dealloc__(self):
        if self.data != self.inline:
            free(self.data)


cdef Dims new_dims(Py_ssize_t n):
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
    """Sizes out of one argument: an int, or any iterable of ints."""
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
    """Sizes out of ``*args``: one sequence, or the sizes one by one."""
    if len(args) == 1 and not PyLong_Check(args[0]):
        return parse_dims(args[0], caller)
    return parse_dims(args, caller)


@cython.final
cdef class ArrayRef:
    """A read-only view of a contiguous array of int64.

    Parameters
    ----------
    source: a list or tuple of ints (copied), an ``array.array``, NumPy array or other
        buffer of int64 (viewed, kept alive), or another ArrayRef (viewed).

    What a tensor gives for its sizes keeps the values it had, whatever becomes
    of the tensor. Hashes and compares as the tuple of the same ints.

    Raises
    ------
    EnforceNotMet, also a TypeError: not a sequence of ints, or a buffer of
        another type, or not contiguous.

    Follows c10::ArrayRef, c10/util/ArrayRef.h, PyTorch 1.8.1, but for the
    dangling: this one holds what it views.

    >>> from bridge.c10 import ArrayRef
    >>> ref = ArrayRef([2, 3, 4])
    >>> ref[1:], ref == (2, 3, 4), ref.slice(0, 2).vec()
    (ArrayRef([3, 4]), True, [2, 3])
    """

    def __cinit__(self, source=()):
        cdef ArrayRef other
        cdef Dims dims
        self.ptr = self.inline
        if isinstance(source, ArrayRef):
            other = <ArrayRef>source
            self.ptr = other.ptr
            self.n = other.n
            self.owner = other.keeper()
            return
        if isinstance(source, (list, tuple)):
            dims = parse_dims(tuple(source), "ArrayRef")
            self.own(dims.data, dims.n)
            return
        if PyObject_CheckBuffer(source) and not isinstance(source, (bytes, bytearray)):
            self.view(source)
            return
        if isinstance(source, Sequence) and not isinstance(source, (str, bytes, bytearray)):
            dims = parse_dims(tuple(source), "ArrayRef")
            self.own(dims.data, dims.n)
            return
        raise EnforceTypeError(
            f"An ArrayRef views a list, a tuple, or a buffer of int64, not "
            f"{type(source).__name__}.", "ArrayRef")

    cdef int own(self, const int64_t* values, Py_ssize_t n) except -1:
        cdef int64_t* data = self.inline
        if n > INLINE_DIMS:
            data = <int64_t*>malloc(n * sizeof(int64_t))
            if data == NULL:
                raise MemoryError()
            self.allocated = True
        memcpy(data, values, n * sizeof(int64_t))
        self.ptr = data
        self.n = n
        return 0

    cdef int view(self, object source) except -1:
        cdef const int64_t[::1] values
        try:
            view = memoryview(source)
        except (TypeError, ValueError, BufferError) as error:
            raise EnforceTypeError(
                f"{type(source).__name__} gives no buffer of int64: {error}",
                "ArrayRef") from error
        if view.itemsize != 8 or view.format.lstrip("@=<") not in ("l", "q") or view.ndim != 1:
            raise EnforceTypeError(
                f"An ArrayRef views one dimension of int64; this buffer has {view.ndim} "
                f"of format {view.format!r}. Convert it, for instance by .astype('int64').", "ArrayRef")
        if not view.c_contiguous:
            raise EnforceTypeError(
                "An ArrayRef views contiguous memory; this buffer has strides. Copy it first.", "ArrayRef")
        self.n = view.shape[0]
        self.owner = view
        if self.n:
            values = view
            if <uintptr_t>&values[0] % sizeof(int64_t) != 0:
                raise EnforceTypeError(
                    "An ArrayRef views aligned memory; copy the buffer first.", "ArrayRef")
            self.ptr = &values[0]
        return 0

    def __dealloc__(self):
        if self.allocated:
            free(<void*>self.ptr)

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        cdef Py_ssize_t i, start, stop, step
        if isinstance(index, slice):
            start, stop, step = index.indices(self.n)
            if step != 1:
                raise EnforceValueError(
                    f"An ArrayRef is contiguous, so its slices have step 1, not {step}. "
                    "Use list(ref)[a:b:step].", "ArrayRef", condition="step == 1")
            return self.part(start, max(stop - start, 0))
        try:
            i = index.__index__()
        except (AttributeError, TypeError):
            raise EnforceTypeError(
                f"An index is an int or a slice, not {type(index).__name__}.",
                "ArrayRef") from None
        except OverflowError:
            i = self.n
        if i < 0:
            i += self.n
        if not 0 <= i < self.n:
            raise EnforceIndexError(
                f"Index {index} is out of range for {self.n} values.", "ArrayRef")
        return self.ptr[i]

    cdef ArrayRef part(self, Py_ssize_t start, Py_ssize_t n):
        cdef ArrayRef ref = ArrayRef.__new__(ArrayRef)
        ref.ptr = self.ptr + start
        ref.n = n
        ref.owner = self.keeper()
        return ref

    cdef object keeper(self):
        """What keeps the values: views of views hold that one, and make no chain."""
        return self if self.owner is None else self.owner

    def __iter__(self):
        cdef Py_ssize_t i
        for i in range(self.n):
            yield self.ptr[i]

    def __contains__(self, value):
        cdef Py_ssize_t i
        for i in range(self.n):
            if self.ptr[i] == value:
                return True
        return False

    def __eq__(self, other):
        cdef ArrayRef that
        cdef Py_ssize_t i
        if isinstance(other, ArrayRef):
            that = <ArrayRef>other
            if self.n != that.n:
                return False
            for i in range(self.n):
                if self.ptr[i] != that.ptr[i]:
                    return False
            return True
        if not isinstance(other, (list, tuple)) and (
                isinstance(other, (str, bytes, bytearray, Mapping))
                or not hasattr(other, "__getitem__") or not hasattr(other, "__len__")):
            return NotImplemented
        try:
            return len(other) == self.n and tuple(self) == tuple(other)
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self):
        return hash(tuple(self))

    def __repr__(self):
        return f"ArrayRef({self.vec()})"

    def __reduce__(self):
        return ArrayRef, (self.vec(),)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        if flags & PyBUF_WRITABLE:
            raise BufferError("An ArrayRef is read-only.")
        buffer.buf = <void*>self.ptr
        buffer.obj = self
        buffer.len = self.n * 8
        buffer.itemsize = 8
        buffer.readonly = True
        buffer.ndim = 1
        buffer.format = NULL
        if flags & PyBUF_FORMAT:
            buffer.format = b"l" if sizeof(long) == 8 else b"q"
        buffer.shape = &self.n if flags & PyBUF_ND else NULL
        buffer.strides = &buffer.itemsize if flags & PyBUF_STRIDES == PyBUF_STRIDES else NULL
        buffer.suboffsets = NULL
        buffer.internal = NULL

    @property
    def data(self):
        """The values as a read-only ``memoryview`` of int64; no copy."""
        return memoryview(self)

    def size(self):
        """Number of values."""
        return self.n

    def empty(self):
        """Whether there are none."""
        return self.n == 0

    def front(self):
        """The first value; IndexError (EnforceNotMet) where there is none."""
        return self[0]

    def back(self):
        """The last value; IndexError (EnforceNotMet) where there is none."""
        return self[self.n - 1]

    def equals(self, other):
        """Whether `other`, a sequence of ints, has the same values."""
        return self == (other if isinstance(other, ArrayRef) else ArrayRef(other))

    def slice(self, start, n=None):
        """The `n` values from `start` on (to the end by default), as a view.

        Raises EnforceNotMet, also an IndexError: they are not all there.
        """
        cdef int64_t first = to_int64(start, "ArrayRef.slice")
        cdef int64_t count
        if first < 0 or first > self.n:
            count = -1
        else:
            count = self.n - first if n is None else to_int64(n, "ArrayRef.slice")
        if first < 0 or count < 0 or first > self.n or count > self.n - first:
            raise EnforceIndexError(
                f"slice({start}, {n}) is out of range for {self.n} values.", "ArrayRef.slice",
                condition="start + n <= size()")
        return self.part(first, count)

    def index(self, value, start=0, stop=None):
        """Where `value` first is, as ``tuple.index``; ValueError: nowhere."""
        return tuple(self).index(value, start, self.n if stop is None else stop)

    def count(self, value):
        """How often `value` is among the values."""
        return tuple(self).count(value)

    def vec(self):
        """The values as a new list."""
        cdef Py_ssize_t i
        return [self.ptr[i] for i in range(self.n)]


Sequence.register(ArrayRef)


cdef ArrayRef array_ref_of(const int64_t* values, Py_ssize_t n):
    """An ArrayRef with a copy of `n` values of its own."""
    cdef ArrayRef ref = ArrayRef.__new__(ArrayRef)
    ref.own(values, n)
    return ref
