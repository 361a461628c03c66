# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Products of small matrices, on the CPU, for which a call of torch takes longer than the work."""


cdef enum:
    COLUMNS = 64    # of the result; so many are added at once
    DEPTH = 64      # of the product


cdef void add_products(
    const float *x, const float *turned, Py_ssize_t depth, Py_ssize_t columns, float *y
) noexcept nogil:
    """Add x times `turned`, (depth, columns), to a row."""
    cdef Py_ssize_t j, k
    cdef float by
    for k in range(depth):
        by = x[k]
        for j in range(columns):
            y[j] += by * turned[k * columns + j]


def fully_connected(
    size_t x, size_t w, size_t b, size_t y, Py_ssize_t rows, Py_ssize_t depth, Py_ssize_t columns,
):
    """Set `y`, (rows, columns), to x times the transposed w, plus b.

    Addresses of row-major float32: x: (rows, depth), w: (columns, depth), b: (columns); `y` is
    none of them. Nothing is checked.
    """
    cdef const float *source = <const float *>x
    cdef const float *weights = <const float *>w
    cdef float *target = <float *>y
    cdef float turned[DEPTH * COLUMNS]
    cdef Py_ssize_t i, j, k, first, start, many, deep
    with nogil:
        for i in range(rows):
            for j in range(columns):
                target[i * columns + j] = (<const float *>b)[j]
        first = 0
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
                        source + i * depth + start, turned, deep, many,
                        target + i * columns + first)
                start += DEPTH
            first += COLUMNS
