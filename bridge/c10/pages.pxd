# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t, uintptr_t

cdef extern from *:
    """
    #include <sys/mman.h>
    #ifndef MADV_HUGEPAGE       /* not on Linux */
    #define MADV_HUGEPAGE MADV_NORMAL
    #endif
    """
    int madvise(void* address, size_t nbytes, int advice) nogil
    int MADV_DONTNEED
    int MADV_HUGEPAGE

cdef extern from "string.h" nogil:
    void* memset(void* data, int value, size_t nbytes)

cdef enum:
    PAGE = 4096
    WORTH_ADVISING = 4 << 20    # bytes: less than two huge pages is not


# New memory of many MiB costs more in page faults than in what is written to it; with huge pages
# there are 512 times fewer. Advice only: a kernel without them says no, and nothing is different.
cdef inline void advise_huge_pages(void* data, int64_t nbytes) noexcept nogil:
    cdef uintptr_t begin = (<uintptr_t>data + PAGE - 1) & ~<uintptr_t>(PAGE - 1)
    cdef uintptr_t end = (<uintptr_t>data + nbytes) & ~<uintptr_t>(PAGE - 1)
    if nbytes >= WORTH_ADVISING:
        madvise(<void*>begin, end - begin, MADV_HUGEPAGE)


# Whole pages of the C library's memory go back to the kernel, which gives zeros at their next use:
# what is never used never takes memory.
cdef inline void zero_pages(char* data, int64_t nbytes) noexcept nogil:
    cdef char* begin = <char*>((<uintptr_t>data + PAGE - 1) & ~<uintptr_t>(PAGE - 1))
    cdef char* end = <char*>((<uintptr_t>data + nbytes) & ~<uintptr_t>(PAGE - 1))
    if nbytes < WORTH_ADVISING or madvise(begin, end - begin, MADV_DONTNEED) != 0:
        memset(data, 0, nbytes)
        return
    memset(data, 0, begin - data)
    memset(end, 0, data + nbytes - end)
