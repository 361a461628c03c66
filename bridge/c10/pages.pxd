# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t, uintptr_t

cdef extern from *:
    """
    #include <sys/mman.h>
    #include <unistd.h>
    #ifndef MADV_HUGEPAGE       /* not on Linux */
    #define MADV_HUGEPAGE MADV_NORMAL
    #endif
    #ifdef __linux__            /* elsewhere what comes back need not be zeros */
    #define BRIDGE_GIVES_ZEROS 1
    #else
    #define BRIDGE_GIVES_ZEROS 0
    #endif
    static CYTHON_INLINE uintptr_t bridge_page(void) { return (uintptr_t)sysconf(_SC_PAGESIZE); }
    """
    int madvise(void* address, size_t nbytes, int advice) nogil
    int MADV_DONTNEED
    int MADV_HUGEPAGE
    bint GIVES_ZEROS "BRIDGE_GIVES_ZEROS"
    uintptr_t page_size "bridge_page"() noexcept nogil      # bytes, a power of two

cdef extern from "string.h" nogil:
    void* memset(void* data, int value, size_t nbytes)

cdef enum:
    WORTH_ADVISING = 4 << 20    # bytes: less than two huge pages is not


# The whole pages of `nbytes` at `data`. The kernel takes part of a page for all of it, and next to
# `data` may lie what is somebody else's.
cdef inline void whole_pages(
    void* data, int64_t nbytes, uintptr_t* begin, uintptr_t* end,
) noexcept nogil:
    cdef uintptr_t page = page_size()
    begin[0] = (<uintptr_t>data + page - 1) & ~(page - 1)
    end[0] = (<uintptr_t>data + nbytes) & ~(page - 1)


# New memory of many MiB costs more in page faults than in what is written to it; with huge pages
# there are 512 times fewer. Advice only: a kernel without them says no, and nothing is different.
cdef inline void advise_huge_pages(void* data, int64_t nbytes) noexcept nogil:
    cdef uintptr_t begin, end
    if nbytes >= WORTH_ADVISING:
        whole_pages(data, nbytes, &begin, &end)
        madvise(<void*>begin, end - begin, MADV_HUGEPAGE)


# Whole pages of the C library's memory go back to the kernel, which gives zeros at their next use:
# what is never used never takes memory.
cdef inline void zero_pages(char* data, int64_t nbytes) noexcept nogil:
    cdef uintptr_t begin, end
    if GIVES_ZEROS and nbytes >= WORTH_ADVISING:
        whole_pages(data, nbytes, &begin, &end)
        if madvise(<void*>begin, end - begin, MADV_DONTNEED) == 0:
            memset(data, 0, begin - <uintptr_t>data)
            memset(<void*>end, 0, <uintptr_t>data + nbytes - end)
            return
    memset(data, 0, nbytes)
