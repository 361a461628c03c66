# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Elementwise operators on a few float32 elements, for which a call of torch takes longer than the
work: 0.1 instead of 0.8 microseconds for 256.

Operands are row-major torch tensors on the CPU; the result, which is returned, may be one of them.
Only the numbers of elements are checked. For more than some thousand elements torch's wider vectors
win.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from bridge.caffe2.operators.base.cloned cimport cloned_void
from bridge.caffe2.operators.base.kernel_memory cimport floats_of

# pyi: from torch import Tensor


def relu(x: Tensor, y: Tensor, int64_t n) -> Tensor:
    """Set `y` to x where it is positive or NaN, else to 0; both have `n` elements."""
    cdef const float *source = floats_of(x, n)
    cdef float *target = floats_of(y, n)
    cdef int64_t i
    for i in range(n):
        target[i] = 0 if source[i] < 0 else source[i]
    return y


cdef cloned_void where_positive(
    float *dx, const float *y, const float *dy, int64_t n
) noexcept nogil:
    cdef float one
    cdef int64_t i
    for i in range(n):
        one = dy[i]
        dx[i] = one if y[i] > 0 else 0


cdef cloned_void or_scaled(
    float *dx, const float *y, const float *dy, float slope, int64_t n
) noexcept nogil:
    cdef float one = 1
    cdef int64_t i
    for i in range(n):
        dx[i] = dy[i] * (one if y[i] >= 0 else slope)


cdef cloned_void of_sigmoid(float *dx, const float *y, const float *dy, int64_t n) noexcept nogil:
    cdef float one = 1
    cdef int64_t i
    for i in range(n):
        dx[i] = dy[i] * (y[i] * (one - y[i]))


cdef cloned_void of_tanh(float *dx, const float *y, const float *dy, int64_t n) noexcept nogil:
    cdef float one = 1
    cdef int64_t i
    for i in range(n):
        dx[i] = dy[i] * (one - y[i] * y[i])


def sigmoid_gradient(dx: Tensor, y: Tensor, dy: Tensor, int64_t n) -> Tensor:
    """Set `dx` to dy * y * (1 - y); all have `n` elements."""
    of_sigmoid(floats_of(dx, n), floats_of(y, n), floats_of(dy, n), n)
    return dx


def tanh_gradient(dx: Tensor, y: Tensor, dy: Tensor, int64_t n) -> Tensor:
    """Set `dx` to dy * (1 - y * y); all have `n` elements."""
    of_tanh(floats_of(dx, n), floats_of(y, n), floats_of(dy, n), n)
    return dx


def relu_gradient(dx: Tensor, y: Tensor, dy: Tensor, int64_t n) -> Tensor:
    """Set `dx` to dy where y is positive, else to 0; all have `n` elements."""
    where_positive(floats_of(dx, n), floats_of(y, n), floats_of(dy, n), n)
    return dx


def leaky_relu_gradient(dx: Tensor, y: Tensor, dy: Tensor, float slope, int64_t n) -> Tensor:
    """Set `dx` to dy where y is not negative, else to slope * dy; all have `n` elements."""
    or_scaled(floats_of(dx, n), floats_of(y, n), floats_of(dy, n), slope, n)
    return dx


def weighted_sum(y: Tensor, list xs: list[Tensor], list weights: list[Tensor], int64_t n) -> Tensor:
    """Set `y` to the sum of `xs`, of `n` elements each, times the `weights`, of one each.

    It may be the first of `xs`.
    """
    cdef float *target = floats_of(y, n)
    cdef const float *source = floats_of(xs[0], n)
    cdef float factor = floats_of(weights[0], 1)[0]
    cdef int64_t i
    cdef Py_ssize_t k
    for k in range(1, len(xs)):
        floats_of(xs[k], n)
        floats_of(weights[k], 1)
    for i in range(n):
        target[i] = source[i] * factor
    for k in range(1, len(xs)):
        source = floats_of(xs[k], n)
        factor = floats_of(weights[k], 1)[0]
        for i in range(n):
            target[i] += source[i] * factor
    return y


def add(a: Tensor, b: Tensor, y: Tensor, int64_t n) -> Tensor:
    """Set `y` to a + b; all have `n` elements."""
    cdef const float *left = floats_of(a, n)
    cdef const float *right = floats_of(b, n)
    cdef float *target = floats_of(y, n)
    cdef int64_t i
    for i in range(n):
        target[i] = left[i] + right[i]
    return y


def subtract(a: Tensor, b: Tensor, y: Tensor, int64_t n) -> Tensor:
    """Set `y` to a - b; all have `n` elements."""
    cdef const float *left = floats_of(a, n)
    cdef const float *right = floats_of(b, n)
    cdef float *target = floats_of(y, n)
    cdef int64_t i
    for i in range(n):
        target[i] = left[i] - right[i]
    return y


def multiply(a: Tensor, b: Tensor, y: Tensor, int64_t n) -> Tensor:
    """Set `y` to a * b; all have `n` elements."""
    cdef const float *left = floats_of(a, n)
    cdef const float *right = floats_of(b, n)
    cdef float *target = floats_of(y, n)
    cdef int64_t i
    for i in range(n):
        target[i] = left[i] * right[i]
    return y


def add_per_channel(
    x: Tensor, b: Tensor, y: Tensor, int64_t images, int64_t channels, int64_t area
) -> Tensor:
    """Set `y` to x + b; x, y: (images, channels, area), b: (channels)."""
    cdef const float *source = floats_of(x, images * channels * area)
    cdef const float *values = floats_of(b, channels)
    cdef float *target = floats_of(y, images * channels * area)
    cdef float by
    cdef int64_t i, c, _image
    for _image in range(images):
        for c in range(channels):
            by = values[c]
            for i in range(area):
                target[i] = source[i] + by
            source += area
            target += area
    return y


def multiply_per_channel(
    x: Tensor, b: Tensor, y: Tensor, int64_t images, int64_t channels, int64_t area
) -> Tensor:
    """Set `y` to x * b; x, y: (images, channels, area), b: (channels)."""
    cdef const float *source = floats_of(x, images * channels * area)
    cdef const float *values = floats_of(b, channels)
    cdef float *target = floats_of(y, images * channels * area)
    cdef float by
    cdef int64_t i, c, _image
    for _image in range(images):
        for c in range(channels):
            by = values[c]
            for i in range(area):
                target[i] = source[i] * by
            source += area
            target += area
    return y


def join(y: Tensor, list xs: list[Tensor], int64_t rows, list widths: list[int]) -> Tensor:
    """Set `y` to the rows of `xs` beside each other, and return it.

    An x has `rows` rows of its width in elements.
    """
    cdef int64_t width = sum(widths), i, n, start = 0
    cdef float *target = floats_of(y, rows * width)
    cdef const float *source
    cdef Py_ssize_t k
    for k in range(len(xs)):
        n = widths[k]
        if n == 0:              # and maybe no memory: memcpy takes no NULL
            continue
        source = floats_of(xs[k], rows * n)
        for i in range(rows):
            memcpy(target + i * width + start, source + i * n, n * sizeof(float))
        start += n
    return y
