# SPDX-License-Identifier: Apache-2.0
"""int64 out of Python objects."""

from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from libc.stdint cimport int64_t

cdef int64_t index_to_int64(object value, str caller) except? -1


cdef inline int64_t to_int64(object value, str caller) except? -1:
    """Return an int64 for anything with ``__index__``.

    Raises EnforceTypeError: `value` is not an integer. EnforceValueError: it does not fit an int64.
    """
    cdef int overflow = 0
    cdef int64_t result
    if PyLong_CheckExact(value):
        result = PyLong_AsLongLongAndOverflow(value, &overflow)
        if not overflow:
            return result
    return index_to_int64(value, caller)
