# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Steps of optimizers on float32 tables on the CPU: on all of a few elements, for which calls of
torch take longer than the work, or on some rows, one after the other, in one pass over these.

Operands are row-major torch tensors; only their numbers of elements are checked. Those that come
before `indices` are written. Indices, int32 or with `wide` int64, are checked before anything is
written; a row that occurs twice is updated twice. None stands for all of the table, which is then
one row. The first operand is returned.
"""

from libc.math cimport exp, fabs, log, pow, sqrt, sqrtf
from libc.stdint cimport int64_t, uint64_t

from bridge.caffe2.operators.base.cloned cimport cloned_void, inlined_void
from bridge.caffe2.operators.base.kernel_memory cimport floats_of
from bridge.caffe2.operators.base.row_memory cimport AHEAD, fetch, row_at

from bridge.c10.errors import EnforceNotMet

# pyi: from torch import Tensor


cdef const void* rows_of(object indices, bint wide, int64_t n, int64_t rows) except? NULL:
    """Return the address of indices. Raises EnforceNotMet unless they are in [0, rows)."""
    if indices is None:
        return NULL
    cdef const void *places = <const void *>floats_of(indices, n)
    cdef int64_t i, row
    for i in range(n):
        row = row_at(places, wide, i)
        if row < 0 or row >= rows:
            given = [row_at(places, wide, k) for k in range(n)]
            raise EnforceNotMet(
                f"The operator requires that rows are from 0 to below {rows}; got {given}.")
    return places


cdef double sum_of_squares(const float *g, int64_t n) noexcept nogil:
    cdef double total = 0
    cdef int64_t i
    for i in range(n):
        total += <double>g[i] * g[i]
    return total


def adam(
    w: Tensor, m: Tensor, v: Tensor, step: Tensor | None, g: Tensor, lr: Tensor, iteration: Tensor,
    int64_t n, double beta1, double beta2, double epsilon
) -> Tensor:
    """Make a step of Adam; `step`, if not None, is set to the steps without the rate."""
    cdef float *params = floats_of(w, n)
    cdef float *first = floats_of(m, n)
    cdef float *second = floats_of(v, n)
    cdef float *taken = NULL if step is None else floats_of(step, n)
    cdef const float *grad = floats_of(g, n)
    cdef double rate = floats_of(lr, 1)[0], a, b, by, found
    cdef double t = <double>(<const int64_t *>floats_of(iteration, 1))[0] + 1
    cdef double correction = sqrt(1 - pow(beta2, t)) / (1 - pow(beta1, t))
    cdef int64_t i
    for i in range(n):
        by = grad[i]
        a = first[i] * beta1 + by * (1 - beta1)
        b = second[i] * beta2 + by * by * (1 - beta2)
        found = a * correction / (sqrt(b) + epsilon)
        first[i] = <float>a
        second[i] = <float>b
        if taken != NULL:
            taken[i] = <float>found
        params[i] = <float>(params[i] + found * rate)
    return w


def adagrad(
    w: Tensor, h: Tensor, g: Tensor, lr: Tensor, int64_t n, double epsilon, double decay,
    double weight_decay
) -> Tensor:
    """Make a step of Adagrad: `h` has the squares of gradients."""
    cdef float *params = floats_of(w, n)
    cdef float *squares = floats_of(h, n)
    cdef const float *grad = floats_of(g, n)
    cdef double rate = floats_of(lr, 1)[0], grown, by
    cdef int64_t i
    for i in range(n):
        by = grad[i] + weight_decay * params[i]
        grown = squares[i] * decay + by * by
        squares[i] = <float>grown
        params[i] = <float>(params[i] + rate / (sqrt(grown) + epsilon) * by)
    return w


def rms_prop(
    steps: Tensor, h: Tensor, m: Tensor, lr: Tensor, int64_t n, double decay, double momentum,
    double epsilon
) -> Tensor:
    """Set `steps`, the gradients, and `m` to the steps of RMSProp; `h` has the mean squares."""
    cdef float *taken = floats_of(steps, n)
    cdef float *squares = floats_of(h, n)
    cdef float *moments = floats_of(m, n)
    cdef double rate = floats_of(lr, 1)[0], by, grown
    cdef int64_t i
    for i in range(n):
        by = taken[i]
        grown = squares[i] + (by * by - squares[i]) * (1 - decay)
        by = by * rate / sqrt(grown + epsilon) + momentum * moments[i]
        squares[i] = <float>grown
        moments[i] = <float>by
        taken[i] = <float>by
    return steps


def momentum(
    steps: Tensor, m: Tensor, w: Tensor | None, indices: Tensor | None, lr: Tensor, int64_t n,
    int64_t rows, int64_t width, bint wide, float weight, bint nesterov
) -> Tensor:
    """Add to the momentum `m`, and set `steps`, the gradients, to the steps.

    They are taken from `w`, if there is one.
    """
    cdef float *params = NULL if w is None else floats_of(w, rows * width)
    cdef float *moments = floats_of(m, rows * width)
    cdef float *taken = floats_of(steps, n * width)
    cdef float rate = floats_of(lr, 1)[0], before, new, step
    cdef const void *places = rows_of(indices, wide, n, rows)
    cdef int64_t i, j, at
    for i in range(n):
        at = row_at(places, wide, i) * width
        for j in range(width):
            before = moments[at + j]
            new = taken[i * width + j] * rate + before * weight
            step = new * (1 + weight) - before * weight if nesterov else new
            moments[at + j] = new
            taken[i * width + j] = step
            if params != NULL:
                params[at + j] -= step
    return steps


def adadelta(
    w: Tensor, h: Tensor, d: Tensor, indices: Tensor | None, g: Tensor, lr: Tensor, int64_t n,
    int64_t rows, int64_t width, bint wide, double epsilon, double decay
) -> Tensor:
    """Make steps of Adadelta: `h` has the squares of gradients, `d` those of steps."""
    cdef float *params = floats_of(w, rows * width)
    cdef float *squares = floats_of(h, rows * width)
    cdef float *deltas = floats_of(d, rows * width)
    cdef const float *grad = floats_of(g, n * width)
    cdef double rate = floats_of(lr, 1)[0], grown, step, by
    cdef const void *places = rows_of(indices, wide, n, rows)
    cdef int64_t i, j, at
    for i in range(n):
        for j in range(width):
            at = row_at(places, wide, i) * width + j
            by = grad[i * width + j]
            grown = squares[at] * decay + by * by * (1 - decay)
            step = sqrt(deltas[at] + epsilon) / sqrt(grown + epsilon) * by
            squares[at] = <float>grown
            params[at] = <float>(params[at] + step * rate)
            deltas[at] = <float>(deltas[at] * decay + step * step * (1 - decay))
    return w


def ftrl(
    w: Tensor, pairs: Tensor, indices: Tensor | None, g: Tensor, alpha: Tensor | None, int64_t n,
    int64_t rows, int64_t width, bint wide, double inverse, double beta, double lambda1,
    double lambda2
) -> Tensor:
    """Make steps of Ftrl: `pairs` has n and z in turn. `alpha`, if not None, is 1 / `inverse`."""
    cdef float *params = floats_of(w, rows * width)
    cdef float *both = floats_of(pairs, 2 * rows * width)
    cdef const float *grad = floats_of(g, n * width)
    cdef double grown, by, z
    cdef const void *places = rows_of(indices, wide, n, rows)
    cdef int64_t i, j, at
    if alpha is not None:
        inverse = 1 / <double>floats_of(alpha, 1)[0]
    for i in range(n):
        for j in range(width):
            at = row_at(places, wide, i) * width + j
            by = grad[i * width + j]
            grown = both[2 * at] + by * by
            z = both[2 * at + 1] + by - (sqrt(grown) - sqrt(both[2 * at])) * inverse * params[at]
            both[2 * at] = <float>grown
            both[2 * at + 1] = <float>z
            if fabs(z) > lambda1:
                params[at] = <float>(
                    ((lambda1 if z > 0 else -lambda1) - z)
                    / ((beta + sqrt(grown)) * inverse + lambda2))
            else:
                params[at] = 0
    return w


def wngrad(
    w: Tensor, b: Tensor, indices: Tensor | None, g: Tensor, lr: Tensor, int64_t n, int64_t rows,
    int64_t width, bint wide, double epsilon
) -> Tensor:
    """Make steps of WNGrad: `b`, one number, divides the rate and grows by the squares."""
    cdef float *params = floats_of(w, rows * width)
    cdef float *scale = floats_of(b, 1)
    cdef const float *grad = floats_of(g, n * width)
    cdef double rate = floats_of(lr, 1)[0] / (scale[0] + epsilon)
    cdef const void *places = rows_of(indices, wide, n, rows)
    cdef int64_t i, j, at
    for i in range(n):
        at = row_at(places, wide, i) * width
        for j in range(width):
            params[at + j] = <float>(params[at + j] + rate * grad[i * width + j])
    if n:       # without epsilon for rows, unlike all of a table
        scale[0] = <float>(
            scale[0] + sum_of_squares(grad, n * width)
            / (scale[0] + (epsilon if places == NULL else 0)))
    return w


def storm(
    w: Tensor, m: Tensor, total: Tensor, indices: Tensor | None, g: Tensor, lr: Tensor, int64_t n,
    int64_t rows, int64_t width, bint wide, double weight, double beta
) -> Tensor:
    """Make steps of STORM: `total`, one number, is the sum of the squares of gradients."""
    cdef float *params = floats_of(w, rows * width)
    cdef float *moments = floats_of(m, rows * width)
    cdef float *squares = floats_of(total, 1)
    cdef const float *grad = floats_of(g, n * width)
    cdef double grown = squares[0] + sum_of_squares(grad, n * width)
    cdef double rate = floats_of(lr, 1)[0] * pow(grown + beta, -1.0 / 3)
    cdef double keep = 1 - rate * rate * weight, moment, by
    cdef const void *places = rows_of(indices, wide, n, rows)
    cdef int64_t i, j, at
    for i in range(n):
        for j in range(width):
            at = row_at(places, wide, i) * width + j
            by = grad[i * width + j]
            moment = by + keep * (moments[at] - by)
            moments[at] = <float>moment
            params[at] = <float>(params[at] + rate * moment)
    if n:
        squares[0] = <float>grown
    return w


def count_rows(
    last: Tensor, counts: Tensor, indices: Tensor, iteration: Tensor, int64_t n, int64_t rows,
    bint wide, int64_t halflife
) -> Tensor:
    """Set the `last` iteration of rows to `iteration`, and add to their decayed `counts`, doubles.

    Nothing is counted unless `halflife` is positive.
    """
    cdef int64_t *before = <int64_t *>floats_of(last, rows)
    cdef double *found = <double *>floats_of(counts, rows)
    cdef const void *places = rows_of(indices, wide, n, rows)
    cdef int64_t step = (<const int64_t *>floats_of(iteration, 1))[0], row
    cdef double decay = log(2.0) / halflife if halflife > 0 else 0
    cdef int64_t i
    for i in range(n if halflife > 0 else 0):
        row = row_at(places, wide, i)
        found[row] = 1 + exp(-max(<int64_t>0, step - before[row]) * decay) * found[row]
        before[row] = max(step, before[row])
    return last


def rate(y: Tensor, iteration: Tensor, int64_t n, policy: Callable[[int], float]) -> Tensor:
    """Set the one element of `y` to the result of a function for the first of `n` integers."""
    cdef float *target = floats_of(y, 1)
    cdef const int64_t *at = <const int64_t *>floats_of(iteration, n)
    target[0] = <float><double>policy(at[0])
    return y


def count(y: Tensor, int64_t largest) -> bool:
    """Add one to the int64 in `y` and return True, unless it is negative or the largest."""
    cdef int64_t *at = <int64_t *>floats_of(y, 1)
    if at[0] < 0 or at[0] >= largest:
        return False
    at[0] += 1
    return True


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


def sparse_adagrad(
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


def sparse_adam(
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
