# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Rows of float32 to rows of bytes and back, and sums of products brought to bytes, on the CPU.

Operands are row-major torch tensors; only their numbers of elements are checked.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from bridge.caffe2.operators.base.cloned cimport cloned_void, inlined_void
from bridge.caffe2.operators.base.kernel_memory cimport floats_of

# pyi: from torch import Tensor


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


cdef enum:
    BLOCK = 1024    # numbers that stay in the first cache


def rescale(
    y: Tensor, sums: Tensor, Py_ssize_t n, int64_t multiplier, int shift, int64_t zero_point,
    int64_t lowest
) -> None:
    """Set `y` to int64 sums times multiplier / 2**(31 + shift), rounded, as bytes.

    The product is rounded first, then the bits that are shifted out, halves away from zero.
    """
    cdef const int64_t *source = <const int64_t *>floats_of(sums, n)
    cdef uint8_t *target = <uint8_t *>floats_of(y, n)
    cdef int64_t mask = (<int64_t>1 << shift) - 1, threshold = mask >> 1, value
    cdef Py_ssize_t i
    with nogil:
        for i in range(n):
            value = (source[i] * multiplier + (<int64_t>1 << 30)) >> 31
            value = (value >> shift) + ((value & mask) - (value < 0) > threshold) + zero_point
            value = lowest if value < lowest else value
            target[i] = <uint8_t>(255 if value > 255 else value)


cdef cloned_void spread_bytes(
    float *y, const uint8_t *x, int64_t n, float zero_point
) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        y[i] = <float>x[i] - zero_point


def floats_of_bytes(y: Tensor, x: Tensor, Py_ssize_t n, int zero_point) -> None:
    """Set `y`, float32, to bytes less the zero point, in one pass."""
    cdef float *target = floats_of(y, n)
    cdef const uint8_t *source = <const uint8_t *>floats_of(x, n)
    with nogil:
        spread_bytes(target, source, n, <float>zero_point)


cdef inline inlined_void put_byte(
    uint8_t *y, int32_t value, int shift, int32_t zero_point, int32_t lowest
) noexcept nogil:
    """Set a byte to value / 2**shift, rounded as in `rescale`, plus the zero point."""
    cdef int32_t mask = (<int32_t>1 << shift) - 1, threshold = mask >> 1, most = 255
    value = (value >> shift) + ((value & mask) - (value < 0) > threshold) + zero_point
    value = lowest if value < lowest else value
    y[0] = <uint8_t>(most if value > most else value)


cdef inline int32_t scaled(float total, int32_t bias, double by) noexcept nogil:
    """Return (total + bias) * by, rounded to the nearest, halves up."""
    # Doubles are exact here, and vectors of every processor have them. What is added makes them
    # positive, so that the conversion, which cuts off, rounds down.
    return <int32_t>(<double>(<int32_t>total + bias) * by + ((1 << 26) + 0.5)) - (1 << 26)


cdef cloned_void rescale_rows(
    uint8_t *y, const float *sums, const int32_t *bias, int64_t rows, int64_t n, double by,
    int shift, int32_t zero_point, int32_t lowest
) noexcept nogil:
    # Rows of few numbers are shorter than a vector of bytes, so blocks of rows become bytes.
    cdef int32_t[BLOCK] block
    cdef int64_t at_once, i, j, row = 0
    while row < rows:
        at_once = min(rows - row, max(BLOCK // n, 1))
        if n > BLOCK:
            for i in range(n):
                put_byte(y + i, scaled(sums[i], bias[i], by), shift, zero_point, lowest)
        else:
            for j in range(at_once):
                for i in range(n):
                    block[j * n + i] = scaled(sums[j * n + i], bias[i], by)
            for i in range(at_once * n):
                put_byte(y + i, block[i], shift, zero_point, lowest)
        y += at_once * n
        sums += at_once * n
        row += at_once


def rescale_with_bias(
    y: Tensor, sums: Tensor, bias: Tensor, Py_ssize_t rows, Py_ssize_t n, int64_t multiplier,
    int shift, int64_t zero_point, int64_t lowest
) -> bool:
    """Do what `rescale` does to float32 sums (rows, n) and int32 biases (n), in one pass.

    The sums are whole numbers below 2**24. Return False, having done nothing, if a bias or the
    shift is too large for that. 112 × 112 × 48: 0.4 milliseconds, of int64 in three passes 1.9.
    """
    cdef uint8_t *target = <uint8_t *>floats_of(y, rows * n)
    cdef const float *source = floats_of(sums, rows * n)
    cdef const int32_t *given = <const int32_t *>floats_of(bias, n)
    cdef double by = <double>multiplier / <double>(<int64_t>1 << 31)
    cdef bint fits = shift <= 30
    cdef Py_ssize_t i
    with nogil:
        for i in range(n):
            fits &= -(1 << 25) < given[i] and given[i] < 1 << 25
        if fits and n:
            rescale_rows(
                target, source, given, rows, n, by, shift, <int32_t>zero_point, <int32_t>lowest)
    return fits


cdef cloned_void add_bytes(
    uint8_t *y, const uint8_t *a, const uint8_t *b, int64_t n, int32_t by_a, int32_t by_b,
    int32_t start, int shift, int32_t zero_point, int32_t lowest
) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        put_byte(y + i, a[i] * by_a + b[i] * by_b + start, shift, zero_point, lowest)


def add_scaled(
    y: Tensor, a: Tensor, b: Tensor, Py_ssize_t n, int by_a, int by_b, int start, int shift,
    int zero_point, int lowest
) -> None:
    """Set `y` to (a by_a + b by_b + start) / 2**shift, rounded as in `rescale`, as bytes.

    The sums are int32.
    """
    cdef uint8_t *target = <uint8_t *>floats_of(y, n)
    cdef const uint8_t *left = <const uint8_t *>floats_of(a, n)
    cdef const uint8_t *right = <const uint8_t *>floats_of(b, n)
    with nogil:
        add_bytes(target, left, right, n, by_a, by_b, start, shift, zero_point, lowest)
