# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Sums over channels and over planes of row-major float32 images, on the CPU.

torch has no fast call for either: a sum over neighbouring channels is a pooling whose windows lie
across memory, and `var_mean` takes eight times as long as reading.

Operands are row-major torch tensors; only their numbers of elements are checked.
"""

from libc.math cimport sqrtf
from libc.stdint cimport int64_t

from bridge.caffe2.operators.base.kernel_memory cimport floats_of

cdef enum:
    BLOCK = 512     # elements of a plane at once: the channels of a window stay in the cache
    LANES = 128
    WORTH_RELEASING = 1 << 15   # elements, for which the lock is given to other threads


cdef void add_squares(const float *x, Py_ssize_t n, float factor, float *into) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        into[i] += factor * (x[i] * x[i])


cdef void over_power(const float *x, const float *base, Py_ssize_t n, float *y) noexcept nogil:
    """Set `y` to x / base^0.75."""
    cdef Py_ssize_t i
    cdef float root
    for i in range(n):
        root = sqrtf(base[i])
        y[i] = x[i] / (root * sqrtf(root))

# pyi: from torch import Tensor


def local_response(
    x: Tensor, y: Tensor, base: Tensor, Py_ssize_t images, Py_ssize_t channels, Py_ssize_t area,
    Py_ssize_t size, float factor, float bias
) -> Tensor:
    """Set `base` to bias + factor * the sum of the squares of the `size` nearest channels.

    And `y`, which is returned, to x / base^0.75, the power that LRN mostly has.

    x, y, base: (images, channels, area). Channels beyond the first and the last count
    as zero; of an even `size` one more is after than before.
    """
    cdef Py_ssize_t before = (size - 1) // 2, image, c, other, start, n, i, offset
    cdef const float *sources = floats_of(x, images * channels * area)
    cdef float *targets = floats_of(y, images * channels * area)
    cdef float *bases = floats_of(base, images * channels * area)
    cdef const float *source
    cdef float *sums
    with nogil:
        for image in range(images):
            start = 0
            while start < area:
                n = BLOCK if area - start > BLOCK else area - start
                offset = image * channels * area + start
                source = sources + offset
                for c in range(channels):
                    sums = bases + offset + c * area
                    for i in range(n):
                        sums[i] = bias
                    for other in range(max(c - before, 0), min(c + (size - before), channels)):
                        add_squares(source + other * area, n, factor, sums)
                    over_power(source + c * area, sums, n, targets + offset + c * area)
                start += BLOCK
    return y


cdef void add_moments(
    const float *x, Py_ssize_t n, float around, float *sums, float *squares
) noexcept nogil:
    cdef Py_ssize_t i
    cdef float value
    for i in range(n):
        value = x[i] - around
        sums[i] += value
        squares[i] += value * value


def moments(
    x: Tensor, mean: Tensor, variance: Tensor, Py_ssize_t images, Py_ssize_t channels,
    Py_ssize_t area
) -> Tensor:
    """Set `mean` and `variance` to those of each channel, over the images; divided by the number.

    x: (images, channels, area), none of them 0; mean, which is returned, and variance: (channels).
    """
    cdef const float *values = floats_of(x, images * channels * area)
    cdef float *means = floats_of(mean, channels)
    cdef float *variances = floats_of(variance, channels)
    cdef Py_ssize_t c, image, i, start, n
    cdef double total, total_squares, count = images * area
    cdef float around
    cdef const float *source
    # Many sums beside each other: they are added at once, and each stays small.
    cdef float sums[LANES]
    cdef float squares[LANES]
    with nogil:
        for c in range(channels):
            # Differences from a value of the channel itself: else squares of large means cancel.
            around = values[c * area]
            for i in range(LANES):
                sums[i] = squares[i] = 0
            for image in range(images):
                source = values + (image * channels + c) * area
                start = 0
                while start < area:
                    n = LANES if area - start > LANES else area - start
                    add_moments(source + start, n, around, sums, squares)
                    start += LANES
            total = total_squares = 0
            for i in range(LANES):
                total += sums[i]
                total_squares += squares[i]
            total /= count
            means[c] = <float>(around + total)
            total_squares = total_squares / count - total * total
            variances[c] = <float>(0 if total_squares < 0 else total_squares)
    return mean


def normalize(
    x: Tensor, y: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor,
    float epsilon, int64_t images, int64_t channels, int64_t area
) -> Tensor:
    """Set `y` to scale * (x - mean) / sqrt(variance + epsilon) + bias, and return it.

    x, y: torch tensors (images, channels, area), which may be the same; the others: (channels).
    """
    cdef const float *sources = floats_of(x, images * channels * area)
    cdef float *targets = floats_of(y, images * channels * area)
    cdef const float *scales = floats_of(scale, channels)
    cdef const float *biases = floats_of(bias, channels)
    cdef const float *means = floats_of(mean, channels)
    cdef const float *variances = floats_of(variance, channels)
    if images * channels * area < WORTH_RELEASING:
        _normalize(sources, targets, scales, biases, means, variances, epsilon, images, channels,
                   area)
    else:
        with nogil:
            _normalize(sources, targets, scales, biases, means, variances, epsilon, images,
                       channels, area)
    return y


cdef void _normalize(
    const float *x, float *y, const float *scale, const float *bias, const float *mean,
    const float *variance, float epsilon, int64_t images, int64_t channels, int64_t area,
) noexcept nogil:
    cdef int64_t c, image, i
    cdef const float *source
    cdef float *target
    cdef float by, plus
    for c in range(channels):
        by = scale[c] / sqrtf(variance[c] + epsilon)
        plus = bias[c] - by * mean[c]
        for image in range(images):
            source = x + (image * channels + c) * area
            target = y + (image * channels + c) * area
            for i in range(area):
                target[i] = by * source[i] + plus
