# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t, uintptr_t

cdef extern from "sys/mman.h" nogil:
    int madvise(void* address, size_t nbytes, int advice)
    int MADV_HUGEPAGE

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
