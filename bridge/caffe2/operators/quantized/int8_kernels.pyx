# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Sums of products brought to bytes in fixed point, on the CPU.

Memory is given by address, contiguous; nothing is checked.
"""

from libc.stdint cimport int64_t, uint8_t


def rescale(
    size_t sums,
    Py_ssize_t n,
    int64_t multiplier,
    int shift,
    int64_t zero_point,
    int64_t lowest,
    size_t y,
) -> None:
    """Set `y` to int64 sums times multiplier / 2**(31 + shift), rounded, as bytes.

    The product is rounded first, then the bits that are shifted out, halves away from zero.
    """
    cdef const int64_t *source = <const int64_t *>sums
    cdef uint8_t *target = <uint8_t *>y
    cdef int64_t mask = (<int64_t>1 << shift) - 1, threshold = mask >> 1, value
    cdef Py_ssize_t i
    with nogil:
        for i in range(n):
            value = (source[i] * multiplier + (<int64_t>1 << 30)) >> 31
            value = (value >> shift) + ((value & mask) - (value < 0) > threshold) + zero_point
            value = lowest if value < lowest else value
            target[i] = <uint8_t>(255 if value > 255 else value)
