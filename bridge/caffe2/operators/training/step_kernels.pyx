# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Steps of optimizers on float32 tables on the CPU: on all of a few elements, for which calls of
torch take longer than the work, or on some rows, one after the other.

Operands are row-major torch tensors; only their numbers of elements are checked. Those that come
before `indices` are written. Indices, int32 or with `wide` int64, are checked before anything is
written; a row that occurs twice is updated twice. None stands for all of the table, which is then
one row. The first operand is returned.
"""

from libc.math cimport exp, fabs, log, pow, sqrt
from libc.stdint cimport int64_t

from bridge.caffe2.operators.base.kernel_memory cimport floats_of
from bridge.caffe2.operators.base.row_memory cimport row_at

from bridge.c10.errors import EnforceNotMet


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

# pyi: from torch import Tensor


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
