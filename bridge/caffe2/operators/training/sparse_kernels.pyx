# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Steps of optimizers on some rows of float32 tables on the CPU, in one pass over these rows.

Memory is given by address, contiguous. Rows that occur several times are updated in turn. Nothing
is checked but the indices of the rows, all of them before anything is written.
"""

from libc.math cimport sqrtf
from libc.stdint cimport int32_t, int64_t

from bridge.caffe2.operators.base.cloned cimport cloned_void, inlined_void

cdef extern from *:
    """
    #if defined(__GNUC__)
      #define PREFETCH(address) __builtin_prefetch(address, 1)
    #else
      #define PREFETCH(address)
    #endif
    """
    void PREFETCH(const void *address) noexcept nogil

cdef enum:
    AHEAD = 8       # rows that are fetched before it is their turn
    LINE = 16       # elements in a line of the cache


cdef inline int64_t row_at(const void *indices, bint wide, Py_ssize_t i) noexcept nogil:
    return (<const int64_t *>indices)[i] if wide else (<const int32_t *>indices)[i]


cdef bint are_rows(const void *indices, bint wide, Py_ssize_t n, Py_ssize_t rows) noexcept nogil:
    """Return whether all indices are from 0 to below `rows`."""
    cdef Py_ssize_t i
    cdef int64_t row
    for i in range(n):
        row = row_at(indices, wide, i)
        if row < 0 or row >= rows:
            return False
    return True


cdef inline void fetch(const float *row, Py_ssize_t width) noexcept nogil:
    cdef Py_ssize_t i = 0
    while i < width:
        PREFETCH(row + i)
        i += LINE


cdef inline float mean_square(const float *g, Py_ssize_t width) noexcept nogil:
    # Four sums, which become one vector; and four more, that they do not wait for each other.
    cdef float a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, k = 0, m = 0
    cdef Py_ssize_t i = 0
    while i + 8 <= width:
        a += g[i] * g[i]
        b += g[i + 1] * g[i + 1]
        c += g[i + 2] * g[i + 2]
        d += g[i + 3] * g[i + 3]
        e += g[i + 4] * g[i + 4]
        f += g[i + 5] * g[i + 5]
        k += g[i + 6] * g[i + 6]
        m += g[i + 7] * g[i + 7]
        i += 8
    while i < width:
        a += g[i] * g[i]
        i += 1
    return ((a + e) + (b + f) + (c + k) + (d + m)) / width


cdef inline inlined_void adagrad_row(
    float *w, float *h, const float *g, Py_ssize_t width, float rate, float epsilon
) noexcept nogil:
    cdef Py_ssize_t i
    cdef float grown
    for i in range(width):
        grown = h[i] + g[i] * g[i]
        h[i] = grown
        w[i] += rate * g[i] / (sqrtf(grown) + epsilon)


cdef inline inlined_void decayed_adagrad_row(
    float *w, float *h, const float *grad, Py_ssize_t width, float rate, float epsilon, float decay
) noexcept nogil:
    cdef Py_ssize_t i
    cdef float grown, g
    for i in range(width):
        g = grad[i] + decay * w[i]
        grown = h[i] + g * g
        h[i] = grown
        w[i] += rate * g / (sqrtf(grown) + epsilon)


cdef inline inlined_void scale_row(
    float *w, const float *g, Py_ssize_t width, float factor, float decay
) noexcept nogil:
    cdef Py_ssize_t i
    if decay == 0:
        for i in range(width):
            w[i] += factor * g[i]
    else:
        for i in range(width):
            w[i] += factor * (g[i] + decay * w[i])


cdef inline float mean_square_of_decayed(
    const float *grad, const float *w, Py_ssize_t width, float decay
) noexcept nogil:
    cdef float total = 0, g
    cdef Py_ssize_t i
    for i in range(width):
        g = grad[i] + decay * w[i]
        total += g * g
    return total / width


cdef cloned_void adagrad_rows(
    float *w, float *h, const void *indices, bint wide, const float *g, float rate, Py_ssize_t n,
    Py_ssize_t width, float epsilon, float weight_decay, bint by_row
) noexcept nogil:
    cdef float grown
    cdef Py_ssize_t i
    cdef int64_t row
    for i in range(n):
        if i + AHEAD < n:
            row = row_at(indices, wide, i + AHEAD)
            fetch(w + row * width, width)
            fetch(h + (row if by_row else row * width), 1 if by_row else width)
        row = row_at(indices, wide, i)
        if by_row:
            if weight_decay == 0:
                grown = h[row] + mean_square(g, width)
            else:
                grown = h[row] + mean_square_of_decayed(g, w + row * width, width, weight_decay)
            h[row] = grown
            scale_row(w + row * width, g, width, rate / (sqrtf(grown) + epsilon), weight_decay)
        elif weight_decay == 0:
            adagrad_row(w + row * width, h + row * width, g, width, rate, epsilon)
        else:
            decayed_adagrad_row(
                w + row * width, h + row * width, g, width, rate, epsilon, weight_decay)
        g += width


def adagrad(
    size_t param, size_t moment, size_t indices, bint wide, size_t grad, size_t lr,
    Py_ssize_t n, Py_ssize_t rows, Py_ssize_t width, float epsilon, float weight_decay,
    bint by_row,
):
    """Update `n` rows of parameters and moments; return False if an index is out of range.

    param: (rows, width). moment: the same, or with `by_row` (rows). indices: (n), int64 if `wide`,
    else int32. grad: (n, width). lr: (1).
    """
    cdef const void *at = <const void *>indices
    cdef bint there
    with nogil:
        there = are_rows(at, wide, n, rows)
        if there:
            adagrad_rows(
                <float *>param, <float *>moment, at, wide, <const float *>grad,
                (<const float *>lr)[0], n, width, epsilon, weight_decay, by_row)
    return there


def adam(
    size_t param, size_t moment_1, size_t moment_2, size_t indices, bint wide, size_t grad,
    size_t lr, size_t steps, Py_ssize_t n, Py_ssize_t rows, Py_ssize_t width,
    float beta1, float beta2, float epsilon, float factor, bint divides, bint by_row,
):
    """Update `n` rows of parameters and moments; return False if an index is out of range.

    param, moment_1: (rows, width). moment_2: the same, or with `by_row` (rows). indices: (n), int64
    if `wide`, else int32. grad: (n, width). lr: (1). steps: (n, width), set to the steps without
    the rate, or 0. The steps are `factor` times the first moment, over the root of the second if
    `divides`.
    """
    cdef float *w
    cdef float *m
    cdef float *v
    cdef float *s = <float *>steps
    cdef const float *g = <const float *>grad
    cdef float rate = (<const float *>lr)[0], first, second, step, left1 = 1 - beta1
    cdef float left2 = 1 - beta2, over = 1
    cdef Py_ssize_t i, k
    cdef int64_t row
    with nogil:
        if not are_rows(<const void *>indices, wide, n, rows):
            with gil:
                return False
        for i in range(n):
            row = row_at(<const void *>indices, wide, i)
            w = <float *>param + row * width
            m = <float *>moment_1 + row * width
            if by_row:
                v = <float *>moment_2 + row
                v[0] = v[0] * beta2 + mean_square(g, width) * left2
                if divides:
                    over = sqrtf(v[0]) + epsilon
                for k in range(width):
                    first = m[k] * beta1 + g[k] * left1
                    m[k] = first
                    step = factor * first / over
                    w[k] += rate * step
                    if s != NULL:
                        s[k] = step
            else:
                v = <float *>moment_2 + row * width
                for k in range(width):
                    first = m[k] * beta1 + g[k] * left1
                    second = v[k] * beta2 + g[k] * g[k] * left2
                    m[k], v[k] = first, second
                    step = factor * first / (sqrtf(second) + epsilon) if divides else factor * first
                    w[k] += rate * step
                    if s != NULL:
                        s[k] = step
            g += width
            if s != NULL:
                s += width
    return True
