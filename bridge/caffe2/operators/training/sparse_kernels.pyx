# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Steps of optimizers on some rows of float32 tables on the CPU, in one pass over these rows.

Operands are row-major torch tensors. Rows that occur several times are updated in turn. Nothing is
checked but numbers of elements and the indices of the rows, all before anything is written. The
first operand is returned.
"""

from libc.math cimport sqrtf
from libc.stdint cimport int64_t, uint64_t

from bridge.caffe2.operators.base.cloned cimport cloned_void, inlined_void
from bridge.caffe2.operators.base.kernel_memory cimport floats_of
from bridge.caffe2.operators.base.row_memory cimport AHEAD, fetch, row_at
from bridge.caffe2.operators.training.step_kernels cimport rows_of


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

# pyi: from torch import Tensor


def adagrad(
    param: Tensor, moment: Tensor, indices: Tensor, grad: Tensor, lr: Tensor, int64_t n,
    int64_t rows, int64_t width, bint wide, float epsilon, float weight_decay, bint by_row
) -> Tensor:
    """Update `n` rows of parameters and moments.

    param: (rows, width). moment: the same, or with `by_row` (rows). indices: (n), int64 if `wide`,
    else int32. grad: (n, width). lr: (1).
    """
    cdef float *w = floats_of(param, rows * width)
    cdef float *h = floats_of(moment, rows if by_row else rows * width)
    cdef const float *g = floats_of(grad, n * width)
    cdef float rate = floats_of(lr, 1)[0]
    cdef const void *at = rows_of(indices, wide, n, rows)
    with nogil:
        adagrad_rows(w, h, at, wide, g, rate, n, width, epsilon, weight_decay, by_row)
    return param


def adam(
    param: Tensor, moment_1: Tensor, moment_2: Tensor, steps: Tensor | None, indices: Tensor,
    grad: Tensor, lr: Tensor, iteration: Tensor, int64_t n, int64_t rows, int64_t width, bint wide,
    float beta1, float beta2, float epsilon, scale: Callable[[int], tuple[float, bool]], bint by_row
) -> Tensor:
    """Update `n` rows of parameters and moments.

    param, moment_1: (rows, width). moment_2: the same, or with `by_row` (rows). indices: (n), int64
    if `wide`, else int32. grad: (n, width). lr, iteration: (1). steps: (n, width), set to the steps
    without the rate, or None. The steps are a factor times the first moment, and maybe over the
    root of the second: `scale` returns both for the number of the step.
    """
    cdef float *params = floats_of(param, rows * width)
    cdef float *moments = floats_of(moment_1, rows * width)
    cdef float *squares = floats_of(moment_2, rows if by_row else rows * width)
    cdef float *s = NULL if steps is None else floats_of(steps, n * width)
    cdef const float *g = floats_of(grad, n * width)
    cdef const void *at = rows_of(indices, wide, n, rows)
    cdef float rate = floats_of(lr, 1)[0], first, second, step, left1 = 1 - beta1
    cdef float left2 = 1 - beta2, over = 1, factor
    cdef float *w
    cdef float *m
    cdef float *v
    cdef Py_ssize_t i, k
    cdef int64_t row
    cdef bint divides
    # (unsigned: wraps around, as in torch)
    factor, divides = scale(<int64_t>((<const uint64_t *>floats_of(iteration, 1))[0] + 1))
    with nogil:
        for i in range(n):
            row = row_at(at, wide, i)
            w = params + row * width
            m = moments + row * width
            if by_row:
                v = squares + row
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
                v = squares + row * width
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
    return param
