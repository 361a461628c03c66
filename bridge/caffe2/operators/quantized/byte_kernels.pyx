# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Rows of float32 to rows of bytes and back, look-ups, and sums of products brought to bytes.

Operands are row-major torch tensors on the CPU; only their numbers of elements are checked.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from bridge.caffe2.operators.base.cloned cimport cloned_void, inlined_void
from bridge.caffe2.operators.base.kernel_memory cimport floats_of
from bridge.caffe2.operators.base.row_memory cimport AHEAD, PREFETCH, row_at

from bridge.c10.errors import EnforceIndexError
from bridge.caffe2.operators.base.length_kernels import checked, in_range

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


cdef inline float of_half(const uint8_t *at) noexcept nogil:
    """Return the float16 at an address."""
    cdef uint16_t half
    cdef uint32_t bits
    cdef float found
    memcpy(&half, at, sizeof(half))
    bits = <uint32_t>(half & 0x7fff) << 13
    if bits >= 0x0f800000:      # infinity, or NaN
        bits |= 0x7f800000
    memcpy(&found, &bits, sizeof(found))
    if bits < 0x0f800000:
        found *= <float>5.192296858534828e33        # 2**112, exact for subnormal numbers, too
    return -found if half & 0x8000 else found


cdef inline inlined_void add_numbers(
    const uint8_t *source, Py_ssize_t size, int bits, float scale, float bias, float *target
) noexcept nogil:
    cdef Py_ssize_t i
    cdef int k
    for i in range(size):
        for k in range(8 // bits):
            target[k] += ((source[i] >> k * bits) & ((1 << bits) - 1)) * scale + bias
        target += 8 // bits


cdef struct Look:
    # Rows of numbers of `bits` bits, `size` bytes each, and where their scales and biases are.
    const uint8_t *rows
    int64_t size
    int64_t numbers             # bytes of a row without scale and bias
    int bits
    const float *apart          # NULL: they follow the numbers
    const void *indices
    bint wide
    const int32_t *mapping      # NULL: the index is the number of the row
    const float *weights        # NULL: they are 1


cdef inline int64_t row_of(const Look *look, int64_t i) noexcept nogil:
    cdef int64_t row = row_at(look.indices, look.wide, i)
    return row if look.mapping == NULL else look.mapping[row]


cdef cloned_void add_rows(const Look *look, int64_t start, int64_t end, float *y) noexcept nogil:
    """Add rows at some indices, times their weights, to a row of float32."""
    cdef const uint8_t *source
    cdef float[2] ends
    cdef float weight
    cdef int64_t i, row
    for i in range(start, end):
        if i + AHEAD < end:
            PREFETCH(look.rows + row_of(look, i + AHEAD) * look.size)
        row = row_of(look, i)
        if row < 0:
            continue
        source = look.rows + row * look.size
        if look.apart != NULL:
            memcpy(ends, look.apart + 2 * row, sizeof(ends))
        elif look.bits == 8:
            memcpy(ends, source + look.numbers, sizeof(ends))
        else:
            ends[0] = of_half(source + look.numbers)
            ends[1] = of_half(source + look.numbers + 2)
        weight = 1 if look.weights == NULL else look.weights[i]
        if look.bits == 8:
            add_numbers(source, look.numbers, 8, weight * ends[0], weight * ends[1], y)
        elif look.bits == 4:
            add_numbers(source, look.numbers, 4, weight * ends[0], weight * ends[1], y)
        else:
            add_numbers(source, look.numbers, 2, weight * ends[0], weight * ends[1], y)


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
    """Set a byte to value / 2**shift, rounded, halves away from zero, plus the zero point."""
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
    """Set `y` to sums times multiplier / 2**(31 + shift), rounded, as bytes.

    The sums are float32 (rows, n), whole numbers below 2**24, to which int32 biases (n) are added.
    The product is rounded first, then the bits that are shifted out, halves away from zero. Return
    False, having done nothing, if a bias or the shift is too large for that. 112 × 112 × 48: 0.4
    milliseconds, of int64 in three passes 1.9.
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
    """Set `y` to (a by_a + b by_b + start) / 2**shift, rounded as in `rescale_with_bias`, as bytes.

    The sums are int32.
    """
    cdef uint8_t *target = <uint8_t *>floats_of(y, n)
    cdef const uint8_t *left = <const uint8_t *>floats_of(a, n)
    cdef const uint8_t *right = <const uint8_t *>floats_of(b, n)
    with nogil:
        add_bytes(target, left, right, n, by_a, by_b, start, shift, zero_point, lowest)


def sum_rows(
    y: Tensor, table: Tensor, ends: Tensor | None, mapping: Tensor | None, indices: Tensor,
    lengths: Tensor, weights: Tensor | None, int64_t rows, int64_t size, int64_t mapped,
    int64_t n, int64_t segments, int bits, bint wide, bint mean
) -> Tensor:
    """Set `y`, a row of float32 per segment, to the sums of rows of numbers; return it.

    table: (rows, size) bytes of numbers of 8, 4 or 2 `bits`, each followed by scale and bias:
    float32 for 8 bits, else float16. ends: (rows, 2), scales and biases that are apart from the
    rows. mapping: (mapped), the row of an index, or -1 for none; just 0: that with its number.
    indices: (n), int64 if `wide`, else int32. lengths: (segments), with the sum n. weights: (n).
    Raises EnforceNotMet, also an IndexError, before anything is written: an index is out of range,
    or the lengths do not add up to `n`.
    """
    cdef int64_t tail = 0 if ends is not None else TAIL if bits == 8 else TAIL // 2
    cdef int64_t width = (size - tail) * (8 // bits), start = 0, s, i
    cdef const int32_t *counts = <const int32_t *>floats_of(lengths, segments)
    cdef float *target = floats_of(y, segments * width)
    cdef bint fits = True
    cdef Look look
    look.rows, look.size = <const uint8_t *>floats_of(table, rows * size), size
    look.numbers, look.bits = size - tail, bits
    look.apart = NULL if ends is None else floats_of(ends, 2 * rows)
    look.indices, look.wide = <const void *>floats_of(indices, n), wide
    look.mapping = NULL if mapping is None else <const int32_t *>floats_of(mapping, mapped)
    look.weights = NULL if weights is None else floats_of(weights, n)
    if mapping is None or (mapped == 1 and look.mapping[0] == 0):
        look.mapping, mapped = NULL, rows
    for s in range(segments):
        fits &= counts[s] >= 0
        start += counts[s]
    fits &= start == n
    for i in range(n):
        fits = fits and 0 <= row_at(look.indices, wide, i) < mapped \
            and (look.mapping == NULL or -1 <= row_of(&look, i) < rows)
    if not fits:
        checked(lengths, segments, n)
        in_range(indices, n, mapped, wide)
        raise EnforceIndexError(f"The mapping has a row that is out of range for {rows} rows.")
    if segments * width == 0:       # and maybe no memory: memset takes no NULL
        return y
    with nogil:
        memset(target, 0, segments * width * sizeof(float))
        start = 0
        for s in range(segments):
            add_rows(&look, start, start + counts[s], target)
            if mean and counts[s]:
                for i in range(width):
                    target[i] /= counts[s]
            start += counts[s]
            target += width
    return y
