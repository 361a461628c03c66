# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Sums of segments of rows of float32 tables on the CPU: look-ups of embeddings.

Memory is given by address, contiguous.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset

cdef extern from *:
    """
    #if defined(__GNUC__)
      #define PREFETCH(address) __builtin_prefetch(address)
    #else
      #define PREFETCH(address)
    #endif
    """
    void PREFETCH(const void *address) noexcept nogil

cdef enum:
    AHEAD = 8       # rows that are fetched before it is their turn
    LINE = 16       # elements in a line of the cache


cdef inline int64_t row_at(const void *indices, bint wide, Py_ssize_t i) noexcept nogil:
    if indices == NULL:
        return i
    return (<const int64_t *>indices)[i] if wide else (<const int32_t *>indices)[i]


cdef inline const float *row_of(
    const float *data, const void *indices, bint wide, Py_ssize_t i, Py_ssize_t n, Py_ssize_t width
) noexcept nogil:
    """Return a row, and fetch one whose turn comes later."""
    cdef const float *row
    cdef Py_ssize_t c = 0
    if i + AHEAD < n:
        row = data + row_at(indices, wide, i + AHEAD) * width
        while c < width:
            PREFETCH(row + c)
            c += LINE
    return data + row_at(indices, wide, i) * width


cdef void add_row(const float *a, float by, Py_ssize_t width, float *y) noexcept nogil:
    cdef Py_ssize_t c
    for c in range(width):
        y[c] += by * a[c]


cdef void add_rows(
    const float *a, const float *b, const float *c, const float *d, Py_ssize_t width, float *y
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(width):
        y[i] = y[i] + a[i] + b[i] + c[i] + d[i]


cdef void add_weighted_rows(
    const float *a, const float *b, const float *c, const float *d, const float *by,
    Py_ssize_t width, float *y
) noexcept nogil:
    cdef float first = by[0], second = by[1], third = by[2], fourth = by[3]
    cdef Py_ssize_t i
    for i in range(width):
        y[i] = y[i] + first * a[i] + second * b[i] + third * c[i] + fourth * d[i]


cdef void sum_rows(
    const float *data, const void *indices, bint wide, const float *weights, Py_ssize_t start,
    Py_ssize_t end, Py_ssize_t n, Py_ssize_t width, float *y
) noexcept nogil:
    """Set `y` to the sum of the rows at some indices, in their order, four at a time."""
    cdef const float *a
    cdef const float *b
    cdef const float *c
    cdef const float *d
    cdef Py_ssize_t i = start
    memset(y, 0, width * sizeof(float))
    while i + 4 <= end:
        a = row_of(data, indices, wide, i, n, width)
        b = row_of(data, indices, wide, i + 1, n, width)
        c = row_of(data, indices, wide, i + 2, n, width)
        d = row_of(data, indices, wide, i + 3, n, width)
        if weights == NULL:
            add_rows(a, b, c, d, width, y)
        else:
            add_weighted_rows(a, b, c, d, weights + i, width, y)
        i += 4
    while i < end:
        a = row_of(data, indices, wide, i, n, width)
        add_row(a, 1 if weights == NULL else weights[i], width, y)
        i += 1


def sum_segments(
    size_t data, Py_ssize_t rows, Py_ssize_t width, size_t indices, bint wide, Py_ssize_t n,
    size_t lengths, Py_ssize_t segments, size_t weights, bint mean, size_t y,
):
    """Set `y` to sums of rows; return False, having written nothing, if they are not there.

    data: (rows, width). indices: (n), int64 if `wide`, else int32; or 0 for the rows 0, 1, ...
    lengths: (segments), int32, with the sum n. weights: (n), or 0 for ones. y: (segments, width).
    """
    cdef const int32_t *counts = <const int32_t *>lengths
    cdef const void *at = <const void *>indices
    cdef float *target = <float *>y
    cdef Py_ssize_t start = 0, end, s, c, i
    cdef bint fits = True
    with nogil:
        for s in range(segments):
            fits &= counts[s] >= 0
            start += counts[s]
        fits &= start == n
        if at == NULL:
            fits &= n <= rows
        else:
            for i in range(n):
                fits &= <uint64_t>row_at(at, wide, i) < <uint64_t>rows      # nor negative
        if fits:
            start = 0
            for s in range(segments):
                end = start + counts[s]
                sum_rows(
                    <const float *>data, at, wide, <const float *>weights, start, end, n, width,
                    target)
                if mean and counts[s]:
                    for c in range(width):
                        target[c] /= counts[s]
                start = end
                target += width
    return fits
