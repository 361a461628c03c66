# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.python_api cimport word

# The number of contexts of bridge.audit and bridge.no_copy that are open in the process, in any
# thread.
cdef int observed

# While it is 0, a conversion does nothing else for them than ask this.
cdef inline bint is_observed() noexcept:
    return word(&observed) != 0

# Cython's own macro: the compiler lays out the code for the answer no.
cdef extern from *:
    bint unlikely(bint) noexcept nogil

cpdef bint outermost() except -1
cdef object run_observed(
    str call, object source, str target, object function, tuple args, dict kwargs=*)
cdef int report_shared(str call, object source, str target, int64_t nbytes) except -1
cpdef int report_copy(int64_t nbytes, str reason) except -1
