# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Rows of float32 to rows of bytes with their scale and bias, and back, on the CPU.

Memory is given by address, contiguous; nothing is checked.
"""

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcpy

from bridge.caffe2.operators.base.cloned cimport cloned_void, inlined_void

cdef enum:
    TAIL = 8        # bytes of the scale and the bias

cdef float HALF_EVEN = 12582912     # 1.5 * 2**23: a float32 of this size has no fraction


cdef inline int32_t ordered(int32_t bits) noexcept nogil:
    """Return integers in the order of the numbers of these bits, or back."""
    return bits ^ ((bits >> 31) & 0x7fffffff)


cdef inline inlined_void extremes(
    const int32_t *x, Py_ssize_t n, float *low, float *high
) noexcept nogil:
    # Of integers compilers find extremes with vectors; of floats they would have to heed NaN.
    cdef int32_t least = ordered(x[0]), most = least, one
    cdef Py_ssize_t i
    for i in range(n):
        one = ordered(x[i])
        least = one if one < least else least
        most = one if one > most else most
    least, most = ordered(least), ordered(most)
    memcpy(low, &least, sizeof(float))
    memcpy(high, &most, sizeof(float))


cdef cloned_void rows_to_bytes(
    const float *source, Py_ssize_t rows, Py_ssize_t width, uint8_t *target
) noexcept nogil:
    cdef float low = 0, high = 0, inverse, scale, even = HALF_EVEN
    cdef Py_ssize_t i, _row
    for _row in range(rows):
        extremes(<const int32_t *>source, width, &low, &high)
        scale = (high - low) / 255
        inverse = 255 / (high - low + <float>1e-8)
        for i in range(width):
            # From 0 to 255, since low <= x <= high.
            target[i] = <uint8_t><int32_t>(((source[i] - low) * inverse + even) - even)
        memcpy(target + width, &scale, sizeof(float))
        memcpy(target + width + sizeof(float), &low, sizeof(float))
        source += width
        target += width + TAIL


cdef cloned_void rows_to_floats(
    const uint8_t *source, Py_ssize_t rows, Py_ssize_t width, float *target
) noexcept nogil:
    cdef float scale = 0, bias = 0
    cdef Py_ssize_t i, _row
    for _row in range(rows):
        memcpy(&scale, source + width, sizeof(float))
        memcpy(&bias, source + width + sizeof(float), sizeof(float))
        for i in range(width):
            target[i] = source[i] * scale + bias
        source += width + TAIL
        target += width


def to_bytes(size_t x, Py_ssize_t rows, Py_ssize_t width, size_t y) -> None:
    """Set `y` (rows, width + 8) to the bytes of `x` (rows, width), scales and biases.

    `width` is not 0.
    """
    with nogil:
        rows_to_bytes(<const float *>x, rows, width, <uint8_t *>y)


def to_floats(size_t x, Py_ssize_t rows, Py_ssize_t width, size_t y) -> None:
    """Set `y` (rows, width) to byte * scale + bias of the rows of `x` (rows, width + 8)."""
    with nogil:
        rows_to_floats(<const uint8_t *>x, rows, width, <float *>y)
