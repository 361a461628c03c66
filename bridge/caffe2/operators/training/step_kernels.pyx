# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Steps of optimizers on whole tensors of a few float32 elements on the CPU, for which calls of
torch take longer than the work.

Operands are row-major torch tensors of `n` elements, or of one; only that is checked. New values
come first, and may be in place of the old. The first operand is set and returned.
"""

from libc.math cimport cbrt, exp, fabs, log, pow, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memmove

from bridge.caffe2.operators.base.kernel_memory cimport floats_of

from bridge.c10.errors import EnforceNotMet

# pyi: from torch import Tensor


def adam(
    new_w: Tensor,
    new_m: Tensor,
    new_v: Tensor,
    step: Tensor | None,
    w: Tensor,
    m: Tensor,
    v: Tensor,
    g: Tensor,
    lr: Tensor,
    iteration: Tensor,
    int64_t n,
    double beta1,
    double beta2,
    double epsilon,
) -> Tensor:
    """Make a step of Adam; `step`, if not None, is set to the steps without the rate."""
    cdef float *params = floats_of(new_w, n)
    cdef float *first = floats_of(new_m, n)
    cdef float *second = floats_of(new_v, n)
    cdef float *taken = NULL if step is None else floats_of(step, n)
    cdef const float *old_w = floats_of(w, n)
    cdef const float *old_m = floats_of(m, n)
    cdef const float *old_v = floats_of(v, n)
    cdef const float *grad = floats_of(g, n)
    cdef double rate = floats_of(lr, 1)[0], a, b, by, found
    cdef double t = <double>(<const int64_t *>floats_of(iteration, 1))[0] + 1
    cdef double correction = sqrt(1 - pow(beta2, t)) / (1 - pow(beta1, t))
    cdef int64_t i
    for i in range(n):
        by = grad[i]
        a = old_m[i] * beta1 + by * (1 - beta1)
        b = old_v[i] * beta2 + by * by * (1 - beta2)
        found = a * correction / (sqrt(b) + epsilon)
        first[i] = <float>a
        second[i] = <float>b
        if taken != NULL:
            taken[i] = <float>found
        params[i] = <float>(old_w[i] + found * rate)
    return new_w


def adagrad(
    new_w: Tensor,
    new_h: Tensor,
    w: Tensor,
    h: Tensor,
    g: Tensor,
    lr: Tensor,
    int64_t n,
    double epsilon,
    double decay,
    double weight_decay,
) -> Tensor:
    """Make a step of Adagrad: `h` has the squares of gradients."""
    cdef float *params = floats_of(new_w, n)
    cdef float *squares = floats_of(new_h, n)
    cdef const float *old_w = floats_of(w, n)
    cdef const float *old_h = floats_of(h, n)
    cdef const float *grad = floats_of(g, n)
    cdef double rate = floats_of(lr, 1)[0], grown, by
    cdef int64_t i
    for i in range(n):
        by = grad[i] + weight_decay * old_w[i]
        grown = old_h[i] * decay + by * by
        squares[i] = <float>grown
        params[i] = <float>(old_w[i] + rate / (sqrt(grown) + epsilon) * by)
    return new_w


def wngrad(
    new_w: Tensor,
    new_b: Tensor,
    w: Tensor,
    b: Tensor,
    g: Tensor,
    lr: Tensor,
    int64_t n,
    double epsilon,
) -> Tensor:
    """Make a step of WNGrad: `b`, one number, divides the rate and grows by the squares."""
    cdef float *params = floats_of(new_w, n)
    cdef const float *old_w = floats_of(w, n)
    cdef const float *grad = floats_of(g, n)
    cdef double before = floats_of(b, 1)[0], total = 0
    cdef double rate = floats_of(lr, 1)[0] / (before + epsilon)
    cdef int64_t i
    for i in range(n):
        total += <double>grad[i] * grad[i]
        params[i] = <float>(old_w[i] + rate * grad[i])
    floats_of(new_b, 1)[0] = <float>(before + total / (before + epsilon))
    return new_w


def momentum(
    step: Tensor,
    new_m: Tensor,
    new_w: Tensor,
    g: Tensor,
    m: Tensor,
    lr: Tensor,
    w: Tensor,
    int64_t n,
    float weight,
    bint nesterov,
) -> Tensor:
    """Set `step` and `new_m` to the step and the momentum, and `new_w` to w - step."""
    cdef float *taken = floats_of(step, n)
    cdef float *moments = floats_of(new_m, n)
    cdef float *params = floats_of(new_w, n)
    cdef const float *grad = floats_of(g, n)
    cdef const float *old_m = floats_of(m, n)
    cdef const float *old_w = floats_of(w, n)
    cdef float rate = floats_of(lr, 1)[0], before, new
    cdef int64_t i
    for i in range(n):
        before = old_m[i]
        new = grad[i] * rate + before * weight
        moments[i] = new
        if nesterov:
            new = new * (1 + weight) - before * weight
        taken[i] = new
        params[i] = old_w[i] - new
    return step


def adadelta(
    new_w: Tensor,
    new_h: Tensor,
    new_d: Tensor,
    w: Tensor,
    h: Tensor,
    d: Tensor,
    g: Tensor,
    lr: Tensor,
    int64_t n,
    double epsilon,
    double decay,
) -> Tensor:
    """Make a step of Adadelta: `h` has the squares of gradients, `d` those of steps."""
    cdef float *params = floats_of(new_w, n)
    cdef float *squares = floats_of(new_h, n)
    cdef float *deltas = floats_of(new_d, n)
    cdef const float *old_w = floats_of(w, n)
    cdef const float *old_h = floats_of(h, n)
    cdef const float *old_d = floats_of(d, n)
    cdef const float *grad = floats_of(g, n)
    cdef double rate = floats_of(lr, 1)[0], grown, step, by
    cdef int64_t i
    for i in range(n):
        by = grad[i]
        grown = old_h[i] * decay + by * by * (1 - decay)
        step = sqrt(old_d[i] + epsilon) / sqrt(grown + epsilon) * by
        squares[i] = <float>grown
        params[i] = <float>(old_w[i] + step * rate)
        deltas[i] = <float>(old_d[i] * decay + step * step * (1 - decay))
    return new_w


def storm(
    new_w: Tensor,
    new_m: Tensor,
    new_total: Tensor,
    w: Tensor,
    m: Tensor,
    total: Tensor,
    g: Tensor,
    lr: Tensor,
    int64_t n,
    double weight,
    double beta,
) -> Tensor:
    """Make a step of STORM: `total`, one number, is the sum of the squares of gradients."""
    cdef float *params = floats_of(new_w, n)
    cdef float *moments = floats_of(new_m, n)
    cdef const float *old_w = floats_of(w, n)
    cdef const float *old_m = floats_of(m, n)
    cdef const float *grad = floats_of(g, n)
    cdef double grown = floats_of(total, 1)[0], rate, keep, moment
    cdef int64_t i
    for i in range(n):
        grown += <double>grad[i] * grad[i]
    rate = floats_of(lr, 1)[0] * pow(grown + beta, -1.0 / 3)
    keep = 1 - rate * rate * weight
    for i in range(n):
        moment = grad[i] + keep * (old_m[i] - grad[i])
        moments[i] = <float>moment
        params[i] = <float>(old_w[i] + rate * moment)
    floats_of(new_total, 1)[0] = <float>grown
    return new_w


def rms_prop(
    step: Tensor,
    new_h: Tensor,
    new_m: Tensor,
    g: Tensor,
    h: Tensor,
    m: Tensor,
    lr: Tensor,
    int64_t n,
    double decay,
    double momentum,
    double epsilon,
) -> Tensor:
    """Set `step` and `new_m` to the steps of RMSProp; `h` has the mean squares of gradients."""
    cdef float *taken = floats_of(step, n)
    cdef float *squares = floats_of(new_h, n)
    cdef float *moments = floats_of(new_m, n)
    cdef const float *grad = floats_of(g, n)
    cdef const float *old_h = floats_of(h, n)
    cdef const float *old_m = floats_of(m, n)
    cdef double rate = floats_of(lr, 1)[0], by, grown
    cdef int64_t i
    for i in range(n):
        by = grad[i]
        grown = old_h[i] + (by * by - old_h[i]) * (1 - decay)
        by = by * rate / sqrt(grown + epsilon) + momentum * old_m[i]
        squares[i] = <float>grown
        moments[i] = <float>by
        taken[i] = <float>by
    return step


def ftrl(
    new_w: Tensor,
    new_pairs: Tensor,
    w: Tensor,
    pairs: Tensor,
    g: Tensor,
    alpha: Tensor | None,
    int64_t n,
    double inverse,
    double beta,
    double lambda1,
    double lambda2,
) -> Tensor:
    """Make a step of Ftrl: `pairs` has n and z in turn. `alpha`, if not None, is 1 / `inverse`."""
    cdef float *params = floats_of(new_w, n)
    cdef float *both = floats_of(new_pairs, 2 * n)
    cdef const float *old_w = floats_of(w, n)
    cdef const float *old = floats_of(pairs, 2 * n)
    cdef const float *grad = floats_of(g, n)
    cdef double before, grown, by, z
    cdef int64_t i
    if alpha is not None:
        inverse = 1 / <double>floats_of(alpha, 1)[0]
    for i in range(n):
        by = grad[i]
        before = old[2 * i]
        grown = before + by * by
        z = old[2 * i + 1] + by - (sqrt(grown) - sqrt(before)) * inverse * old_w[i]
        both[2 * i] = <float>grown
        both[2 * i + 1] = <float>z
        if fabs(z) > lambda1:
            params[i] = <float>(
                ((lambda1 if z > 0 else -lambda1) - z)
                / ((beta + sqrt(grown)) * inverse + lambda2))
        else:
            params[i] = 0
    return new_w


def gftrl(
    new_w: Tensor,
    new_pairs: Tensor,
    w: Tensor,
    pairs: Tensor,
    g: Tensor,
    alpha: Tensor | None,
    int64_t rows,
    int64_t width,
    double inverse,
    double beta,
    double lambda1,
    double lambda2,
) -> Tensor:
    """Make a step of Ftrl whose groups are the columns of a matrix; the rest is as in `ftrl`."""
    cdef int64_t n = rows * width
    cdef float *params = floats_of(new_w, n)
    cdef float *both = floats_of(new_pairs, 2 * n)
    cdef const float *old_w = floats_of(w, n)
    cdef const float *old = floats_of(pairs, 2 * n)
    cdef const float *grad = floats_of(g, n)
    cdef double before, by, norm, least = lambda1 * sqrt(<double>rows)
    cdef int64_t i, j
    if alpha is not None:
        inverse = 1 / <double>floats_of(alpha, 1)[0]
    for i in range(n):
        by = grad[i]
        before = old[2 * i]
        both[2 * i + 1] = <float>(
            old[2 * i + 1] + by - (sqrt(before + by * by) - sqrt(before)) * inverse * old_w[i])
        both[2 * i] = <float>(before + by * by)
    for j in range(width):
        norm = 0
        for i in range(j, n, width):
            norm += <double>both[2 * i + 1] * both[2 * i + 1]
        norm = sqrt(norm)
        for i in range(j, n, width):
            params[i] = 0 if norm <= least else <float>(
                both[2 * i + 1] * (least / norm - 1)
                / ((beta + sqrt(<double>both[2 * i])) * inverse + lambda2))
    return new_w


cdef inline double averaged(double before, double value, double beta) noexcept nogil:
    return beta * before + (1 - beta) * value


def yellow_fin(
    new_w: Tensor,
    list others: list[Tensor],
    w: Tensor,
    list olds: list[Tensor],
    g: Tensor,
    at: Tensor,
    int64_t n,
    int64_t room,
    int64_t width,
    double beta,
    double epsilon,
    bint nesterov,
    bint zero_debias,
) -> Tensor:
    """Make a step of YellowFin. Raises EnforceNotMet: the iteration, in `at`, is not positive.

    others: new momentum, rate, its weight, window of `width` in `room` elements, averages of
    gradients and of their squares, five numbers; `olds` has the old ones.
    """
    cdef int64_t iteration = (<const int64_t *>floats_of(at, 1))[0]
    if iteration < 1:
        raise EnforceNotMet(f"YellowFin requires that iterations begin at 1; got {iteration}.")
    cdef float *params = floats_of(new_w, n)
    cdef float *moments = floats_of(others[0], n)
    cdef float *window = floats_of(others[3], room)
    cdef float *averages = floats_of(others[4], n)
    cdef float *squares = floats_of(others[5], n)
    cdef float *numbers = floats_of(others[6], 5)
    cdef const float *old_w = floats_of(w, n)
    cdef const float *old_m = floats_of(olds[0], n)
    cdef const float *old_average = floats_of(olds[4], n)
    cdef const float *old_squares = floats_of(olds[5], n)
    cdef const float *before = floats_of(olds[6], 5)
    cdef const float *grad = floats_of(g, n)
    cdef double lr = floats_of(olds[1], 1)[0], mu = floats_of(olds[2], 1)[0]
    cdef double debias = 1 / (1 - pow(beta, <double>iteration)) if zero_debias else 1
    cdef double norm2 = 0, variance = 0, moment, by, low, high, far, least, p, cube, root, spread
    cdef double w3
    cdef int64_t i
    for i in range(n):
        by = grad[i]
        norm2 += by * by
        moment = mu * old_m[i] + lr * by
        params[i] = <float>(
            old_w[i] - ((1 + mu) * moment - mu * old_m[i] if nesterov else moment))
        moments[i] = <float>moment
        averages[i] = <float>averaged(old_average[i], by, beta)
        squares[i] = <float>averaged(old_squares[i], by * by, beta)
        variance += (averages[i] * debias) * (averages[i] * debias)
    norm2 = max(norm2, epsilon)
    memmove(window, floats_of(olds[3], room), room * sizeof(float))
    window[(iteration - 1) % width] = <float>log(norm2)
    low = high = window[0]
    for i in range(1, min(width, iteration)):
        low = min(low, <double>window[i])
        high = max(high, <double>window[i])
    numbers[0] = <float>averaged(before[0], sqrt(norm2), beta)
    numbers[1] = <float>averaged(before[1], norm2, beta)
    numbers[2] = <float>averaged(before[2], low, beta)
    numbers[3] = <float>averaged(before[3], high, beta)
    far = (numbers[0] * debias) / (numbers[1] * debias)
    numbers[4] = <float>averaged(before[4], far, beta)
    variance = max(numbers[1] * debias - variance, epsilon)
    floats_of(others[1], 1)[0] = <float>lr
    floats_of(others[2], 1)[0] = <float>mu
    if iteration > 1:
        least = exp(numbers[2] * debias)
        far = numbers[4] * debias
        p = far * far * least * least / 2 / variance
        cube = (-sqrt(p * p + 4.0 / 27.0 * p * p * p) - p) / 2
        w3 = cbrt(cube)
        root = min(w3 - p / 3 / w3 + 1, 1 - 1e-6)
        spread = sqrt(exp(numbers[3] * debias) / least)
        spread = (spread - 1) / (spread + 1)
        by = max(root * root, spread * spread)
        floats_of(others[2], 1)[0] = <float>averaged(mu, by, beta)
        by = 1 - sqrt(by)
        floats_of(others[1], 1)[0] = <float>averaged(lr, by * by / least, beta)
    return new_w


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
