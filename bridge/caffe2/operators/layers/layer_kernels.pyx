# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Layers of a few float32 elements on the CPU, for which calls of torch take longer than the work.

Operands are row-major torch tensors; only their numbers of elements are checked. The first one is
set and returned unless a function says otherwise.

- Moments of the channels of images, of any size: `var_mean` takes eight times as long as reading.
- Distances of pairs of rows, products of small matrices, and softmax of short rows: torch takes
  four times as long where a row is shorter than its vectors, which have 16 elements at most.
- Steps of an LSTM: torch needs some twenty calls for one. States are (n, d), gates (n, 4, d):
  input, forget, output and candidate, before their sigmoids. `lengths`, int32, are those of the
  sequences, or None; `t`, int32, is the number of the step. For 4 × 32 a step takes 9
  microseconds, by torch 40. For more than some thousand states torch's vectors win.
"""

from libc.math cimport expf, fabs, sqrt, sqrtf
from libc.stdint cimport int32_t, int64_t

from bridge.caffe2.operators.base.kernel_memory cimport floats_of

# pyi: from torch import Tensor


cdef enum:
    LANES = 128


cdef void add_moments(
    const float *x, Py_ssize_t n, float around, float *sums, float *squares
) noexcept nogil:
    cdef Py_ssize_t i
    cdef float value
    for i in range(n):
        value = x[i] - around
        sums[i] += value
        squares[i] += value * value


def moments(
    x: Tensor, mean: Tensor, variance: Tensor, Py_ssize_t images, Py_ssize_t channels,
    Py_ssize_t area
) -> Tensor:
    """Set `mean` and `variance` to those of each channel, over the images; divided by the number.

    x: (images, channels, area), none of them 0; mean, which is returned, and variance: (channels).
    """
    cdef const float *values = floats_of(x, images * channels * area)
    cdef float *means = floats_of(mean, channels)
    cdef float *variances = floats_of(variance, channels)
    cdef Py_ssize_t c, image, i, start, n
    cdef double total, total_squares, count = images * area
    cdef float around
    cdef const float *source
    # Many sums beside each other: they are added at once, and each stays small.
    cdef float sums[LANES]
    cdef float squares[LANES]
    with nogil:
        for c in range(channels):
            # Differences from a value of the channel itself: else squares of large means cancel.
            around = values[c * area]
            for i in range(LANES):
                sums[i] = squares[i] = 0
            for image in range(images):
                source = values + (image * channels + c) * area
                start = 0
                while start < area:
                    n = LANES if area - start > LANES else area - start
                    add_moments(source + start, n, around, sums, squares)
                    start += LANES
            total = total_squares = 0
            for i in range(LANES):
                total += sums[i]
                total_squares += squares[i]
            total /= count
            means[c] = <float>(around + total)
            total_squares = total_squares / count - total * total
            variances[c] = <float>(0 if total_squares < 0 else total_squares)
    return mean


def normalize(
    x: Tensor, y: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor,
    float epsilon, int64_t images, int64_t channels, int64_t area
) -> Tensor:
    """Set `y` to scale * (x - mean) / sqrt(variance + epsilon) + bias, and return it.

    x, y: torch tensors (images, channels, area), which may be the same; the others: (channels).
    """
    cdef const float *sources = floats_of(x, images * channels * area)
    cdef float *targets = floats_of(y, images * channels * area)
    cdef const float *scales = floats_of(scale, channels)
    cdef const float *biases = floats_of(bias, channels)
    cdef const float *means = floats_of(mean, channels)
    cdef const float *variances = floats_of(variance, channels)
    cdef int64_t c, image, i
    cdef const float *source
    cdef float *target
    cdef float by, plus
    with nogil:
        for c in range(channels):
            by = scales[c] / sqrtf(variances[c] + epsilon)
            plus = biases[c] - by * means[c]
            for image in range(images):
                source = sources + (image * channels + c) * area
                target = targets + (image * channels + c) * area
                for i in range(area):
                    target[i] = by * source[i] + plus
    return y


def compare(
    z: Tensor, x: Tensor, y: Tensor, int64_t rows, int64_t width, object kind: str
) -> Tensor:
    """Set each z to a distance or similarity of two rows.

    kind: "square", half the sum of (x - y)^2; "absolute", the sum of |x - y|; "product", that of
    x y; or "cosine", the product over the norms, at least 1e-6 each.
    """
    cdef float *target = floats_of(z, rows)
    cdef const float *a = floats_of(x, rows * width)
    cdef const float *b = floats_of(y, rows * width)
    cdef bint squares = kind == "square", is_cosine = kind == "cosine"
    cdef bint multiplies = is_cosine or kind == "product"
    cdef double total, left, right, apart
    cdef int64_t i, j
    for i in range(rows):
        total = left = right = 0
        for j in range(i * width, (i + 1) * width):
            apart = a[j] - b[j]
            if multiplies:
                total += a[j] * b[j]
                left += a[j] * a[j]
                right += b[j] * b[j]
            else:
                total += apart * apart if squares else fabs(apart)
        if squares:
            total /= 2
        elif is_cosine:
            total /= sqrt(max(left, 1e-12)) * sqrt(max(right, 1e-12))
        target[i] = <float>total
    return z


def half_square_gradient(
    dx: Tensor, dy: Tensor, x: Tensor, y: Tensor, dz: Tensor, int64_t rows, int64_t width
) -> Tensor:
    """Set dx to (x - y) dz, row by row, and dy to -dx."""
    cdef float *left = floats_of(dx, rows * width)
    cdef float *right = floats_of(dy, rows * width)
    cdef const float *a = floats_of(x, rows * width)
    cdef const float *b = floats_of(y, rows * width)
    cdef const float *by = floats_of(dz, rows)
    cdef int64_t i, j
    for i in range(rows):
        for j in range(i * width, (i + 1) * width):
            left[j] = (a[j] - b[j]) * by[i]
            right[j] = -left[j]
    return dx


def mean(y: Tensor, x: Tensor, int64_t n) -> Tensor:
    """Set the one element of `y` to the mean of `n` elements, at least one."""
    cdef float *target = floats_of(y, 1)
    cdef const float *source = floats_of(x, n)
    cdef double total = 0
    cdef int64_t i
    for i in range(n):
        total += source[i]
    target[0] = <float>(total / n)
    return y


def spread(y: Tensor, x: Tensor, int64_t n) -> Tensor:
    """Set the `n` elements of `y` to an `n`-th of the one of `x`."""
    cdef float *target = floats_of(y, n)
    cdef float share = floats_of(x, 1)[0] / <float>n
    cdef int64_t i
    for i in range(n):
        target[i] = share
    return y


cdef enum:
    COLUMNS = 64    # of the result; so many are added at once
    DEPTH = 64      # of the product


cdef void add_products(
    const float *x, const float *turned, int64_t depth, int64_t columns, float *y
) noexcept nogil:
    """Add x times `turned`, (depth, columns), to a row; four at once, since `y` is in memory."""
    cdef int64_t j, k = 0
    cdef float a, b, c, d
    cdef const float *more
    while k + 4 <= depth:
        a, b, c, d = x[k], x[k + 1], x[k + 2], x[k + 3]
        more = turned + k * columns
        for j in range(columns):
            y[j] += (a * more[j] + b * more[columns + j]) + (
                c * more[2 * columns + j] + d * more[3 * columns + j])
        k += 4
    while k < depth:
        a = x[k]
        more = turned + k * columns
        for j in range(columns):
            y[j] += a * more[j]
        k += 1


def fully_connected(
    x: Tensor, w: Tensor, b: Tensor, y: Tensor, int64_t rows, int64_t depth, int64_t columns
) -> Tensor:
    """Set `y`, (rows, columns), to x times the transposed w, plus b, and return it.

    Row-major float32 torch tensors on the CPU: x: (rows, depth), w: (columns, depth), b: (columns);
    `y` is none of them. Only the numbers of elements are checked.
    """
    cdef const float *source = floats_of(x, rows * depth)
    cdef const float *weights = floats_of(w, columns * depth)
    cdef const float *plus = floats_of(b, columns)
    cdef float *target = floats_of(y, rows * columns)
    cdef float turned[DEPTH * COLUMNS]
    cdef int64_t i, j, k, first = 0, start, many, deep
    for i in range(rows):
        for j in range(columns):
            target[i * columns + j] = 0
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
                    source + i * depth + start, turned, deep, many, target + i * columns + first)
            start += DEPTH
        first += COLUMNS
    for i in range(rows):
        for j in range(columns):
            target[i * columns + j] += plus[j]  # last, as Caffe2 rounds
    return y


cdef inline float sigmoid(float x) noexcept nogil:
    return 1 / (1 + expf(-x))


cdef inline float tangent(float x) noexcept nogil:
    return 2 * sigmoid(2 * x) - 1


cdef const int32_t* numbers_of(object x, int64_t n) except? NULL:
    return NULL if x is None else <const int32_t *>floats_of(x, n)


def lstm_step(
    h: Tensor, c: Tensor, old_h: Tensor, old_c: Tensor, gates: Tensor, lengths: Tensor | None,
    t: Tensor, int64_t n, int64_t d, bint drop_states, float forget_bias
) -> Tensor:
    """Set `h` and `c` to the hidden and cell states after a step."""
    cdef float *hidden = floats_of(h, n * d)
    cdef float *cell = floats_of(c, n * d)
    cdef const float *before = floats_of(old_h, n * d)
    cdef const float *old = floats_of(old_c, n * d)
    cdef const float *gate = floats_of(gates, 4 * n * d)
    cdef const int32_t *length = numbers_of(lengths, n)
    cdef int32_t now = (<const int32_t *>floats_of(t, 1))[0]
    cdef float new
    cdef int64_t i, j
    for i in range(n):
        for j in range(d):
            if length == NULL or now < length[i]:
                new = sigmoid(gate[d + j] + forget_bias) * old[j] \
                    + sigmoid(gate[j]) * tangent(gate[3 * d + j])
                cell[j] = new
                hidden[j] = sigmoid(gate[2 * d + j]) * tangent(new)
            else:
                cell[j] = 0 if drop_states else old[j]
                hidden[j] = 0 if drop_states else before[j]
        hidden += d
        cell += d
        before += d
        old += d
        gate += 4 * d
    return h


def lstm_step_gradient(
    dhidden: Tensor, dcell: Tensor, dgates: Tensor, old_c: Tensor, gates: Tensor,
    lengths: Tensor | None, t: Tensor, new_c: Tensor, dh: Tensor, dc: Tensor, int64_t n, int64_t d,
    bint drop_states, float forget_bias
) -> Tensor:
    """Set the gradients of the states before a step and of its gates, from those after it."""
    cdef float *to_hidden = floats_of(dhidden, n * d)
    cdef float *to_cell = floats_of(dcell, n * d)
    cdef float *to_gate = floats_of(dgates, 4 * n * d)
    cdef const float *old = floats_of(old_c, n * d)
    cdef const float *gate = floats_of(gates, 4 * n * d)
    cdef const float *new = floats_of(new_c, n * d)
    cdef const float *of_hidden = floats_of(dh, n * d)
    cdef const float *of_cell = floats_of(dc, n * d)
    cdef const int32_t *length = numbers_of(lengths, n)
    cdef int32_t now = (<const int32_t *>floats_of(t, 1))[0]
    cdef float i, f, o, g, tanh_c, inner, given
    cdef int64_t k, j
    for k in range(n):
        for j in range(d):
            given = of_hidden[j]
            if length == NULL or now < length[k]:
                i = sigmoid(gate[j])
                f = sigmoid(gate[d + j] + forget_bias)
                o = sigmoid(gate[2 * d + j])
                g = tangent(gate[3 * d + j])
                tanh_c = tangent(new[j])
                inner = given * o * (1 - tanh_c * tanh_c) + of_cell[j]
                to_gate[j] = inner * g * i * (1 - i)
                to_gate[d + j] = inner * old[j] * f * (1 - f)
                to_gate[2 * d + j] = given * tanh_c * o * (1 - o)
                to_gate[3 * d + j] = inner * i * (1 - g * g)
                to_cell[j] = inner * f
                to_hidden[j] = 0
            else:
                to_gate[j] = to_gate[d + j] = to_gate[2 * d + j] = to_gate[3 * d + j] = 0
                to_cell[j] = 0 if drop_states else of_cell[j]
                to_hidden[j] = 0 if drop_states else given
        to_hidden += d
        to_cell += d
        to_gate += 4 * d
        old += d
        gate += 4 * d
        new += d
        of_hidden += d
        of_cell += d
    return dhidden


def softmax(x: Tensor, y: Tensor, Py_ssize_t rows, Py_ssize_t columns) -> Tensor:
    """Set the rows of `y` to exp(x) over its sum, and return it.

    x, y: (rows, columns), row-major float32, which may be the same.
    """
    cdef Py_ssize_t _row, j
    cdef const float *source = floats_of(x, rows * columns)
    cdef float *target = floats_of(y, rows * columns)
    cdef float largest, total, share
    with nogil:
        for _row in range(rows):
            largest = source[0] if columns else 0
            for j in range(1, columns):
                largest = source[j] if source[j] > largest else largest
            total = 0
            for j in range(columns):
                target[j] = expf(source[j] - largest)
                total += target[j]
            share = 1 / total
            for j in range(columns):
                target[j] *= share
            source += columns
            target += columns
    return y
