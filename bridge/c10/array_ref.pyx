# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""ArrayRef: a read-only view of int64 values, which it keeps; int64 out of Python objects."""

from collections.abc import Mapping, Sequence
from math import prod

cimport cython
from cpython.buffer cimport (
    PyBUF_FORMAT,
    PyBUF_ND,
    PyBUF_STRIDES,
    PyBUF_WRITABLE,
    PyObject_CheckBuffer,
)
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_Check
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from bridge.c10.errors import EnforceIndexError, EnforceTypeError, EnforceValueError, shown


# pyi: class Shape(tuple[int, ...]):
class Shape(tuple):
    """The sizes of a tensor as ``x.shape`` has them: a tuple of ints that counts its elements.

    As ``torch.Size``, it stays one where it is sliced, added to another tuple or repeated.

    >>> from bridge import at
    >>> shape = at.zeros(2, 3, 4).shape
    >>> shape, shape.numel(), shape[:-1].numel(), shape[1:] + (5,)
    ((2, 3, 4), 24, 6, (3, 4, 5))
    """

    __slots__ = ()

    def numel(self) -> int:
        """Return the product of the sizes, the number of elements."""
        return prod(self)

    # pyi: overload (index: SupportsIndex, /) -> int
    # pyi: overload (index: slice[Any, Any, Any], /) -> Shape
    def __getitem__(self, index):
        found = tuple.__getitem__(self, index)
        return Shape(found) if type(index) is slice else found

    def __add__(self, other: tuple[int, ...] | ArrayRef, /) -> Shape:  # type: ignore[override]
        return Shape((*self, *other)) if isinstance(other, (tuple, ArrayRef)) else NotImplemented

    def __radd__(self, other: tuple[int, ...] | ArrayRef, /) -> Shape:
        return Shape((*other, *self)) if isinstance(other, (tuple, ArrayRef)) else NotImplemented

    def __mul__(self, times: SupportsIndex, /) -> Shape:
        return Shape(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (list(self),)


@cython.final
# pyi: class ArrayRef(Sequence[int]):
cdef class ArrayRef:
    """A read-only view of a contiguous array of int64.

    Parameters
    ----------
    source: a list or tuple of ints (copied), an ``array.array``, NumPy array or other
        buffer of int64 (viewed, kept alive), or another ArrayRef (viewed).

    The ArrayRef of a tensor's sizes does not change when the tensor does. It has the hash of the
    tuple of its ints and is equal to it. Added to a tuple, it gives a tuple.

    Raises
    ------
    EnforceNotMet, also a TypeError: not a sequence of ints, or a buffer of
        another type, or not contiguous.

    Follows c10::ArrayRef, c10/util/ArrayRef.h, PyTorch 1.8.1, except that it keeps alive what it
    views.

    >>> from bridge.c10 import ArrayRef
    >>> ref = ArrayRef([2, 3, 4])
    >>> ref[1:], ref == (2, 3, 4), ref.slice(0, 2).vec()
    (ArrayRef([3, 4]), True, [2, 3])
    >>> ref[:-1] + (5,), (1,) + ref, ref.numel()
    ((2, 3, 5), (1, 2, 3, 4), 24)
    """

    # pyi: def __new__(cls, source: Sequence[int] | BufferLike = ()) -> Self: ...
    def __cinit__(self, source=()):
        cdef ArrayRef other
        self.ptr = self.inline
        if isinstance(source, ArrayRef):
            other = <ArrayRef>source
            self.ptr = other.ptr
            self.n = other.n
            self.owner = other.keeper()
            return
        if isinstance(source, (list, tuple)):
            self.read(tuple(source))
            return
        if PyObject_CheckBuffer(source) and not isinstance(source, (bytes, bytearray)):
            self.view(source)
            return
        if isinstance(source, Sequence) and not isinstance(source, (str, bytes, bytearray)):
            self.read(tuple(source))
            return
        raise EnforceTypeError(
            f"An ArrayRef views a list, a tuple, or a buffer of int64, not "
            f"{type(source).__name__}.", "ArrayRef")

    cdef int64_t* allocate(self, Py_ssize_t n) except NULL:
        """Return room for `n` values of its own, not set yet."""
        cdef int64_t* data = self.inline
        if n > INLINE_DIMS:
            data = <int64_t*>malloc(n * sizeof(int64_t))
            if data == NULL:
                raise MemoryError(f"{n} values")
            self.allocated = True
        self.ptr = data
        self.n = n
        return data

    cdef int read(self, tuple values) except -1:
        """Copy ints out of a tuple."""
        cdef Py_ssize_t n = len(values)
        cdef int64_t* data = self.allocate(n)
        cdef Py_ssize_t i
        for i in range(n):
            data[i] = to_int64(values[i], "ArrayRef")
        return 0

    cdef int view(self, object source) except -1:
        """View the int64 of a buffer, which is kept alive."""
        cdef const int64_t[::1] values
        try:
            view = memoryview(source)
        except (TypeError, ValueError, BufferError) as error:
            raise EnforceTypeError(
                f"{type(source).__name__} does not provide a buffer of int64: {error}",
                "ArrayRef") from error
        if view.itemsize != 8 or view.format.lstrip("@=<") not in ("l", "q") or view.ndim != 1:
            raise EnforceTypeError(
                f"An ArrayRef views one dimension of int64; this buffer has {view.ndim} "
                f"of format {view.format!r}. Convert it, for instance by .astype('int64').",
                "ArrayRef")
        if not view.c_contiguous:
            raise EnforceTypeError(
                "An ArrayRef views contiguous memory; this buffer has strides. Copy it first.",
                "ArrayRef")
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

    def __len__(self) -> int:
        return self.n

    # pyi: overload (index: SupportsIndex) -> int
    # pyi: overload (index: slice[Any, Any, Any]) -> ArrayRef
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
        """Return a view of `n` values from `start` on."""
        cdef ArrayRef ref = ArrayRef.__new__(ArrayRef)
        ref.ptr = self.ptr + start
        ref.n = n
        ref.owner = self.keeper()
        return ref

    cdef object keeper(self):
        """Return the object that keeps the values; a view of a view keeps it and not the view."""
        return self if self.owner is None else self.owner

    def __iter__(self) -> Iterator[int]:
        cdef Py_ssize_t i
        for i in range(self.n):
            yield self.ptr[i]

    def __contains__(self, value: object) -> bool:
        cdef Py_ssize_t i
        for i in range(self.n):
            if self.ptr[i] == value:
                return True
        return False

    def __eq__(self, other: object) -> bool:
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

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __add__(self, other: tuple[int, ...] | ArrayRef) -> Shape:
        return Shape((*self, *other)) if isinstance(other, (tuple, ArrayRef)) else NotImplemented

    def __radd__(self, other: tuple[int, ...]) -> Shape:
        return Shape((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __repr__(self):
        return f"ArrayRef({self.vec()})"

    def __reduce__(self) -> tuple[Any, ...]:
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
    def data(self) -> memoryview:
        """The values as a read-only ``memoryview`` of int64; no copy."""
        return memoryview(self)

    def size(self) -> int:
        """Return the number of values."""
        return self.n

    def numel(self) -> int:
        """Return the product of the values: the number of elements, if they are sizes."""
        return prod(self)

    def empty(self) -> bool:
        """Return whether there are no values."""
        return self.n == 0

    def front(self) -> int:
        """Return the first value. Raises EnforceNotMet, also an IndexError: it is empty."""
        return self[0]

    def back(self) -> int:
        """Return the last value. Raises EnforceNotMet, also an IndexError: it is empty."""
        return self[self.n - 1]

    def equals(self, other: Sequence[int] | BufferLike) -> bool:
        """Return whether `other`, a sequence of ints, has the same values."""
        return self == (other if isinstance(other, ArrayRef) else ArrayRef(other))

    def slice(self, start: int, n: int | None = None) -> ArrayRef:
        """Return a view of the `n` values from `start` on; by default of all of them.

        Raises EnforceNotMet, also an IndexError: out of range.
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

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """Return the first index of `value`, as ``tuple.index``. Raises ValueError: not present."""
        return tuple(self).index(value, start, self.n if stop is None else stop)

    def count(self, value: Any) -> int:
        """Return how many of the values equal `value`."""
        return tuple(self).count(value)

    def vec(self) -> list[int]:
        """Return the values in a new list."""
        cdef Py_ssize_t i
        return [self.ptr[i] for i in range(self.n)]


Sequence.register(ArrayRef)


cdef ArrayRef array_ref_of(const int64_t* values, Py_ssize_t n):
    """Return an ArrayRef with its own copy of `n` values."""
    cdef ArrayRef ref = ArrayRef.__new__(ArrayRef)
    memcpy(ref.allocate(n), values, n * sizeof(int64_t))
    return ref


cdef int64_t index_to_int64(object value, str caller) except? -1:
    """Do what `to_int64` does, for everything but an ``int`` that fits."""
    cdef int overflow = 0
    cdef int64_t result
    if not PyLong_Check(value):
        try:
            value = value.__index__()
        except AttributeError:
            raise EnforceTypeError(
                f"Sizes are integers, and this is none: {shown(value)}.", caller) from None
        except TypeError as error:
            raise EnforceTypeError(
                f"Sizes are integers, not {type(value).__name__}.", caller) from error
        if not PyLong_Check(value):
            raise EnforceTypeError(
                f"Sizes are integers, and this __index__ returned {value!r}.", caller)
    result = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow:
        raise EnforceValueError(f"{value} does not fit an int64.", caller)
    return result
