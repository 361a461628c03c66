# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Row-major float32 images on the CPU: pooled, resized, and small ones convolved.

Pooling is the maximum or the mean of each window, and the gradient of the maximum; torch's own
kernels take three to five times as long on this layout. A window is pooled along its columns first,
a whole row of the image at a time, and then along the row. Windows may extend over the edges by any
amount, unequal on both sides; elements outside do not count.

A convolution of 8 channels of 8 × 8 by 3 × 3 takes 4 instead of 25 microseconds, in two groups
instead of 60. Resizing a small image by nearest neighbour takes torch four to six times as long.

Operands are row-major torch tensors; only their numbers of elements are checked.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from bridge.caffe2.operators.base.cloned cimport inlined_void
from bridge.caffe2.operators.base.kernel_memory cimport floats_of

# pyi: from torch import Tensor
# pyi: _Dimension = tuple[int, int, int, int, int]


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


# Maxima, or sums if that is asked for: a constant, for which compilers make functions of their own.

cdef inline float joined(float a, float b, bint sums) noexcept nogil:
    return a + b if sums else larger(a, b)


cdef inline inlined_void join_rows(
    const float *x, Py_ssize_t rows, Py_ssize_t width, float *into, bint sums
) noexcept nogil:
    """Set `into` to the maxima, or sums, of the columns."""
    cdef Py_ssize_t i, j
    cdef const float *next
    for j in range(width):
        into[j] = x[j]
    for i in range(1, rows):
        next = x + i * width
        for j in range(width):
            into[j] = joined(next[j], into[j], sums)


cdef inline inlined_void join_in_row(
    const float *row, const Window *w, float *y, bint sums
) noexcept nogil:
    """Set `y` to the maxima, or sums, of the windows of a padded row."""
    cdef Py_ssize_t i, k
    if w.stride == 1:
        for i in range(w.out):
            y[i] = row[i]
        for k in range(1, w.kernel):
            for i in range(w.out):
                y[i] = joined(row[i + k], y[i], sums)
    elif w.stride == 2 and w.kernel == 3:
        for i in range(w.out):
            y[i] = joined(joined(row[2 * i], row[2 * i + 1], sums), row[2 * i + 2], sums)
    elif w.stride == 2 and w.kernel == 2:
        for i in range(w.out):
            y[i] = joined(row[2 * i], row[2 * i + 1], sums)
    else:
        for i in range(w.out):
            y[i] = row[i * w.stride]
            for k in range(1, w.kernel):
                y[i] = joined(row[i * w.stride + k], y[i], sums)


cdef inline inlined_void join_plane(
    const float *x, float *y, const Window *h, const Window *w, float *row, bint sums
) noexcept nogil:
    cdef Py_ssize_t i, top, bottom
    for i in range(h.out):
        top, bottom = first(h, i), last(h, i)
        if top < bottom:
            join_rows(x + top * w.size, bottom - top, w.size, row + w.head, sums)
        else:
            fill(row + w.head, w.size, 0 if sums else -INFINITY)
        join_in_row(row, w, y + i * w.out, sums)


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
    join_plane(x, y, h, w, row, False)


cdef void mean_of_plane(
    const float *x, float *y, const Window *h, const Window *w, float *row, const float *shares,
    bint whole
) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef float share
    join_plane(x, y, h, w, row, True)
    for i in range(h.out):
        share = <float>1.0 / (h.kernel if whole else last(h, i) - first(h, i))
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


cdef void add_products(
    const float *x, const int64_t *offsets, const float *w, int64_t taps, int64_t n, float *sums
) noexcept nogil:
    """Add to `sums` the products of each tap's weight and `n` elements from its offset on."""
    cdef int64_t t = 0, i
    cdef const float *a
    cdef const float *b
    cdef const float *c
    cdef const float *d
    while t + 4 <= taps:
        a, b = x + offsets[t], x + offsets[t + 1]
        c, d = x + offsets[t + 2], x + offsets[t + 3]
        for i in range(n):
            sums[i] += (w[t] * a[i] + w[t + 1] * b[i]) + (w[t + 2] * c[i] + w[t + 3] * d[i])
        t += 4
    while t < taps:
        a = x + offsets[t]
        for i in range(n):
            sums[i] += w[t] * a[i]
        t += 1


def convolve(
    x: Tensor, y: Tensor, w: Tensor, bias: Tensor | None, int64_t images, int64_t channels,
    int64_t height, int64_t width, int64_t outputs, int64_t group, int64_t kernel_h,
    int64_t kernel_w, int64_t top, int64_t left, int64_t out_h, int64_t out_w
) -> Tensor:
    """Set `y` to the convolution of `x` by `w`, of stride 1, plus `bias`, and return it.

    x: (images, channels, height, width); y: (images, outputs, out_h, out_w);
    w: (outputs, channels / group, kernel_h, kernel_w); bias: (outputs) or None. All are row-major
    float32 torch tensors on the CPU. top, left: zeros before the image; as many as are needed
    follow it.
    """
    # The padded image, whose rows follow each other: a tap of the kernel is then an offset, also
    # from one row to the next. The elements between the rows of the result are computed in vain.
    cdef int64_t padded_w = out_w + kernel_w - 1, padded_h = out_h + kernel_h - 1
    cdef int64_t plane = padded_h * padded_w, inner = channels // group
    cdef int64_t taps = inner * kernel_h * kernel_w, n = (out_h - 1) * padded_w + out_w
    cdef int64_t _image, c, o, row, i, t
    cdef const float *source = floats_of(x, images * channels * height * width)
    cdef float *target = floats_of(y, images * outputs * out_h * out_w)
    cdef const float *weights = floats_of(w, outputs * taps)
    cdef const float *plus = NULL
    cdef float *padded
    cdef float *sums
    cdef int64_t *offsets
    cdef int64_t rows = min(height, padded_h - top), columns = min(width, padded_w - left)
    if bias is not None:
        plus = floats_of(bias, outputs)
    padded = <float *>calloc(channels * plane + n, sizeof(float))
    offsets = <int64_t *>calloc(taps, sizeof(int64_t))
    if padded == NULL or offsets == NULL:
        free(padded)
        free(offsets)
        raise MemoryError()
    sums = padded + channels * plane
    for t in range(taps):
        c, i = t // (kernel_h * kernel_w), t % (kernel_h * kernel_w)
        offsets[t] = c * plane + i // kernel_w * padded_w + i % kernel_w
    for _image in range(images):
        for c in range(channels):
            for row in range(rows):
                memcpy(padded + c * plane + (row + top) * padded_w + left,
                       source + (c * height + row) * width, columns * sizeof(float))
        source += channels * height * width
        for o in range(outputs):
            for i in range(n):
                sums[i] = 0 if plus == NULL else plus[o]
            add_products(padded + o // (outputs // group) * inner * plane, offsets,
                         weights + o * taps, taps, n, sums)
            for row in range(out_h):
                memcpy(target, sums + row * padded_w, out_w * sizeof(float))
                target += out_w
    free(padded)
    free(offsets)
    return y


cdef void sources(Py_ssize_t *found, Py_ssize_t size, Py_ssize_t to, float scale) noexcept nogil:
    """Set `found` to the index over `scale` of each of `to` elements, rounded down, in `size`."""
    cdef Py_ssize_t i, at
    for i in range(to):
        at = <Py_ssize_t>(<float>i / scale)
        found[i] = at if at < size else size - 1


cdef void resize_plane(
    const float *x, float *y, Py_ssize_t width, Py_ssize_t to_height, Py_ssize_t to_width,
    const Py_ssize_t *rows, const Py_ssize_t *columns
) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef const float *source
    for i in range(to_height):
        if i and rows[i] == rows[i - 1]:
            memcpy(y, y - to_width, to_width * sizeof(float))
        else:
            source = x + rows[i] * width
            for j in range(to_width):
                y[j] = source[columns[j]]
        y += to_width


cdef void resize_twice(
    const float *x, float *y, Py_ssize_t height, Py_ssize_t width
) noexcept nogil:
    """Resize a plane to twice its sizes, as most nets want."""
    cdef Py_ssize_t _row, j
    for _row in range(height):
        for j in range(width):
            y[2 * j] = y[2 * j + 1] = x[j]
        memcpy(y + 2 * width, y, 2 * width * sizeof(float))
        y += 4 * width
        x += width


cdef void resize_planes(
    const float *x, float *y, Py_ssize_t planes, Py_ssize_t height, Py_ssize_t width,
    Py_ssize_t to_height, Py_ssize_t to_width, const Py_ssize_t *rows, bint twice
) noexcept nogil:
    cdef Py_ssize_t _plane
    for _plane in range(planes):
        if twice:
            resize_twice(x, y, height, width)
        else:
            resize_plane(x, y, width, to_height, to_width, rows, rows + to_height)
        x += height * width
        y += to_height * to_width


def resize_nearest(
    x: Tensor, y: Tensor, Py_ssize_t planes, Py_ssize_t height, Py_ssize_t width,
    Py_ssize_t to_height, Py_ssize_t to_width, float height_scale, float width_scale
) -> Tensor:
    """Set each element of `y` to that of `x` at its index over the scale, rounded down; return it.

    x, y: (planes, height, width) and (planes, to_height, to_width). Neither height nor width is 0.
    """
    cdef const float *source = floats_of(x, planes * height * width)
    cdef float *target = floats_of(y, planes * to_height * to_width)
    cdef Py_ssize_t *rows = <Py_ssize_t *>malloc((to_height + to_width + 1) * sizeof(Py_ssize_t))
    if rows == NULL:
        raise MemoryError
    cdef bint twice = (
        height_scale == 2 and width_scale == 2
        and to_height == 2 * height and to_width == 2 * width
    )
    with nogil:
        sources(rows, height, to_height, height_scale)
        sources(rows + to_height, width, to_width, width_scale)
        resize_planes(source, target, planes, height, width, to_height, to_width, rows, twice)
        free(rows)
    return y
