# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""Memory that is used once: code that reads what it has freed finds the same each time."""

from libc.stdint cimport uintptr_t
from libc.string cimport memcpy, memset
from posix.mman cimport MAP_ANON, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap

import sys
import sysconfig


cdef extern from "Python.h":
    cdef char PyBytes_Type
    ctypedef enum PyMemAllocatorDomain:
        PYMEM_DOMAIN_MEM
        PYMEM_DOMAIN_OBJ
    ctypedef struct PyMemAllocatorEx:
        void *ctx
        void *(*malloc)(void *ctx, size_t size) noexcept nogil
        void *(*calloc)(void *ctx, size_t count, size_t size) noexcept nogil
        void *(*realloc)(void *ctx, void *block, size_t size) noexcept nogil
        void (*free)(void *ctx, void *block) noexcept nogil
    void PyMem_GetAllocator(PyMemAllocatorDomain domain, PyMemAllocatorEx *allocator)
    void PyMem_SetAllocator(PyMemAllocatorDomain domain, PyMemAllocatorEx *allocator)

cdef enum:
    HEADER = 16  # bytes before a block, which hold its size, plus 1 once it is freed
    SPOILED = 0xDD
    MANY = 1 << 30  # references

cdef uintptr_t ADDRESS = 0x100000000000  # where systems place nothing by themselves
cdef size_t SIZE = 1 << 29

cdef char *start = NULL
cdef char *unused = NULL
cdef char *end = NULL
cdef Py_ssize_t blocks = 0
cdef bint spoils = False
# Of objects and of other memory. Both are called with the GIL.
cdef PyMemAllocatorEx[2] before


cdef inline bint is_fresh(void *block) noexcept nogil:
    return start <= <char *> block < end


cdef void *take(void *context, size_t size) noexcept nogil:
    global unused, blocks
    cdef PyMemAllocatorEx *original = <PyMemAllocatorEx *> context
    cdef size_t whole = ((size | 1) + 15 & ~<size_t> 15) + HEADER
    if size > SIZE or whole > <size_t> (end - unused):
        return original.malloc(original.ctx, size)
    cdef char *block = unused + HEADER
    (<size_t *> unused)[0] = whole - HEADER
    unused += whole
    blocks += 1
    return block


cdef void *take_zeros(void *context, size_t count, size_t size) noexcept nogil:
    cdef PyMemAllocatorEx *original = <PyMemAllocatorEx *> context
    cdef void *block
    if size and count > SIZE // size:
        return original.calloc(original.ctx, count, size)
    block = take(context, count * size)
    if block and not is_fresh(block):
        memset(block, 0, count * size)
    return block


cdef void *take_more(void *context, void *block, size_t size) noexcept nogil:
    cdef PyMemAllocatorEx *original = <PyMemAllocatorEx *> context
    cdef size_t old
    cdef void *larger
    if not block:
        return take(context, size)
    if not is_fresh(block):
        return original.realloc(original.ctx, block, size)
    old = (<size_t *> (<char *> block - HEADER))[0] & ~<size_t> 1
    if size <= old:
        return block
    larger = take(context, size)
    if larger:
        memcpy(larger, block, old)
        give_back(context, block)
    return larger


cdef void give_back(void *context, void *block) noexcept nogil:
    global blocks
    cdef PyMemAllocatorEx *original = <PyMemAllocatorEx *> context
    cdef size_t *size
    if not is_fresh(block):
        original.free(original.ctx, block)
        return
    size = <size_t *> (<char *> block - HEADER)
    if size[0] & 1:
        return
    if original == &before[0]:
        keep_object(<size_t *> block, size[0])
    elif spoils:
        memset(block, SPOILED, size[0])
    size[0] |= 1
    blocks -= 1


cdef void keep_object(size_t *words, size_t size) noexcept nogil:
    """Let a freed object stay as it is, with references that last; spoil the text of bytes.

    Who gives up a reference too many so frees nothing twice. Before an object, Python may keep 16
    or 32 bytes, which are then zeros and small numbers.
    """
    cdef size_t i
    for i in range(0, 5, 2):
        if size >= 8 * i + 16 and words[i] == 0 and words[i + 1] > 4096:
            words[i] = MANY
            if spoils and words[i + 1] == <size_t> &PyBytes_Type and size > 8 * i + 32:
                memset(&words[i + 4], SPOILED, size - 8 * i - 32)
            return


def use_memory_once(spoil: bool) -> None:
    """Use memory of Python once from now on, at addresses that are alike in each process.

    For the rest of a process that ends soon. Freed objects stay as they are. Other memory that is
    freed stays, too, or, if spoil is true, is filled with 0xDD. When 512 MB are used, the rest is
    used as always. Python without the GIL lets nobody replace its allocator: nothing happens.
    """
    global start, unused, end, spoils
    cdef PyMemAllocatorDomain[2] domains = [PYMEM_DOMAIN_OBJ, PYMEM_DOMAIN_MEM]
    cdef PyMemAllocatorEx fresh
    cdef void *memory
    if start or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return
    memory = mmap(
        <void *> ADDRESS, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0)
    if memory == MAP_FAILED:
        return
    start = unused = <char *> memory
    spoils = spoil
    end = start + SIZE
    in_use = sys.getallocatedblocks
    sys.getallocatedblocks = lambda: in_use() + blocks
    for i in range(2):
        PyMem_GetAllocator(domains[i], &before[i])
        fresh.ctx = &before[i]
        fresh.malloc, fresh.calloc = take, take_zeros
        fresh.realloc, fresh.free = take_more, give_back
        PyMem_SetAllocator(domains[i], &fresh)
