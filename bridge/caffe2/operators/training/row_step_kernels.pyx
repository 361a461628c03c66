# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Steps of optimizers on some rows of float32 tables on the CPU, one row after the other.

Operands are row-major torch tensors; only their numbers of elements are checked. Indices, int32 or
with `wide` int64, are checked before anything is written; a row that occurs twice is updated twice.
The first operand is returned.
"""

from libc.math cimport exp, fabs, log, pow, sqrt
from libc.stdint cimport int64_t

from bridge.caffe2.operators.base.kernel_memory cimport floats_of

from bridge.c10.errors import EnforceNotMet


cdef const void* rows_of(object indices, bint wide, int64_t n, int64_t rows) except? NULL:
    """Return the address of indices. Raises EnforceNotMet unless they are in [0, rows)."""
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


def momentum(
    w: Tensor,
    m: Tensor,
    steps: Tensor,
    indices: Tensor,
    g: Tensor,
    lr: Tensor,
    int64_t n,
    int64_t rows,
    int64_t width,
    bint wide,
    float weight,
    bint nesterov,
) -> Tensor:
    """Add to the momentum `m`, take the steps from `w`, and set `steps` to them."""
    cdef float *params = floats_of(w, rows * width)
    cdef float *moments = floats_of(m, rows * width)
    cdef float *taken = floats_of(steps, n * width)
    cdef const float *grad = floats_of(g, n * width)
    cdef float rate = floats_of(lr, 1)[0], before, new, step
    cdef const void *places = rows_of(indices, wide, n, rows)
    cdef int64_t i, j, at
    for i in range(n):
        at = row_at(places, wide, i) * width
        for j in range(width):
            before = moments[at + j]
            new = grad[i * width + j] * rate + before * weight
            step = new * (1 + weight) - before * weight if nesterov else new
            moments[at + j] = new
            taken[i * width + j] = step
            params[at + j] -= step
    return w


def adadelta(
    w: Tensor,
    h: Tensor,
    d: Tensor,
    indices: Tensor,
    g: Tensor,
    lr: Tensor,
    int64_t n,
    int64_t rows,
    int64_t width,
    bint wide,
    double epsilon,
    double decay,
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
    w: Tensor,
    pairs: Tensor,
    indices: Tensor,
    g: Tensor,
    alpha: Tensor | None,
    int64_t n,
    int64_t rows,
    int64_t width,
    bint wide,
    double inverse,
    double beta,
    double lambda1,
    double lambda2,
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
    w: Tensor,
    b: Tensor,
    indices: Tensor,
    g: Tensor,
    lr: Tensor,
    int64_t n,
    int64_t rows,
    int64_t width,
    bint wide,
    double epsilon,
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
    if n:       # without epsilon, unlike the operator on whole tensors
        scale[0] = <float>(scale[0] + sum_of_squares(grad, n * width) / scale[0])
    return w


def storm(
    w: Tensor,
    m: Tensor,
    total: Tensor,
    indices: Tensor,
    g: Tensor,
    lr: Tensor,
    int64_t n,
    int64_t rows,
    int64_t width,
    bint wide,
    double weight,
    double beta,
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


def count(
    last: Tensor,
    counts: Tensor,
    indices: Tensor,
    iteration: Tensor,
    int64_t n,
    int64_t rows,
    bint wide,
    int64_t halflife,
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
