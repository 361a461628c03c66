# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Products of small matrices, on the CPU, for which a call of torch takes longer than the work."""

from libc.stdint cimport int64_t

from bridge.caffe2.operators.base.kernel_memory cimport floats_of

cdef enum:
    COLUMNS = 64    # of the result; so many are added at once
    DEPTH = 64      # of the product


cdef void add_products(
    const float *x, const float *turned, int64_t depth, int64_t columns, float *y
) noexcept nogil:
    """Add x times `turned`, (depth, columns), to a row; four at once, since `y` is in memory."""
    cdef int64_t j, k = 0
    cdef float a, b, c, d
    cdef const float *more
    while k + 4 <= depth:
        a, b, c, d = x[k], x[k + 1], x[k + 2], x[k + 3]
        more = turned + k * columns
        for j in range(columns):
            y[j] += (a * more[j] + b * more[columns + j]) + (
                c * more[2 * columns + j] + d * more[3 * columns + j])
        k += 4
    while k < depth:
        a = x[k]
        more = turned + k * columns
        for j in range(columns):
            y[j] += a * more[j]
        k += 1

# pyi: from torch import Tensor


def fully_connected(
    x: Tensor, w: Tensor, b: Tensor, y: Tensor, int64_t rows, int64_t depth, int64_t columns
) -> Tensor:
    """Set `y`, (rows, columns), to x times the transposed w, plus b, and return it.

    Row-major float32 torch tensors on the CPU: x: (rows, depth), w: (columns, depth), b: (columns);
    `y` is none of them. Only the numbers of elements are checked.
    """
    cdef const float *source = floats_of(x, rows * depth)
    cdef const float *weights = floats_of(w, columns * depth)
    cdef const float *plus = floats_of(b, columns)
    cdef float *target = floats_of(y, rows * columns)
    cdef float turned[DEPTH * COLUMNS]
    cdef int64_t i, j, k, first = 0, start, many, deep
    for i in range(rows):
        for j in range(columns):
            target[i * columns + j] = 0
    while first < columns:
        many = COLUMNS if columns - first > COLUMNS else columns - first
        start = 0
        while start < depth:
            deep = DEPTH if depth - start > DEPTH else depth - start
            for j in range(many):
                for k in range(deep):
                    turned[k * many + j] = weights[(first + j) * depth + start + k]
            for i in range(rows):
                add_products(
                    source + i * depth + start, turned, deep, many, target + i * columns + first)
            start += DEPTH
        first += COLUMNS
    for i in range(rows):
        for j in range(columns):
            target[i * columns + j] += plus[j]  # last, as Caffe2 rounds
    return y
