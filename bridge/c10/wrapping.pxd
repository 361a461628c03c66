# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of strides and offsets that reach no element, and so may have any value.

They wrap around, as in ATen; of signed numbers C leaves undefined what happens.
"""

from libc.stdint cimport int64_t, uint64_t


cdef inline int64_t wrapped_add(int64_t a, int64_t b) noexcept nogil:
    return <int64_t>(<uint64_t>a + <uint64_t>b)


cdef inline int64_t wrapped_mul(int64_t a, int64_t b) noexcept nogil:
    return <int64_t>(<uint64_t>a * <uint64_t>b)
