# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""RoIAlign of upright regions on row-major float32 images, on the CPU.

The samples of a region lie on a grid, so a bin is a product of two sums: each row of pixels is
summed into bins along the row first, and then the rows into bins. Caffe2 adds four pixels for each
sample instead.
"""

from libc.math cimport INFINITY, ceilf
from libc.stdlib cimport free, malloc

from bridge.caffe2.operators.base.kernel_memory cimport floats_of


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


def roi_align(
    x: Tensor, regions: Tensor, y: Tensor, Py_ssize_t images, Py_ssize_t count, Py_ssize_t columns,
    Py_ssize_t channels, Py_ssize_t height, Py_ssize_t width, Py_ssize_t pooled_h,
    Py_ssize_t pooled_w, float scale, Py_ssize_t ratio, bint aligned
) -> Tensor:
    """Set `y`, (count, channels, pooled_h, pooled_w), to the bins of regions, and return it.

    x, regions, y: row-major float32. x: (images, channels, height, width). regions: (count,
    columns), x1, y1, x2, y2, preceded by the index of the image if there are five columns. scale:
    pixels of x per pixel of a region. ratio: samples per bin and direction, as many as it has
    pixels if not positive. aligned: the centers of pixels are at half-integer coordinates.

    Indices are not checked.
    """
    cdef Side down, across
    cdef const float *region
    cdef const float *image
    cdef Py_ssize_t i, j, most_down = 1, most_across = 1, plane = height * width
    cdef const float *all_images = floats_of(x, images * channels * plane)
    cdef const float *all_regions = floats_of(regions, count * columns)
    cdef float *out = floats_of(y, count * channels * pooled_h * pooled_w)
    cdef float offset = 0.5 if aligned else 0.0
    cdef float start_h, start_w, size_h, size_w
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
                align(image + j * plane, out, &down, &across, rows)
                out += pooled_h * pooled_w
        free(sizes)
        free(down.samples)
        free(across.samples)
        free(rows)
    return y
