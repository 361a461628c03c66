# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Pooling of row-major float32 planes on the CPU: the maximum or the mean of each window, and the
gradient of the maximum.

torch's own kernels take three to five times as long on this layout. A window is pooled along its
columns first, a whole row of the image at a time, and then along the row. Windows may extend over
the edges by any amount, unequal on both sides; elements outside do not count.

Operands are row-major torch tensors; only their numbers of elements are checked.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc

from bridge.caffe2.operators.base.kernel_memory cimport floats_of


cdef struct Window:
    # Along one dimension: of the image, of the result, and of the windows.
    Py_ssize_t size
    Py_ssize_t out
    Py_ssize_t kernel
    Py_ssize_t stride
    Py_ssize_t head


cdef inline Py_ssize_t first(const Window *w, Py_ssize_t i) noexcept nogil:
    """Return where window `i` begins in the image."""
    cdef Py_ssize_t start = i * w.stride - w.head
    return start if start > 0 else 0


cdef inline Py_ssize_t last(const Window *w, Py_ssize_t i) noexcept nogil:
    """Return where window `i` ends in the image, exclusive."""
    cdef Py_ssize_t end = i * w.stride - w.head + w.kernel
    return end if end < w.size else w.size


cdef Py_ssize_t padded(const Window *w) noexcept nogil:
    """Return how long a row is with its padding, so that all windows are inside."""
    cdef Py_ssize_t windows = (w.out - 1) * w.stride + w.kernel
    cdef Py_ssize_t image = w.head + w.size
    return windows if windows > image else image


cdef void fill(float *row, Py_ssize_t n, float value) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        row[i] = value


cdef bint has_nan(const float *x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef int found = 0
    for i in range(n):
        found |= x[i] != x[i]
    return found


cdef inline float larger(float a, float b) noexcept nogil:
    return a if a > b else b


cdef inline float larger_or_nan(float a, float b) noexcept nogil:
    return a if a > b or a != a else b


cdef void largest_of_rows(
    const float *x, Py_ssize_t rows, Py_ssize_t width, float *into
) noexcept nogil:
    """Set `into` to the maxima of the columns."""
    cdef Py_ssize_t i, j
    cdef const float *next
    for j in range(width):
        into[j] = x[j]
    for i in range(1, rows):
        next = x + i * width
        for j in range(width):
            into[j] = larger(next[j], into[j])


cdef void sum_of_rows(
    const float *x, Py_ssize_t rows, Py_ssize_t width, float *into
) noexcept nogil:
    """Set `into` to the sums of the columns."""
    cdef Py_ssize_t i, j
    cdef const float *next
    for j in range(width):
        into[j] = x[j]
    for i in range(1, rows):
        next = x + i * width
        for j in range(width):
            into[j] += next[j]


cdef void largest_in_row(const float *row, const Window *w, float *y) noexcept nogil:
    """Set `y` to the maxima of the windows of a padded row."""
    cdef Py_ssize_t i, k
    if w.stride == 1:
        for i in range(w.out):
            y[i] = row[i]
        for k in range(1, w.kernel):
            for i in range(w.out):
                y[i] = larger(row[i + k], y[i])
    elif w.stride == 2 and w.kernel == 3:
        for i in range(w.out):
            y[i] = larger(larger(row[2 * i], row[2 * i + 1]), row[2 * i + 2])
    elif w.stride == 2 and w.kernel == 2:
        for i in range(w.out):
            y[i] = larger(row[2 * i], row[2 * i + 1])
    else:
        for i in range(w.out):
            y[i] = row[i * w.stride]
            for k in range(1, w.kernel):
                y[i] = larger(row[i * w.stride + k], y[i])


cdef void sum_in_row(const float *row, const Window *w, float *y) noexcept nogil:
    """Set `y` to the sums of the windows of a padded row."""
    cdef Py_ssize_t i, k
    if w.stride == 1:
        for i in range(w.out):
            y[i] = row[i]
        for k in range(1, w.kernel):
            for i in range(w.out):
                y[i] += row[i + k]
    else:
        for i in range(w.out):
            y[i] = row[i * w.stride]
            for k in range(1, w.kernel):
                y[i] += row[i * w.stride + k]


cdef void max_of_plane_with_nan(
    const float *x, float *y, const Window *h, const Window *w
) noexcept nogil:
    """Pool a plane in which there are NaNs: a window with one is NaN, as torch has it."""
    cdef Py_ssize_t i, j, row, column
    cdef float found
    for i in range(h.out):
        for j in range(w.out):
            found = -INFINITY
            for row in range(first(h, i), last(h, i)):
                for column in range(first(w, j), last(w, j)):
                    found = larger_or_nan(x[row * w.size + column], found)
            y[i * w.out + j] = found


cdef void max_of_plane(
    const float *x, float *y, const Window *h, const Window *w, float *row
) noexcept nogil:
    cdef Py_ssize_t i, top, bottom
    for i in range(h.out):
        top, bottom = first(h, i), last(h, i)
        if top < bottom:
            largest_of_rows(x + top * w.size, bottom - top, w.size, row + w.head)
        else:
            fill(row + w.head, w.size, -INFINITY)
        largest_in_row(row, w, y + i * w.out)


cdef void mean_of_plane(
    const float *x, float *y, const Window *h, const Window *w, float *row, const float *shares,
    bint whole
) noexcept nogil:
    cdef Py_ssize_t i, j, top, bottom
    cdef float share
    for i in range(h.out):
        top, bottom = first(h, i), last(h, i)
        if top < bottom:
            sum_of_rows(x + top * w.size, bottom - top, w.size, row + w.head)
        else:
            fill(row + w.head, w.size, 0)
        sum_in_row(row, w, y + i * w.out)
        share = <float>1.0 / (h.kernel if whole else bottom - top)
        for j in range(w.out):
            y[i * w.out + j] *= share * shares[j]


cdef void max_gradient_of_plane(
    const float *x, const float *y, const float *dy, float *dx, const Window *h, const Window *w
) noexcept nogil:
    cdef Py_ssize_t i, j, row, column, start, end
    cdef float largest, gradient
    for i in range(h.out):
        for j in range(w.out):
            largest, gradient = y[i * w.out + j], dy[i * w.out + j]
            start, end = first(w, j), last(w, j)
            for row in range(first(h, i), last(h, i)):
                for column in range(row * w.size + start, row * w.size + end):
                    dx[column] += gradient if x[column] == largest else 0


cdef float sum_of(const float *x, Py_ssize_t n) noexcept nogil:
    """Return the sum of `n` values; eight are added at a time."""
    cdef float parts[8]
    cdef float total = 0
    cdef Py_ssize_t i, j
    for j in range(8):
        parts[j] = 0
    for i in range(0, n - 7, 8):
        for j in range(8):
            parts[j] += x[i + j]
    for i in range(n - n % 8, n):
        total += x[i]
    for j in range(8):
        total += parts[j]
    return total


cdef bint is_whole(const Window *w) noexcept nogil:
    """Return whether there is one window, which has all of the image."""
    return w.out == 1 and w.head >= 0 and w.kernel - w.head >= w.size


cdef void along(object sizes, Window *w) except *:
    w.size, w.out, w.kernel, w.stride, w.head = sizes


def max_pool(
    x: Tensor, y: Tensor, Py_ssize_t planes, height: _Dimension, width: _Dimension
) -> Tensor:
    """Set `y` to the maxima of the windows of `x`, and return it.

    x, y: `planes` images, row-major float32; for (N, C, H, W) N * C of them.
    height, width: (size, number of windows, kernel, stride, padding before) of that dimension;
    the padding is not negative.

    A window with a NaN is NaN. One that is wholly outside is -inf.
    """
    cdef Window h, w
    cdef Py_ssize_t _plane, length
    cdef const float *image
    cdef float *out
    along(height, &h)
    along(width, &w)
    image = floats_of(x, planes * h.size * w.size)
    out = floats_of(y, planes * h.out * w.out)
    length = padded(&w)
    cdef float *row = <float *>malloc((length or 1) * sizeof(float))
    if row == NULL:
        raise MemoryError
    with nogil:
        fill(row, length, -INFINITY)
        for _plane in range(planes):
            if has_nan(image, h.size * w.size):
                max_of_plane_with_nan(image, out, &h, &w)
            else:
                max_of_plane(image, out, &h, &w, row)
            image += h.size * w.size
            out += h.out * w.out
        free(row)
    return y


def max_pool_gradient(
    x: Tensor, y: Tensor, dy: Tensor, dx: Tensor, Py_ssize_t planes, height: _Dimension,
    width: _Dimension
) -> Tensor:
    """Set `dx` to the sums of `dy` over the windows whose maximum, in `y`, an element equals.

    x, dx and y, dy: images and results, as of `max_pool`. Returns `dx`.
    """
    cdef Window h, w
    cdef Py_ssize_t i, area, out
    along(height, &h)
    along(width, &w)
    area, out = h.size * w.size, h.out * w.out
    cdef const float *image = floats_of(x, planes * area)
    cdef const float *result = floats_of(y, planes * out)
    cdef const float *slopes = floats_of(dy, planes * out)
    cdef float *target = floats_of(dx, planes * area)
    with nogil:
        fill(target, planes * area, 0)
        for i in range(planes):
            max_gradient_of_plane(
                image + i * area, result + i * out, slopes + i * out, target + i * area, &h, &w)
    return dx


def average_pool(
    x: Tensor, y: Tensor, Py_ssize_t planes, height: _Dimension, width: _Dimension, bint whole
) -> Tensor:
    """Set `y` to the means of the windows of `x`, and return it; see `max_pool`.

    whole: the sum is divided by the size of the kernel, otherwise by how much of the window is
    inside the image.
    """
    cdef Window h, w
    cdef Py_ssize_t i, length, area
    along(height, &h)
    along(width, &w)
    area = h.size * w.size
    cdef const float *images = floats_of(x, planes * area)
    cdef float *out = floats_of(y, planes * h.out * w.out)
    if is_whole(&h) and is_whole(&w):
        length = h.kernel * w.kernel if whole else area
        with nogil:
            for i in range(planes):
                out[i] = sum_of(images + i * area, area) / length
        return y
    length = padded(&w)
    cdef float *row = <float *>malloc((length + w.out + 1) * sizeof(float))
    if row == NULL:
        raise MemoryError
    cdef float *shares = row + length
    with nogil:
        fill(row, length, 0)
        for i in range(w.out):
            shares[i] = <float>1.0 / (w.kernel if whole else last(&w, i) - first(&w, i))
        for i in range(planes):
            mean_of_plane(
                images + i * area, out + i * h.out * w.out, &h, &w, row, shares, whole)
        free(row)
    return y

# pyi: from torch import Tensor
# pyi: _Dimension = tuple[int, int, int, int, int]
