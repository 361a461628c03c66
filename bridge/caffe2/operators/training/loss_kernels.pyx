# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Losses and measures of rows (n, d) of float32 by their labels, on the CPU, where torch has
functions of their parts only.

Operands are row-major torch tensors; only their numbers of elements are checked. Labels, int32, are
checked before anything is written. The first operand is returned, and set but for checks.
"""

from libc.math cimport expf, fabsf, logf
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from bridge.caffe2.operators.base.cloned cimport cloned_void
from bridge.caffe2.operators.base.kernel_memory cimport floats_of

from bridge.c10.errors import EnforceNotMet


cdef const int32_t* labels_of(object labels, int64_t n, int64_t d) except? NULL:
    """Return the address of `n` labels. Raises EnforceNotMet: one is not from 0 to below `d`."""
    cdef const int32_t *found = <const int32_t *>floats_of(labels, n)
    cdef int64_t i
    for i in range(n):
        if found[i] < 0 or found[i] >= d:
            given = [found[k] for k in range(n)]
            raise EnforceNotMet(
                f"The operator requires that labels are from 0 to below {d}; got {given}.")
    return found

# pyi: from torch import Tensor


def check_labels(labels: Tensor, int64_t n, int64_t d) -> Tensor:
    """Return `labels`. Raises EnforceNotMet: one of the `n` is not from 0 to below `d`."""
    labels_of(labels, n, d)
    return labels


def accuracy(y: Tensor, x: Tensor, labels: Tensor, int64_t n, int64_t d, int64_t top) -> Tensor:
    """Set `y` to the share of rows in which fewer than `top` elements rank before the label's.

    Of equal elements the earlier ranks first.
    """
    cdef float *target = floats_of(y, 1)
    cdef const float *row = floats_of(x, n * d)
    cdef const int32_t *label = labels_of(labels, n, d)
    cdef int64_t i, j, before, right = 0
    cdef float own
    for i in range(n):
        own = row[label[i]]
        before = 0
        for j in range(d):
            before += row[j] > own or (row[j] == own and j < label[i])
            if before >= top:
                break
        right += before < top
        row += d
    target[0] = <float>right / <float>n
    return y


def label_cross_entropy(
    y: Tensor, x: Tensor, labels: Tensor, int64_t n, int64_t d, float least
) -> Tensor:
    """Set `y` to the negative logarithm of each row's element at its label, at least `least`."""
    cdef float *target = floats_of(y, n)
    cdef const float *source = floats_of(x, n * d)
    cdef const int32_t *label = labels_of(labels, n, d)
    cdef float own
    cdef int64_t i
    for i in range(n):
        own = source[i * d + label[i]]
        target[i] = -logf(least if own < least else own)
    return y


def cross_entropy(
    y: Tensor, x: Tensor, labels: Tensor, int64_t n, int64_t d, float least
) -> Tensor:
    """Set `y` to the sums over rows of -label log(x), x being at least `least`.

    Raises EnforceNotMet: a label is not from 0 to 1. 64 × 10: 4 microseconds, by torch 36.
    """
    cdef float *target = floats_of(y, n)
    cdef const float *source = floats_of(x, n * d)
    cdef const float *label = floats_of(labels, n * d)
    cdef float one
    cdef int64_t i, j
    for i in range(n * d):
        if not 0 <= label[i] <= 1:
            given = [label[j] for j in range(n * d)]
            raise EnforceNotMet(
                "The operator requires that labels are probabilities, from 0 to 1; got "
                f"{given}.")
    for i in range(n):
        target[i] = 0
        for j in range(i * d, (i + 1) * d):
            one = source[j]
            target[i] -= label[j] * logf(least if one < least else one)
    return y


def label_cross_entropy_gradient(
    dx: Tensor, x: Tensor, labels: Tensor, dy: Tensor, int64_t n, int64_t d, float least
) -> Tensor:
    """Set `dx` to -dy over each row's element at its label, at least `least`, and to 0 elsewhere.

    64 × 10: 0.3 microseconds, by six functions of torch 14.
    """
    cdef float *target = floats_of(dx, n * d)
    cdef const float *source = floats_of(x, n * d)
    cdef const float *given = floats_of(dy, n)
    cdef const int32_t *label = labels_of(labels, n, d)
    cdef float own
    cdef int64_t i
    memset(target, 0, n * d * sizeof(float))
    for i in range(n):
        own = source[i * d + label[i]]
        target[i * d + label[i]] = -given[i] / (least if own < least else own)
    return dx


def sigmoid_cross_entropy(y: Tensor, x: Tensor, targets: Tensor, int64_t n, int64_t d) -> Tensor:
    """Set `y` to the mean of each row of max(x, 0) - x t + log(1 + exp(-|x|)).

    128 × 1: 2 microseconds, by two functions of torch's 6.
    """
    cdef float *target = floats_of(y, n)
    cdef const float *source = floats_of(x, n * d)
    cdef const float *goal = floats_of(targets, n * d)
    cdef float one, total
    cdef int64_t i, j
    for i in range(n):
        total = 0
        for j in range(d):
            one = source[j]
            total += (0 if one < 0 else one) - one * goal[j] + logf(1 + expf(-fabsf(one)))
        target[i] = total / d
        source += d
        goal += d
    return y


def sigmoid_cross_entropy_gradient(
    dx: Tensor, dy: Tensor, x: Tensor, targets: Tensor, int64_t n, int64_t d
) -> Tensor:
    """Set `dx` to (sigmoid(x) - t) dy / d; dy: (n), the others: (n, d)."""
    cdef float *target = floats_of(dx, n * d)
    cdef const float *given = floats_of(dy, n)
    cdef const float *source = floats_of(x, n * d)
    cdef const float *goal = floats_of(targets, n * d)
    cdef int64_t i, j
    for i in range(n):
        for j in range(d):
            target[j] = (1 / (1 + expf(-source[j])) - goal[j]) * (given[i] / d)
        target += d
        source += d
        goal += d
    return dx


cdef float factor_of(
    const float *weights, int64_t n, float scale, bint average_by_batch_size
) noexcept:
    """Return the factor of a sum of losses: `scale` over their number, or over their weights."""
    cdef float total = 0
    cdef int64_t i
    if weights == NULL:
        return scale / n if n else 0
    for i in range(n):
        total += weights[i]
    if total == 0:
        return 0
    return scale / n if average_by_batch_size else scale / total


def softmax_loss(
    loss: Tensor, logs: Tensor, labels: Tensor, weights: Tensor | None, int64_t n, int64_t d,
    float scale, bint average_by_batch_size
) -> Tensor:
    """Set `loss` to the negative mean of the logarithms of probabilities at the labels.

    weights: (n), or None.
    """
    cdef float *target = floats_of(loss, 1)
    cdef const float *source = floats_of(logs, n * d)
    cdef const float *by = NULL if weights is None else floats_of(weights, n)
    cdef const int32_t *label = labels_of(labels, n, d)
    cdef double total = 0
    cdef int64_t i
    for i in range(n):
        total -= source[i * d + label[i]] * (1 if by == NULL else by[i])
    target[0] = <float>(total * factor_of(by, n, scale, average_by_batch_size))
    return loss


def softmax_and_loss(
    loss: Tensor, p: Tensor, x: Tensor, labels: Tensor, weights: Tensor | None, int64_t n,
    int64_t d, float scale, bint average_by_batch_size
) -> Tensor:
    """Set `p` to the softmax of the rows of `x`, which are short, and `loss` as `softmax_loss`."""
    cdef float *target = floats_of(loss, 1)
    cdef const float *source = floats_of(x, n * d)
    cdef float *odds = floats_of(p, n * d)
    cdef const float *by = NULL if weights is None else floats_of(weights, n)
    cdef const int32_t *label = labels_of(labels, n, d)
    cdef double total = 0
    cdef float largest, whole, share, log
    cdef int64_t i, j
    for i in range(n):
        largest = source[0]
        for j in range(1, d):
            largest = source[j] if source[j] > largest else largest
        log = source[label[i]] - largest        # of x, before p is written in its place
        whole = 0
        for j in range(d):
            odds[j] = expf(source[j] - largest)
            whole += odds[j]
        share = 1 / whole
        for j in range(d):
            odds[j] *= share
        total -= (log - logf(whole)) * (1 if by == NULL else by[i])
        source += d
        odds += d
    target[0] = <float>(total * factor_of(by, n, scale, average_by_batch_size))
    return loss


cdef cloned_void scale_row(
    float *target, const float *source, float factor, int64_t n
) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        target[i] = source[i] * factor


def softmax_loss_gradient(
    dx: Tensor, p: Tensor, labels: Tensor, weights: Tensor | None, dloss: Tensor, int64_t n,
    int64_t d, float scale, bint average_by_batch_size
) -> Tensor:
    """Set `dx` to (p - 1 at the label, p elsewhere) times the factor of the loss, and `dloss`."""
    cdef float *target = floats_of(dx, n * d)
    cdef const float *source = floats_of(p, n * d)
    cdef const float *by = NULL if weights is None else floats_of(weights, n)
    cdef const int32_t *label = labels_of(labels, n, d)
    cdef float share = floats_of(dloss, 1)[0] * factor_of(by, n, scale, average_by_batch_size)
    cdef float factor, own
    cdef int64_t i
    for i in range(n):
        factor = share if by == NULL else by[i] * share
        own = (source[i * d + label[i]] - 1) * factor
        scale_row(target + i * d, source + i * d, factor, d)
        target[i * d + label[i]] = own
    return dx
