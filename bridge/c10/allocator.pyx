# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, auto_pickle=False
"""Allocators: one a device, replaceable, each buffer back to where it came from.

The name, alignment and raw/typed split follow TensorFlow's ``tsl::Allocator``;
registry and DataPtr follow c10/core/Allocator.h, PyTorch 1.8.1.
"""

from operator import index as to_index

cimport cython
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uintptr_t
from libc.stdlib cimport free

from bridge.c10.device cimport Device, as_device
from bridge.c10.pages cimport advise_huge_pages
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.dlpack.abi cimport DL_CPU, DL_CUDA

from bridge.c10.device import DeviceType
from bridge.c10.errors import EnforceNotMet, EnforceTypeError, EnforceValueError

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident()

cdef extern from "stdlib.h" nogil:
    int posix_memalign(void** out, size_t alignment, size_t nbytes)

cdef enum:
    DEFAULT_ALIGNMENT = 64      # a cache line, and the widest vector register


@cython.final
cdef class AllocatorStats:
    """What an allocator has given out (read-only)."""

    @property
    def allocated_bytes(self):
        """Bytes in use now."""
        return self.c_allocated

    @property
    def peak_bytes(self):
        """The most bytes that were in use at a time."""
        return self.c_peak

    @property
    def allocations(self):
        """How many buffers were given out so far."""
        return self.c_allocations

    cdef void add(self, int64_t nbytes) noexcept:
        self.c_allocations += 1
        self.c_allocated += nbytes
        if self.c_allocated > self.c_peak:
            self.c_peak = self.c_allocated

    cdef void remove(self, int64_t nbytes) noexcept:
        self.c_allocated -= nbytes

    def __repr__(self):
        return (f"AllocatorStats(allocated_bytes={self.c_allocated}, "
                f"peak_bytes={self.c_peak}, allocations={self.c_allocations})")


@cython.final
@cython.freelist(64)
@cython.no_gc
cdef class DataPtr:
    """A buffer and the duty to give it back, which its end does.

    Follows c10::DataPtr, c10/core/Allocator.h, PyTorch 1.8.1.
    """

    def __init__(self):
        raise TypeError("A DataPtr comes from Allocator.allocate(nbytes).")

    @property
    def address(self):
        """Where the buffer begins; 0 where it has no bytes."""
        return <uintptr_t>self.data

    @property
    def nbytes(self):
        """How many bytes it has."""
        return self.c_nbytes

    def __dealloc__(self):
        # Not under the garbage collector: the bridge makes no cycle through here, and an allocator
        # that keeps DataPtrs of its own breaks it.
        cdef Allocator allocator = self.allocator
        cdef void* data = self.data
        if data == NULL:
            return
        self.data = NULL
        if self.counted:
            allocator.stats.remove(self.c_nbytes)
        if allocator.builtin:
            free(data)
        elif self.memory is None:
            give_back(allocator, data)
        # else it goes with this


cdef int give_back(Allocator allocator, void* data) except -1:
    allocator.raw_deallocate(<uintptr_t>data)
    return 0


cdef class Allocator:
    """Host memory, aligned; subclass it to bring your own.

    Memory for elements of POD types comes from here. Elements of the others (strings, tensors,
    registered classes) are Python objects, in Python's own memory, and no allocator is asked.

    A subclass overrides ``raw_allocate(nbytes) -> address`` and
    ``raw_deallocate(address)``; ``allocate`` then wraps what they give. `alignment`
    (bytes, a power of two) is what `raw_allocate` of this class keeps to.

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
        self.told = {}
        self.builtin = type(self) is Allocator

    def raw_allocate(self, nbytes):
        """The address of `nbytes` new bytes, 0 for none; for raw_deallocate to take back.

        Raises MemoryError: there are not so many. EnforceNotMet, also a TypeError
        or ValueError: `nbytes` is no count.
        """
        cdef int64_t n = _count(nbytes)
        cdef void* data = NULL
        if n:
            data = host_allocate(n, _alignment(self))
            self.sizes[<uintptr_t>data] = n
            self.stats.add(n)
            thread = PyThread_get_thread_ident()
            if thread in self.told:
                self.told[thread] = True
        return <uintptr_t>data

    def raw_deallocate(self, address):
        """Take back what raw_allocate gave; 0 is nothing and welcome.

        Raises EnforceNotMet: the address did not come from this allocator, or
        was taken back before.
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
        free(<void*>data)

    def allocate(self, nbytes):
        """A DataPtr to `nbytes` new bytes, which gives them back at its end.

        Raises MemoryError: there are not so many.
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
            # Another thread may be in there, too, and this one twice, if it makes tensors.
            thread = PyThread_get_thread_ident()
            outer = self.told.get(thread)
            self.told[thread] = False
            try:
                given = self.raw_allocate(nbytes)
            finally:
                told = self.told.pop(thread)
                if outer is not None:
                    self.told[thread] = outer
            if isinstance(given, bool) or not isinstance(given, int) or not (
                    0 <= given <= <uintptr_t>-1):
                raise EnforceNotMet(
                    f"{type(self).__name__}.raw_allocate gave {given!r}; an address is an int.", "Allocator.allocate")
            if not given:
                raise MemoryError(
                    f"{type(self).__name__}.raw_allocate gave no address for {nbytes} bytes.")
            address = given
            ptr.data = <void*>address
            ptr.memory = self._memory_at(address)
            ptr.counted = not told
        if ptr.counted:
            self.stats.add(nbytes)
        return ptr

    def _memory_at(self, address):
        """For allocators whose buffers are objects': the object, which `allocate` then keeps for
        as long as the buffer is in use, instead of calling raw_deallocate. None: there is none."""
        return None

    def allocate_typed(self, T, n):
        """A DataPtr to memory for `n` elements of the POD type `T`, not initialised.

        Raises MemoryError: there is not so much, or its bytes are more than an int64 counts.
        EnforceNotMet, also a TypeError: `T` is no element type, or not POD, so that its elements
        are Python objects, which live in Python's own memory.
        """
        cdef TypeMeta dtype = as_type(T)
        cdef int64_t count = _count(n)
        if not dtype.c_is_pod:
            raise EnforceTypeError(
                f"Elements of the non-POD type {dtype} are Python objects; an allocator gives "
                "plain memory. Use caffe2.empty(dims, T).", "Allocator.allocate_typed", condition="T.is_pod")
        if count > INT64_MAX // dtype.itemsize:
            raise MemoryError(f"{n} elements of {dtype} are more than memory can be.")
        return self.get(count * dtype.itemsize)

    def __repr__(self):
        return f"<{type(self).__name__}: {self.stats!r}>"


cdef int64_t _alignment(Allocator allocator) except -1:
    cdef int64_t alignment
    if allocator.alignment is _default_alignment:
        return DEFAULT_ALIGNMENT
    if isinstance(allocator.alignment, bool) or not isinstance(allocator.alignment, int):
        raise EnforceTypeError(
            f"An alignment is an int, not {allocator.alignment!r}.", "Allocator.alignment")
    if allocator.alignment < 1 or allocator.alignment & (allocator.alignment - 1):
        raise EnforceValueError(
            f"An alignment is a power of two, not {allocator.alignment}.",
            "Allocator.alignment")
    if allocator.alignment > 1 << 40:
        raise MemoryError(f"No memory is aligned to {allocator.alignment} bytes.")
    alignment = allocator.alignment
    return alignment if alignment >= <int64_t>sizeof(void*) else <int64_t>sizeof(void*)


cdef object _default_alignment = DEFAULT_ALIGNMENT


cdef void* host_allocate(int64_t nbytes, int64_t alignment) except NULL:
    cdef void* data = NULL
    if posix_memalign(&data, alignment, nbytes) != 0 or data == NULL:
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
            f"A number of bytes is not negative, as {nbytes} is.",
            "Allocator.allocate", condition="nbytes >= 0")
    if nbytes > INT64_MAX:
        raise MemoryError(f"{nbytes} bytes are more than an address can name.")
    return nbytes


cdef Allocator _cpu = Allocator()
# What SetAllocator was given for the others: (device type, index) -> Allocator; index -1 holds
# for the whole type.
cdef dict _set = {}
# Where nothing was set: device type -> function of an index that makes the allocator, and what
# it made.
cdef dict _providers = {}
cdef dict _provided = {}


def set_provider(device_type, provider):
    """Let `provider(index) -> Allocator` make the default allocators of a device type.

    It is asked once for each index, and each time for -1, the device that is current then.
    """
    _providers[int(device_type)] = provider


cdef Allocator allocator_of(int32_t device_type, int32_t index):
    """The allocator in force for a device; EnforceNotMet where there is none."""
    if device_type == DL_CPU:
        return _cpu
    place = (device_type, index)
    found = _set.get(place)
    if found is None:
        found = _set.get((device_type, -1))
    if found is None:
        found = _provided.get(place)
    if found is None and device_type in _providers:
        found = _providers[device_type](index)
        if index >= 0:          # without a number it is the current device, which changes
            _provided[place] = found
    if found is None:
        raise EnforceNotMet(
            f"There is no allocator for {DeviceType(device_type).name} memory. "
            "Set one with c10.SetAllocator(device, allocator).", "GetAllocator")
    return <Allocator>found


def GetAllocator(D):
    """The Allocator in force for the device that `D` names.

    Raises EnforceNotMet: there is none; c10.SetAllocator sets one.

    Follows c10::GetAllocator, c10/core/Allocator.h, PyTorch 1.8.1.
    """
    cdef Device device = as_device(D)
    return allocator_of(device.c_type, device.c_index)


def SetAllocator(D, allocator):
    """Allocate on the device that `D` names with `allocator` from now on.

    A device without a number means all of its type, those that were set one by one
    included. Buffers in use go back to the allocator they came from.

    Raises EnforceNotMet, also a TypeError: `allocator` is no c10.Allocator.

    Follows c10::SetAllocator, c10/core/Allocator.h, PyTorch 1.8.1.
    """
    global _cpu
    cdef Device device = as_device(D)
    if not isinstance(allocator, Allocator):
        raise EnforceTypeError(
            f"An allocator is a c10.Allocator or of a subclass, not {type(allocator).__name__}.", "SetAllocator")
    if device.c_type == DL_CPU:
        _cpu = <Allocator>allocator
    elif device.c_index > 0 or (device.c_type == DL_CUDA and device.c_index == 0) or (
            isinstance(D, str) and ":" in D):
        _set[(device.c_type, device.c_index)] = allocator
    else:
        # Of a type other than CUDA, "ext_dev" and "ext_dev:0" are one Device: all of the type.
        for place in [place for place in _set if place[0] == device.c_type]:
            del _set[place]
        _set[(device.c_type, -1)] = allocator
