# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Rows of float32 to rows of bytes with their scale and bias, and back, on the CPU.

Operands are row-major torch tensors; only their numbers of elements are checked.
"""

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcpy

from bridge.caffe2.operators.base.cloned cimport cloned_void, inlined_void
from bridge.caffe2.operators.base.kernel_memory cimport floats_of

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


# pyi: from torch import Tensor


def to_bytes(x: Tensor, y: Tensor, Py_ssize_t rows, Py_ssize_t width) -> Tensor:
    """Set `y` (rows, width + 8) to the bytes of `x` (rows, width), scales and biases; return it.

    `width` is not 0.
    """
    cdef const float *source = floats_of(x, rows * width)
    cdef uint8_t *target = <uint8_t *>floats_of(y, rows * (width + TAIL))
    with nogil:
        rows_to_bytes(source, rows, width, target)
    return y


def to_floats(x: Tensor, y: Tensor, Py_ssize_t rows, Py_ssize_t width) -> Tensor:
    """Set `y` (rows, width) to byte * scale + bias of `x` (rows, width + 8); return it."""
    cdef const uint8_t *source = <const uint8_t *>floats_of(x, rows * (width + TAIL))
    cdef float *target = floats_of(y, rows * width)
    with nogil:
        rows_to_floats(source, rows, width, target)
    return y
