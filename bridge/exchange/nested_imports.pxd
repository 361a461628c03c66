# SPDX-License-Identifier: Apache-2.0
cdef Py_ssize_t depth() noexcept
cdef int begin(object x) except -1
cdef int end() noexcept
cdef int end_to(Py_ssize_t n) noexcept
