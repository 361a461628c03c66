# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Rows of float32 to rows of bytes with their scale and bias, and back, on the CPU.

Memory is given by address, contiguous; nothing is checked.
"""

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcpy

cdef enum:
    TAIL = 8        # bytes of the scale and the bias

cdef float HALF_EVEN = 12582912     # 1.5 * 2**23: a float32 of this size has no fraction


cdef inline float less(float a, float b) noexcept nogil:
    return a if a < b else b


cdef inline float greater(float a, float b) noexcept nogil:
    return a if a > b else b


cdef void extremes(const float *x, Py_ssize_t n, float *low, float *high) noexcept nogil:
    # Four at once, that they do not wait for each other.
    cdef float low0 = x[0], low1 = low0, low2 = low0, low3 = low0
    cdef float high0 = low0, high1 = low0, high2 = low0, high3 = low0
    cdef Py_ssize_t i = 0
    while i + 4 <= n:
        low0 = less(x[i], low0)
        low1 = less(x[i + 1], low1)
        low2 = less(x[i + 2], low2)
        low3 = less(x[i + 3], low3)
        high0 = greater(x[i], high0)
        high1 = greater(x[i + 1], high1)
        high2 = greater(x[i + 2], high2)
        high3 = greater(x[i + 3], high3)
        i += 4
    while i < n:
        low0 = less(x[i], low0)
        high0 = greater(x[i], high0)
        i += 1
    low[0] = less(less(low0, low1), less(low2, low3))
    high[0] = greater(greater(high0, high1), greater(high2, high3))


def to_bytes(size_t x, Py_ssize_t rows, Py_ssize_t width, size_t y):
    """Set `y` (rows, width + 8) to the bytes of `x` (rows, width), scales and biases.

    `width` is not 0.
    """
    cdef const float *source = <const float *>x
    cdef uint8_t *target = <uint8_t *>y
    cdef float low = 0, high = 0, inverse, scale, even = HALF_EVEN
    cdef Py_ssize_t i, _row
    with nogil:
        for _row in range(rows):
            extremes(source, width, &low, &high)
            scale = (high - low) / 255
            inverse = 255 / (high - low + <float>1e-8)
            for i in range(width):
                # From 0 to 255, since low <= x <= high.
                target[i] = <uint8_t><int32_t>(((source[i] - low) * inverse + even) - even)
            memcpy(target + width, &scale, sizeof(float))
            memcpy(target + width + sizeof(float), &low, sizeof(float))
            source += width
            target += width + TAIL


def to_floats(size_t x, Py_ssize_t rows, Py_ssize_t width, size_t y):
    """Set `y` (rows, width) to byte * scale + bias of the rows of `x` (rows, width + 8)."""
    cdef const uint8_t *source = <const uint8_t *>x
    cdef float *target = <float *>y
    cdef float scale = 0, bias = 0
    cdef Py_ssize_t i, _row
    with nogil:
        for _row in range(rows):
            memcpy(&scale, source + width, sizeof(float))
            memcpy(&bias, source + width + sizeof(float), sizeof(float))
            for i in range(width):
                target[i] = source[i] * scale + bias
            source += width + TAIL
            target += width
