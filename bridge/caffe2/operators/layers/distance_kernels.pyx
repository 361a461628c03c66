# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Distances of pairs of rows of a few float32 elements on the CPU, for which calls of torch take
longer than the work.

Operands are row-major torch tensors; only their numbers of elements are checked. The first one is
set and returned.
"""

from libc.math cimport fabsf, sqrt
from libc.stdint cimport int64_t

from bridge.caffe2.operators.base.kernel_memory cimport floats_of

# pyi: from torch import Tensor


def half_square(z: Tensor, x: Tensor, y: Tensor, int64_t rows, int64_t width) -> Tensor:
    """Set each z to half the sum of (x - y)^2 of a row."""
    cdef float *target = floats_of(z, rows)
    cdef const float *a = floats_of(x, rows * width)
    cdef const float *b = floats_of(y, rows * width)
    cdef double total, apart
    cdef int64_t i, j
    for i in range(rows):
        total = 0
        for j in range(i * width, (i + 1) * width):
            apart = a[j] - b[j]
            total += apart * apart
        target[i] = <float>(total / 2)
    return z


def similarity(
    z: Tensor, x: Tensor, y: Tensor, int64_t rows, int64_t width, bint is_cosine
) -> Tensor:
    """Set each z to the product of two rows; of a cosine over their norms, at least 1e-6 each."""
    cdef float *target = floats_of(z, rows)
    cdef const float *a = floats_of(x, rows * width)
    cdef const float *b = floats_of(y, rows * width)
    cdef double product, left, right
    cdef int64_t i, j
    for i in range(rows):
        product = left = right = 0
        for j in range(i * width, (i + 1) * width):
            product += a[j] * b[j]
            left += a[j] * a[j]
            right += b[j] * b[j]
        if is_cosine:
            product /= sqrt(max(left, 1e-12)) * sqrt(max(right, 1e-12))
        target[i] = <float>product
    return z


def apart(z: Tensor, x: Tensor, y: Tensor, int64_t rows, int64_t width) -> Tensor:
    """Set each z to the sum of |x - y| of a row."""
    cdef float *target = floats_of(z, rows)
    cdef const float *a = floats_of(x, rows * width)
    cdef const float *b = floats_of(y, rows * width)
    cdef double total
    cdef int64_t i, j
    for i in range(rows):
        total = 0
        for j in range(i * width, (i + 1) * width):
            total += fabsf(a[j] - b[j])
        target[i] = <float>total
    return z


def half_square_gradient(
    dx: Tensor, dy: Tensor, x: Tensor, y: Tensor, dz: Tensor, int64_t rows, int64_t width
) -> Tensor:
    """Set dx to (x - y) dz, row by row, and dy to -dx."""
    cdef float *left = floats_of(dx, rows * width)
    cdef float *right = floats_of(dy, rows * width)
    cdef const float *a = floats_of(x, rows * width)
    cdef const float *b = floats_of(y, rows * width)
    cdef const float *by = floats_of(dz, rows)
    cdef int64_t i, j
    for i in range(rows):
        for j in range(i * width, (i + 1) * width):
            left[j] = (a[j] - b[j]) * by[i]
            right[j] = -left[j]
    return dx


def mean(y: Tensor, x: Tensor, int64_t n) -> Tensor:
    """Set the one element of `y` to the mean of `n` elements, at least one."""
    cdef float *target = floats_of(y, 1)
    cdef const float *source = floats_of(x, n)
    cdef double total = 0
    cdef int64_t i
    for i in range(n):
        total += source[i]
    target[0] = <float>(total / n)
    return y


def spread(y: Tensor, x: Tensor, int64_t n) -> Tensor:
    """Set the `n` elements of `y` to an `n`-th of the one of `x`."""
    cdef float *target = floats_of(y, n)
    cdef float share = floats_of(x, 1)[0] / <float>n
    cdef int64_t i
    for i in range(n):
        target[i] = share
    return y
