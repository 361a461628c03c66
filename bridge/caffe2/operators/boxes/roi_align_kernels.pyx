# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""RoIPool and RoIAlign on row-major float32 images, on the CPU.

The samples of an upright region lie on a grid, so a bin is a product of two sums: each row of
pixels is summed into bins along the row first, and then the rows into bins. Caffe2 adds four pixels
for each sample instead.
"""

from libc.math cimport INFINITY, ceilf, cosf, floorf, roundf, sinf
from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from bridge.caffe2.operators.base.kernel_memory cimport floats_of

from bridge.c10.errors import EnforceNotMet


cdef Py_ssize_t MOST = 1 << 40       # of which no memory holds the samples


cdef struct Sample:
    # Of one dimension: the two pixels that a sample lies between, and their weights.
    Py_ssize_t low
    Py_ssize_t high
    float at_low
    float at_high


cdef struct Side:
    # A region along one dimension: `bins` of `grid` samples each, between two pixels.
    Sample *samples
    Py_ssize_t bins
    Py_ssize_t grid
    Py_ssize_t size
    Py_ssize_t first
    Py_ssize_t last


cdef Sample sample(float place, Py_ssize_t size) noexcept nogil:
    """Return the pixels around a place in a dimension of `size`.

    Without weight if the place is outside by more than a pixel, or NaN.
    """
    cdef Sample found
    found.low = found.high = 0
    found.at_low = found.at_high = 0
    if not -1 <= place <= size:
        return found
    if place < 0:
        place = 0
    found.low = <Py_ssize_t>place
    if found.low >= size - 1:
        found.low = found.high = size - 1
        found.at_low = 1
        return found
    found.high = found.low + 1
    found.at_high = place - found.low
    found.at_low = 1 - found.at_high
    return found


cdef void place_samples(Side *side, float start, float length) noexcept nogil:
    """Fill in the samples of a region that begins at `start` and is `length` long, in pixels."""
    cdef Py_ssize_t i, j
    cdef float step = length / side.bins
    cdef Sample *found = side.samples
    side.first, side.last = side.size, -1
    for i in range(side.bins):
        for j in range(side.grid):
            found[0] = sample(start + i * step + (j + <float>0.5) * step / side.grid, side.size)
            if found.at_low != 0 or found.at_high != 0:
                side.first = found.low if found.low < side.first else side.first
                side.last = found.high if found.high > side.last else side.last
            found += 1


cdef void align(
    const float *image, float *y, const Side *down, const Side *across, float *rows
) noexcept nogil:
    """Set `y` to the bins of a region of one channel. `rows`: room for a row of bins per pixel."""
    cdef Py_ssize_t i, j, _bin, _sample, bins = across.bins
    cdef float total, share = <float>1.0 / (down.grid * across.grid)
    cdef float at_low, at_high
    cdef const float *pixels
    cdef const float *low
    cdef const float *high
    cdef const Sample *found
    for i in range(down.first, down.last + 1):
        pixels = image + i * across.size
        found = across.samples
        for j in range(bins):
            total = 0
            for _sample in range(across.grid):
                total += pixels[found.low] * found.at_low + pixels[found.high] * found.at_high
                found += 1
            rows[(i - down.first) * bins + j] = total * share
    found = down.samples
    for _bin in range(down.bins):
        for j in range(bins):
            y[j] = 0
        for _sample in range(down.grid):
            if found.at_low != 0 or found.at_high != 0:
                low = rows + (found.low - down.first) * bins
                high = rows + (found.high - down.first) * bins
                at_low, at_high = found.at_low, found.at_high
                for j in range(bins):
                    y[j] += low[j] * at_low + high[j] * at_high
            found += 1
        y += bins


cdef inline void add_sample(
    float *dx, Py_ssize_t width, const Sample *y, const Sample *x, float part
) noexcept nogil:
    """Add the gradient `part` of a sample to its four pixels."""
    dx[y.low * width + x.low] += part * (y.at_low * x.at_low)
    dx[y.low * width + x.high] += part * (y.at_low * x.at_high)
    dx[y.high * width + x.low] += part * (y.at_high * x.at_low)
    dx[y.high * width + x.high] += part * (y.at_high * x.at_high)


cdef void align_back(
    float *dx, const float *dy, const Side *down, const Side *across
) noexcept nogil:
    """Add the gradients of the bins of a region of one channel to the pixels they are means of."""
    cdef Py_ssize_t b, c, _s, _t
    cdef float share = <float>1.0 / (down.grid * across.grid), part
    cdef const Sample *y = down.samples
    cdef const Sample *x
    for b in range(down.bins):
        for _s in range(down.grid):
            x = across.samples
            for c in range(across.bins):
                part = dy[b * across.bins + c] * share
                for _t in range(across.grid):
                    add_sample(dx, across.size, y, x, part)
                    x += 1
            y += 1


cdef Py_ssize_t samples_of(float length, Py_ssize_t bins, Py_ssize_t ratio) noexcept nogil:
    """Return how many samples a bin has: one per pixel, begun ones too, unless `ratio` says.

    None for a length that is negative, infinite or NaN, and `MOST` for one that is too large.
    """
    cdef float pixels = ceilf(length / bins)
    if ratio > 0:
        return ratio
    if not 0 < pixels < INFINITY:
        return 0
    return <Py_ssize_t>pixels if pixels < <float>MOST else MOST

# pyi: from torch import Tensor


def are_of(
    regions: Tensor, Py_ssize_t count, Py_ssize_t columns, Py_ssize_t images, Py_ssize_t sides
) -> bool:
    """Return whether the image index of each region, a column before its `sides`, is in range."""
    cdef const float *region = floats_of(regions, count * columns)
    cdef bint found = images > 0
    cdef Py_ssize_t i
    if columns > sides:
        for i in range(count):
            found &= -1 < region[columns * i] < images
    return found


cdef int require_images(
    object regions, Py_ssize_t count, Py_ssize_t columns, Py_ssize_t images, Py_ssize_t sides
) except -1:
    cdef const float *region = floats_of(regions, count * columns)
    if not are_of(regions, count, columns, images, sides):
        raise EnforceNotMet(
            "The operator requires that image indices of regions are from 0 to below "
            f"{images}; got {[region[i * columns] for i in range(count)]}.")
    return 0


def roi_align(
    x: Tensor, regions: Tensor, y: Tensor, Py_ssize_t images, Py_ssize_t count, Py_ssize_t columns,
    Py_ssize_t channels, Py_ssize_t height, Py_ssize_t width, Py_ssize_t pooled_h,
    Py_ssize_t pooled_w, float scale, Py_ssize_t ratio, bint aligned, bint back=False
) -> Tensor:
    """Set `y`, (count, channels, pooled_h, pooled_w), to the bins of regions, and return it.

    With `back`, `y` has the gradients of the bins, and `x` is set to its own, and returned.

    x, regions, y: row-major float32. x: (images, channels, height, width). regions: (count,
    columns), x1, y1, x2, y2, preceded by the index of the image if there are five columns. scale:
    pixels of x per pixel of a region. ratio: samples per bin and direction, as many as it has
    pixels if not positive. aligned: the centers of pixels are at half-integer coordinates.

    Raises EnforceNotMet: a region is of no image.
    """
    cdef Side down, across
    cdef const float *region
    cdef float *image
    cdef Py_ssize_t i, j, most_down = 1, most_across = 1, plane = height * width
    cdef float *all_images = floats_of(x, images * channels * plane)
    cdef const float *all_regions = floats_of(regions, count * columns)
    cdef float *out = floats_of(y, count * channels * pooled_h * pooled_w)
    cdef float offset = 0.5 if aligned else 0.0
    cdef float start_h, start_w, size_h, size_w
    require_images(regions, count, columns, images, 4)
    cdef float *sizes = <float *>malloc((count + 1) * 4 * sizeof(float))
    if sizes == NULL:
        raise MemoryError
    for i in range(count):
        region = all_regions + i * columns + columns - 4
        start_w, start_h = region[0] * scale - offset, region[1] * scale - offset
        size_w, size_h = region[2] * scale - offset - start_w, region[3] * scale - offset - start_h
        if not aligned:
            size_w, size_h = 1 if size_w < 1 else size_w, 1 if size_h < 1 else size_h
        sizes[4 * i], sizes[4 * i + 1] = start_h, size_h
        sizes[4 * i + 2], sizes[4 * i + 3] = start_w, size_w
        most_down = max(most_down, samples_of(size_h, pooled_h, ratio))
        most_across = max(most_across, samples_of(size_w, pooled_w, ratio))
    if most_down >= MOST // pooled_h or most_across >= MOST // pooled_w:
        free(sizes)
        raise MemoryError("The regions have more samples than any memory holds.")
    down.bins, down.size = pooled_h, height
    across.bins, across.size = pooled_w, width
    down.samples = <Sample *>malloc(pooled_h * most_down * sizeof(Sample))
    across.samples = <Sample *>malloc(pooled_w * most_across * sizeof(Sample))
    cdef float *rows = <float *>malloc((height + 1) * pooled_w * sizeof(float))
    if down.samples == NULL or across.samples == NULL or rows == NULL:
        free(sizes)
        free(down.samples)
        free(across.samples)
        free(rows)
        raise MemoryError
    with nogil:
        if back:
            memset(all_images, 0, images * channels * plane * sizeof(float))
        for i in range(count):
            region = all_regions + i * columns
            image = all_images
            if columns == 5:
                image += <Py_ssize_t>region[0] * channels * plane
            down.grid = samples_of(sizes[4 * i + 1], pooled_h, ratio)
            across.grid = samples_of(sizes[4 * i + 3], pooled_w, ratio)
            # Neither has a region of which a side is negative or NaN.
            down.grid = down.grid if down.grid > 0 and across.grid > 0 else 0
            place_samples(&down, sizes[4 * i], sizes[4 * i + 1])
            place_samples(&across, sizes[4 * i + 2], sizes[4 * i + 3])
            for j in range(channels):
                if back:
                    align_back(image + j * plane, out, &down, &across)
                else:
                    align(image + j * plane, out, &down, &across, rows)
                out += pooled_h * pooled_w
        free(sizes)
        free(down.samples)
        free(across.samples)
        free(rows)
    return x if back else y


def roi_align_rotated(
    x: Tensor, regions: Tensor, y: Tensor, Py_ssize_t images, Py_ssize_t count, Py_ssize_t columns,
    Py_ssize_t channels, Py_ssize_t height, Py_ssize_t width, Py_ssize_t pooled_h,
    Py_ssize_t pooled_w, float scale, Py_ssize_t ratio, bint aligned, bint back=False
) -> Tensor:
    """As `roi_align`, of regions center x, center y, width, height, degrees."""
    cdef float *all_images = floats_of(x, images * channels * height * width)
    cdef const float *region = floats_of(regions, count * columns)
    cdef float *out = floats_of(y, count * channels * pooled_h * pooled_w)
    cdef Py_ssize_t bins = pooled_h * pooled_w, plane = height * width
    cdef Py_ssize_t b, c, s, _i, up, across
    cdef float offset = 0.5 if aligned else 0.0, least = 0 if aligned else 1
    cdef float sine, cosine, size_h, size_w, center_y, center_x, down, right, share
    cdef float *image
    cdef float *pixels
    cdef Sample at_y, at_x
    require_images(regions, count, columns, images, 5)
    with nogil:
        if back:
            memset(all_images, 0, images * channels * plane * sizeof(float))
        else:
            memset(out, 0, count * channels * bins * sizeof(float))
        for _i in range(count):
            image = all_images
            if columns > 5:
                image += <Py_ssize_t>region[0] * channels * plane
            region += columns - 5
            center_x, center_y = region[0] * scale - offset, region[1] * scale - offset
            size_w, size_h = max(region[2] * scale, least), max(region[3] * scale, least)
            sine = sinf(region[4] * <float>(3.14159265358979323846 / 180))
            cosine = cosf(region[4] * <float>(3.14159265358979323846 / 180))
            region += 5
            up = samples_of(size_h, pooled_h, ratio)
            across = samples_of(size_w, pooled_w, ratio)
            if <double>up * across * bins >= <double>MOST:
                with gil:
                    raise MemoryError("A region has more samples than any memory holds.")
            share = <float>1.0 / max(up * across, 1)
            for b in range(bins):
                for s in range(up * across):
                    down = size_h / pooled_h * (b // pooled_w + (s // across + <float>0.5) / up)
                    right = size_w / pooled_w * (b % pooled_w + (s % across + <float>0.5) / across)
                    down, right = down - size_h / 2, right - size_w / 2
                    at_y = sample(down * cosine - right * sine + center_y, height)
                    at_x = sample(right * cosine + down * sine + center_x, width)
                    at_y.at_low, at_y.at_high = at_y.at_low * share, at_y.at_high * share
                    for c in range(channels):
                        pixels = image + c * plane
                        if back:
                            add_sample(pixels, width, &at_y, &at_x, out[c * bins + b])
                        else:
                            out[c * bins + b] += sampled(pixels, width, &at_y, &at_x)
            out += channels * bins
    return x if back else y


cdef inline float sampled(
    const float *pixels, Py_ssize_t width, const Sample *y, const Sample *x
) noexcept nogil:
    cdef const float *low = pixels + y.low * width
    cdef const float *high = pixels + y.high * width
    return y.at_low * (low[x.low] * x.at_low + low[x.high] * x.at_high) + y.at_high * (
        high[x.low] * x.at_low + high[x.high] * x.at_high)


cdef Py_ssize_t within(float place, Py_ssize_t first, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t found = <Py_ssize_t>place + first
    return 0 if found < 0 else size if found > size else found


def roi_pool(
    x: Tensor, regions: Tensor, y: Tensor, places: Tensor, Py_ssize_t images, Py_ssize_t count,
    Py_ssize_t channels, Py_ssize_t height, Py_ssize_t width, Py_ssize_t pooled_h,
    Py_ssize_t pooled_w, float scale
) -> Tensor:
    """Set `y`, (count, channels, pooled_h, pooled_w), to the maxima of the bins, and return it.

    And `places`, int32 of the same sizes, to their indices in a plane; -1 where a bin has no pixel,
    and the maximum is 0. regions: (count, 5), the index of the image, which is not checked, and x1,
    y1, x2, y2.
    """
    cdef const float *all_images = floats_of(x, images * channels * height * width)
    cdef const float *region = floats_of(regions, count * 5)
    cdef float *out = floats_of(y, count * channels * pooled_h * pooled_w)
    cdef int32_t *at = <int32_t *>floats_of(places, count * channels * pooled_h * pooled_w)
    cdef const float *plane
    cdef Py_ssize_t _c, _i, j, up, across, left, top, y0, y1, x0, x1
    cdef float step_h, step_w
    with nogil:
        for _i in range(count):
            left, top = <Py_ssize_t>roundf(region[1] * scale), <Py_ssize_t>roundf(region[2] * scale)
            step_w = max(<Py_ssize_t>roundf(region[3] * scale) - left + 1, 1) / <float>pooled_w
            step_h = max(<Py_ssize_t>roundf(region[4] * scale) - top + 1, 1) / <float>pooled_h
            plane = all_images + <Py_ssize_t>region[0] * channels * height * width
            for _c in range(channels):
                for up in range(pooled_h):
                    y0 = within(floorf(up * step_h), top, height)
                    y1 = within(ceilf((up + 1) * step_h), top, height)
                    for across in range(pooled_w):
                        x0 = within(floorf(across * step_w), left, width)
                        x1 = within(ceilf((across + 1) * step_w), left, width)
                        out[0] = 0 if y1 <= y0 or x1 <= x0 else -INFINITY
                        at[0] = -1
                        for j in range(y0, y1):
                            take_greatest(plane + j * width, x0, x1, j * width, out, at)
                        out += 1
                        at += 1
                plane += height * width
            region += 5
    return y


cdef void take_greatest(
    const float *row, Py_ssize_t start, Py_ssize_t end, Py_ssize_t offset, float *most, int32_t *at
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(start, end):
        if row[i] > most[0] or at[0] < 0 or row[i] != row[i]:
            most[0] = row[i]
            at[0] = <int32_t>(offset + i)
