# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Sums of segments of rows of float32 tables on the CPU: look-ups of embeddings.

Operands are row-major torch tensors; only their numbers of elements are checked.
"""

from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memcpy, memset

from bridge.caffe2.operators.base.cloned cimport cloned_void, inlined_void
from bridge.caffe2.operators.base.kernel_memory cimport floats_of
from bridge.caffe2.operators.base.row_memory cimport AHEAD, LINE, fetch, row_at

cdef enum:
    BLOCK = 64      # columns that are summed at once


cdef inline inlined_void sum_block(
    const float *data, const void *indices, bint wide, const float *weights, Py_ssize_t start,
    Py_ssize_t end, Py_ssize_t n, Py_ssize_t width, Py_ssize_t columns, float *y
) noexcept nogil:
    """Set `y` to the sum of some columns of the rows at some indices, in their order."""
    cdef float[BLOCK] total      # in registers, if there are BLOCK columns
    cdef const float *row
    cdef float by
    cdef Py_ssize_t i, c
    memset(total, 0, BLOCK * sizeof(float))
    for i in range(start, end):
        if i + AHEAD < n:
            fetch(data + row_at(indices, wide, i + AHEAD) * width, columns)
        row = data + row_at(indices, wide, i) * width
        if weights == NULL:
            for c in range(columns):
                total[c] += row[c]
        else:
            by = weights[i]
            for c in range(columns):
                total[c] += by * row[c]
    memcpy(y, total, columns * sizeof(float))


cdef cloned_void sum_rows(
    const float *data, const void *indices, bint wide, const float *weights, Py_ssize_t start,
    Py_ssize_t end, Py_ssize_t n, Py_ssize_t width, float *y
) noexcept nogil:
    """Set `y` to the sum of the rows at some indices, in their order."""
    cdef Py_ssize_t c = 0
    while c + BLOCK <= width:
        sum_block(data + c, indices, wide, weights, start, end, n, width, BLOCK, y + c)
        c += BLOCK
    while c + LINE <= width:
        sum_block(data + c, indices, wide, weights, start, end, n, width, LINE, y + c)
        c += LINE
    if c < width:
        sum_block(data + c, indices, wide, weights, start, end, n, width, width - c, y + c)


# pyi: from torch import Tensor


def sum_segments(
    data: Tensor, y: Tensor, indices: Tensor | None, lengths: Tensor, weights: Tensor | None,
    Py_ssize_t rows, Py_ssize_t width, Py_ssize_t n, Py_ssize_t segments, bint wide, bint mean
) -> bool:
    """Set `y` to sums of rows; return False, having written nothing, if they are not there.

    data: (rows, width). indices: (n), int64 if `wide`, else int32; or None for the rows 0, 1,
    ... lengths: (segments), int32, with the sum n. weights: (n), or None for ones.
    y: (segments, width).
    """
    cdef const int32_t *counts = <const int32_t *>floats_of(lengths, segments)
    cdef float *at = NULL if indices is None else floats_of(indices, n)
    cdef const float *table = floats_of(data, rows * width)
    cdef float *by = NULL if weights is None else floats_of(weights, n)
    cdef float *target = floats_of(y, segments * width)
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
                sum_rows(table, at, wide, by, start, end, n, width, target)
                if mean and counts[s]:
                    for c in range(width):
                        target[c] /= counts[s]
                start = end
                target += width
    return fits
