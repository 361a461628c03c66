# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""int64 out of Python objects: the slow cases of `to_int64`."""

from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_Check
from libc.stdint cimport int64_t

from bridge.c10.errors import EnforceTypeError, EnforceValueError, shown


cdef int64_t index_to_int64(object value, str caller) except? -1:
    """Do what `to_int64` does, for everything but an ``int`` that fits."""
    cdef int overflow = 0
    cdef int64_t result
    if not PyLong_Check(value):
        try:
            value = value.__index__()
        except AttributeError:
            raise EnforceTypeError(
                f"Sizes are integers, and this is none: {shown(value)}.", caller) from None
        except TypeError as error:
            raise EnforceTypeError(
                f"Sizes are integers, not {type(value).__name__}.", caller) from error
        if not PyLong_Check(value):
            raise EnforceTypeError(
                f"Sizes are integers, and this __index__ returned {value!r}.", caller)
    result = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow:
        raise EnforceValueError(f"{value} does not fit an int64.", caller)
    return result
