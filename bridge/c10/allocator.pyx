# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Allocators: one per device, replaceable; a buffer is returned to the one it came from.

The name, alignment and raw/typed split follow TensorFlow's ``tsl::Allocator``;
registry and DataPtr follow c10/core/Allocator.h, PyTorch 1.8.1.
"""

import threading
from operator import index as to_index

cimport cython
cimport bridge.c10.python_api   # BRIDGE_LOAD
from cpython.object cimport PyObject
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uintptr_t

from bridge.c10.device cimport Device, as_device
from bridge.c10.madvise cimport advise_huge_pages
from bridge.c10.python_api cimport (
    FREE_THREADED,
    add_to,
    lock_object,
    make_immortal,
    published_pointer,
    publish_pointer,
    set_word64,
    unlock_object,
    word64,
)
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.dlpack.abi cimport DL_CPU, DL_CUDA

from bridge.c10.device import DeviceType
from bridge.c10.errors import (
    EnforceBufferError,
    EnforceNotMet,
    EnforceTypeError,
    EnforceValueError,
)

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident()

cdef extern from *:
    """
    #ifdef _WIN32               /* free() does not take aligned memory there */
    #include <malloc.h>
    #define bridge_aligned_alloc(alignment, nbytes) _aligned_malloc(nbytes, alignment)
    #define bridge_aligned_free _aligned_free
    #else
    #include <stdlib.h>
    static void *bridge_aligned_alloc(size_t alignment, size_t nbytes) {
        void *data;
        return posix_memalign(&data, alignment, nbytes) == 0 ? data : NULL;
    }
    #define bridge_aligned_free free
    #endif
    """
    void* aligned_alloc "bridge_aligned_alloc"(size_t alignment, size_t nbytes) nogil
    void aligned_free "bridge_aligned_free"(void* data) nogil

cdef enum:
    DEFAULT_ALIGNMENT = 64      # a cache line, and the widest vector register


@cython.final
cdef class AllocatorStats:
    """Counts of what an allocator has allocated (read-only)."""

    @property
    def allocated_bytes(self) -> int:
        """The bytes in use now."""
        return word64(&self.c_allocated)

    @property
    def peak_bytes(self) -> int:
        """The most bytes that were in use at the same time."""
        return word64(&self.c_peak)

    @property
    def allocations(self) -> int:
        """The number of buffers allocated so far."""
        return word64(&self.c_allocations)

    cdef void add(self, int64_t nbytes) noexcept:
        cdef int64_t now
        add_to(&self.c_allocations, 1)
        now = add_to(&self.c_allocated, nbytes)
        lock_object(self)
        if now > self.c_peak:
            set_word64(&self.c_peak, now)
        unlock_object()

    cdef void remove(self, int64_t nbytes) noexcept:
        add_to(&self.c_allocated, -nbytes)

    def __repr__(self):
        return (f"AllocatorStats(allocated_bytes={self.allocated_bytes}, "
                f"peak_bytes={self.peak_bytes}, allocations={self.allocations})")


@cython.final
@cython.freelist(64)
@cython.no_gc
cdef class DataPtr:
    """The owner of a buffer, which it returns to its allocator when it is deallocated.

    Follows c10::DataPtr, c10/core/Allocator.h, PyTorch 1.8.1.
    """

    def __init__(self):
        raise TypeError("A DataPtr is created by Allocator.allocate(nbytes).")

    @property
    def address(self) -> int:
        """The address of the buffer; 0 if it has no bytes."""
        return <uintptr_t>self.data

    @property
    def nbytes(self) -> int:
        """The size of the buffer in bytes."""
        return self.c_nbytes

    def __dealloc__(self):
        # Not tracked by the garbage collector: the bridge creates no reference cycle through a
        # DataPtr; an allocator that keeps its own DataPtrs has to break the cycle.
        cdef Allocator allocator = self.allocator
        cdef void* data = self.data
        if data == NULL:
            return
        self.data = NULL
        if self.counted:
            allocator.stats.remove(self.c_nbytes)
        if allocator.builtin:
            aligned_free(data)
        elif self.memory is None:
            _deallocate(allocator, data)
        # else `memory` frees it


cdef int _deallocate(Allocator allocator, void* data) except -1:
    allocator.raw_deallocate(<uintptr_t>data)
    return 0


cdef class Allocator:
    """An allocator of aligned host memory; the base class of all others.

    It allocates memory for elements of POD types. Elements of other types (strings, tensors,
    registered classes) are Python objects, which no Allocator allocates.

    A subclass overrides ``raw_allocate(nbytes) -> address`` and ``raw_deallocate(address)``, which
    ``allocate`` then calls. `alignment` (bytes, a power of two) is that of the addresses that
    `raw_allocate` of this class returns.

    >>> from bridge.c10 import Allocator
    >>> allocator = Allocator()
    >>> buffer = allocator.allocate(1000)
    >>> buffer.nbytes, buffer.address % 64, allocator.stats.allocated_bytes
    (1000, 0, 1000)
    >>> del buffer
    >>> allocator.stats
    AllocatorStats(allocated_bytes=0, peak_bytes=1000, allocations=1)
    """

    def __cinit__(self, *args, **kwargs):
        self.alignment = DEFAULT_ALIGNMENT
        self.stats = AllocatorStats.__new__(AllocatorStats)
        self.sizes = {}
        self.base_called = {}
        self.builtin = type(self) is Allocator

    def raw_allocate(self, nbytes: int) -> int:
        """Return the address of `nbytes` new bytes, to be freed by raw_deallocate; 0 for 0 bytes.

        Raises MemoryError: there is not enough memory. EnforceNotMet, also a TypeError or
        ValueError: `nbytes` is not an int, or negative.
        """
        cdef int64_t n = _count(nbytes)
        cdef void* data
        cdef object address, thread
        if n == 0:
            return 0
        thread = PyThread_get_thread_ident()
        data = host_allocate(n, _alignment(self))
        try:
            address = <uintptr_t>data
            self.sizes[address] = n
        except MemoryError:
            aligned_free(data)
            raise
        self.stats.add(n)
        if thread in self.base_called:
            self.base_called[thread] = True
        return address

    def raw_deallocate(self, address: int) -> None:
        """Free what raw_allocate returned; 0 does nothing.

        Raises EnforceNotMet: the address is not of this allocator, or was freed before.
        """
        cdef uintptr_t data
        if isinstance(address, bool) or not isinstance(address, int):
            raise EnforceTypeError(
                f"An address is an int, not {type(address).__name__}.",
                "Allocator.raw_deallocate")
        if not address:
            return
        nbytes = self.sizes.pop(address, None)
        if nbytes is None:
            raise EnforceNotMet(
                f"{address:#x} is not a live address of this allocator.",
                "Allocator.raw_deallocate")
        self.stats.remove(nbytes)
        data = address
        aligned_free(<void*>data)

    def allocate(self, nbytes: int) -> DataPtr:
        """Return a DataPtr to `nbytes` new bytes, which are freed with it.

        Raises MemoryError: there is not enough memory.
        """
        return self.get(_count(nbytes))

    cdef DataPtr get(self, int64_t nbytes):
        cdef DataPtr ptr = DataPtr.__new__(DataPtr)
        cdef uintptr_t address
        ptr.allocator = self
        ptr.c_nbytes = nbytes
        if nbytes == 0:
            return ptr
        if self.builtin:
            ptr.data = host_allocate(nbytes, _alignment(self))
            ptr.counted = True
        else:
            # Other threads may be here at the same time, and this one again, if raw_allocate
            # creates tensors.
            thread = PyThread_get_thread_ident()
            outer = self.base_called.get(thread)
            self.base_called[thread] = False
            try:
                given = self.raw_allocate(nbytes)
            finally:
                counted = self.base_called.pop(thread)
                if outer is not None:
                    self.base_called[thread] = outer
            if isinstance(given, bool) or not isinstance(given, int) or not (
                    0 <= given <= <uintptr_t>-1):
                raise EnforceNotMet(
                    f"{type(self).__name__}.raw_allocate returned {given!r}; an address is an int.",
                    "Allocator.allocate")
            if not given:
                raise MemoryError(
                    f"{type(self).__name__}.raw_allocate returned no address for {nbytes} bytes.")
            address = given
            ptr.data = <void*>address
            ptr.memory = self._memory_at(address)
            ptr.counted = not counted
        if ptr.counted:
            self.stats.add(nbytes)
        return ptr

    def _memory_at(self, address):
        """Return the object that owns the buffer at `address`, or None.

        For subclasses whose buffers belong to objects: `allocate` keeps the object while the
        buffer is in use, and does not call raw_deallocate.
        """
        return None

    def allocate_typed(self, T: TypeLike, n: int) -> DataPtr:
        """Return a DataPtr to memory for `n` elements of the POD type `T`, not initialised.

        Raises MemoryError: there is not enough memory, or more bytes than an int64 counts.
        EnforceNotMet, also a TypeError: `T` is not an element type, or not POD.
        """
        cdef TypeMeta dtype = as_type(T)
        cdef int64_t count = _count(n)
        if not dtype.c_is_pod:
            raise EnforceTypeError(
                f"Elements of the non-POD type {dtype} are Python objects, and an allocator "
                "allocates plain memory. Use caffe2.empty(dims, T).", "Allocator.allocate_typed",
                condition="T.is_pod")
        if count > INT64_MAX // dtype.itemsize:
            raise MemoryError(f"{n} elements of {dtype} exceed any memory.")
        return self.get(count * dtype.itemsize)

    def __repr__(self):
        return f"<{type(self).__name__}: {self.stats!r}>"


cdef extern from *:
    """
    #define BRIDGE_HAS_ALIGNMENT(allocator, one) \
        (BRIDGE_WORD(&(allocator)->alignment) == (PyObject *)(one))
    #define BRIDGE_ALIGNMENT(allocator) BRIDGE_LOAD(allocator, alignment)
    """
    # Another thread may set the attribute.
    bint has_alignment "BRIDGE_HAS_ALIGNMENT"(Allocator allocator, object one) noexcept
    object alignment_of "BRIDGE_ALIGNMENT"(Allocator allocator)


cdef int64_t _alignment(Allocator allocator) except -1:
    cdef int64_t alignment
    if has_alignment(allocator, _default_alignment):
        return DEFAULT_ALIGNMENT
    wanted = alignment_of(allocator)
    if isinstance(wanted, bool) or not isinstance(wanted, int):
        raise EnforceTypeError(f"An alignment is an int, not {wanted!r}.", "Allocator.alignment")
    if wanted < 1 or wanted & (wanted - 1):
        raise EnforceValueError(
            f"An alignment is a power of two, not {wanted}.", "Allocator.alignment")
    if wanted > 1 << 40:
        raise MemoryError(f"Memory cannot be aligned to {wanted} bytes.")
    alignment = wanted
    return alignment if alignment >= <int64_t>sizeof(void*) else <int64_t>sizeof(void*)


cdef object _default_alignment = DEFAULT_ALIGNMENT


cdef void* host_allocate(int64_t nbytes, int64_t alignment) except NULL:
    cdef void* data = aligned_alloc(alignment, nbytes)
    if data == NULL:
        raise MemoryError(f"{nbytes} bytes of host memory could not be allocated.")
    advise_huge_pages(data, nbytes)
    return data


cdef int64_t _count(object nbytes) except -1:
    if isinstance(nbytes, bool) or not hasattr(nbytes, "__index__"):
        raise EnforceTypeError(
            f"A number of bytes is an int, not {nbytes!r}.", "Allocator.allocate")
    try:
        nbytes = to_index(nbytes)
    except TypeError as error:
        raise EnforceTypeError(
            f"A number of bytes is an int, not {nbytes!r}.", "Allocator.allocate") from error
    if nbytes < 0:
        raise EnforceValueError(
            f"A number of bytes must not be negative: {nbytes}.",
            "Allocator.allocate", condition="nbytes >= 0")
    if nbytes > INT64_MAX:
        raise MemoryError(f"{nbytes} bytes exceed the address space.")
    return nbytes


cdef Allocator _cpu = Allocator()
make_immortal(_cpu)
# The same, for threads without a lock between them; those that were set are kept, as another thread
# may be about to use one.
cdef PyObject* _cpu_now = <PyObject*>_cpu
cdef list _kept = []
_set_lock = threading.Lock()
# Set by SetAllocator, except for the CPU: (device type, index) -> Allocator; index -1 is the whole
# type.
cdef dict _set = {}
# Where nothing is set: device type -> function of an index that creates the allocator, and those
# that were created: (device type, index) -> Allocator.
cdef dict _default_factories = {}
cdef dict _defaults = {}


def register_default_allocator(device_type: int, factory: Callable[[int], Allocator]) -> None:
    """Register ``factory(index) -> Allocator`` for the devices of a type that have none set.

    It is called once for each index, and each time for -1, the device that is then current. As
    REGISTER_ALLOCATOR, c10/core/Allocator.h, PyTorch 1.8.1; the adapters of frameworks call it.
    """
    _default_factories[int(device_type)] = factory


cdef Allocator allocator_of(int32_t device_type, int32_t index):
    """Return the allocator of a device. Raises EnforceNotMet: there is none."""
    if device_type == DL_CPU:
        return <Allocator>published_pointer(<void**>&_cpu_now)
    place = (device_type, index)
    found = _set.get(place)
    if found is None:
        found = _set.get((device_type, -1))
    if found is None:
        found = _defaults.get(place)
    if found is None and device_type in _default_factories:
        found = _default_factories[device_type](index)
        if index >= 0:          # -1 is the current device, which changes
            found = _defaults.setdefault(place, found)
    if found is None:
        raise EnforceBufferError(
            f"There is no allocator for {DeviceType(device_type).name} memory. "
            "Set one with c10.SetAllocator(device, allocator).", "GetAllocator")
    return <Allocator>found


def GetAllocator(D: DeviceLike) -> Allocator:
    """Return the Allocator of the device that `D` names.

    Raises EnforceNotMet: there is none; c10.SetAllocator sets one.

    Follows c10::GetAllocator, c10/core/Allocator.h, PyTorch 1.8.1.
    """
    cdef Device device = as_device(D)
    return allocator_of(device.c_type, device.c_index)


def SetAllocator(D: DeviceLike, allocator: Allocator) -> None:
    """Set the allocator of the device that `D` names.

    A device without a number stands for all devices of its type, including those that were set
    one by one. Buffers in use are returned to the allocator they came from.

    Raises EnforceNotMet, also a TypeError: `allocator` is not a c10.Allocator.

    Follows c10::SetAllocator, c10/core/Allocator.h, PyTorch 1.8.1.
    """
    global _cpu
    cdef Device device = as_device(D)
    if not isinstance(allocator, Allocator):
        raise EnforceTypeError(
            f"An allocator must be a c10.Allocator, not {type(allocator).__name__}.",
            "SetAllocator")
    if device.c_type == DL_CPU:
        with _set_lock:
            if FREE_THREADED and not any([allocator is one for one in _kept]):
                _kept.append(allocator)
            _cpu = <Allocator>allocator
            publish_pointer(<void**>&_cpu_now, <void*>allocator)
    elif device.c_index > 0 or (device.c_type == DL_CUDA and device.c_index == 0) or (
            isinstance(D, str) and ":" in D):
        with _set_lock:
            _set[(device.c_type, device.c_index)] = allocator
    else:
        # Except for CUDA, "ext_dev" and "ext_dev:0" are the same Device: all of the type.
        with _set_lock:
            for place in [place for place in list(_set) if place[0] == device.c_type]:
                _set.pop(place, None)
            _set[(device.c_type, -1)] = allocator
