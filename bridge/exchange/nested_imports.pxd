# SPDX-License-Identifier: Apache-2.0
cdef Py_ssize_t depth() except -1
cdef int begin(object x) except -1
cdef int end() except -1
cdef int end_to(Py_ssize_t n) except -1
