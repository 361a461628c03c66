# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The largest elements of rows, and functions that are linear by pieces, of float32 on the CPU.

Operands are row-major torch tensors; only their numbers of elements are checked.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from bridge.caffe2.operators.base.kernel_memory cimport floats_of

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.operators.base.length_kernels import sum_of_lengths

# pyi: from torch import Tensor


cdef inline bint is_before(float a, int64_t i, float b, int64_t j) noexcept nogil:
    """Return whether element `i`, which is a, comes before `j`: NaN first, equal ones in order."""
    if a > b:
        return True
    if a < b:
        return False
    if (a != a) != (b != b):
        return a != a
    return i < j


cdef void sift_down(
    float *values, int64_t *places, Py_ssize_t step, Py_ssize_t root, Py_ssize_t n
) noexcept nogil:
    """Restore the heap of `n` elements, whose last in order is on top, below `root`."""
    cdef float value = values[root * step]
    cdef int64_t place = places[root * step]
    cdef Py_ssize_t child
    while True:
        child = 2 * root + 1
        if child >= n:
            break
        if child + 1 < n and is_before(
                values[child * step], places[child * step],
                values[(child + 1) * step], places[(child + 1) * step]):
            child += 1
        if not is_before(value, place, values[child * step], places[child * step]):
            break
        values[root * step] = values[child * step]
        places[root * step] = places[child * step]
        root = child
    values[root * step] = value
    places[root * step] = place


cdef void of_row(
    const float *x, Py_ssize_t n, Py_ssize_t k, Py_ssize_t step, float *values, int64_t *places
) noexcept nogil:
    cdef Py_ssize_t kept = k if k < n else n, i
    cdef float value, last
    cdef int64_t place
    for i in range(kept):
        values[i * step] = x[i * step]
        places[i * step] = i
    for i in range(kept // 2 - 1, -1, -1):
        sift_down(values, places, step, i, kept)
    last = values[0]
    for i in range(kept, n):
        value = x[i * step]
        # An equal element that comes later is never before the one on top.
        if value > last or (value != value and last == last):
            values[0] = value
            places[0] = i
            sift_down(values, places, step, 0, kept)
            last = values[0]
    for i in range(kept - 1, 0, -1):
        value = values[0]
        place = places[0]
        values[0] = values[i * step]
        places[0] = places[i * step]
        sift_down(values, places, step, 0, i)
        values[i * step] = value
        places[i * step] = place
    for i in range(kept, k):
        values[i * step] = 0
        places[i * step] = -1


def top_k(
    x: Tensor, values: Tensor, places: Tensor, flat: Tensor | None, Py_ssize_t outer, Py_ssize_t n,
    Py_ssize_t inner, Py_ssize_t k
) -> Tensor:
    """Set `values` to the `k` largest elements, `places` to where they are, `flat` to that in `x`.

    x: (outer, n, inner). values, which are returned: (outer, k, inner). places, flat: the same, of
    int64; flat may be None. Of missing elements the value is 0 and the place -1.
    """
    cdef const float *source = floats_of(x, outer * n * inner)
    cdef float *found = floats_of(values, outer * k * inner)
    cdef int64_t *at_axis = <int64_t *>floats_of(places, outer * k * inner)
    cdef int64_t *at_all = NULL if flat is None else <int64_t *>floats_of(flat, outer * k * inner)
    cdef Py_ssize_t o, i, j, at
    cdef int64_t place
    with nogil:
        for o in range(outer):
            for i in range(inner):
                at = o * k * inner + i
                of_row(source + o * n * inner + i, n, k, inner, found + at, at_axis + at)
                if at_all != NULL:
                    for j in range(k):
                        place = at_axis[at + j * inner]
                        at_all[at + j * inner] = -1 if place < 0 else (o * n + place) * inner + i
    return values


def top_k_of_segments(
    x: Tensor, values: Tensor, places: Tensor, lengths: Tensor, Py_ssize_t segments, Py_ssize_t n,
    Py_ssize_t k
) -> Tensor:
    """Set `values` to the `k` largest elements of each segment, `places` to where they are in it.

    x: (n). values, which are returned: (segments, k). places: the same, of int64. lengths:
    (segments), int32; elements after the last segment are left out.
    Raises EnforceNotMet: a length is negative, or there are fewer elements.
    """
    cdef const float *source = floats_of(x, n)
    cdef float *found = floats_of(values, segments * k)
    cdef int64_t *at = <int64_t *>floats_of(places, segments * k)
    cdef const int32_t *counts = <const int32_t *>floats_of(lengths, segments)
    cdef Py_ssize_t s
    total = sum_of_lengths(lengths, segments)
    if total > n:
        raise EnforceNotMet(
            f"The operator requires that there are {total} elements, the sum of the lengths; got "
            f"{[n]}.")
    for s in range(segments):
        of_row(source, counts[s], k, 1, found + s * k, at + s * k)
        source += counts[s]
    return values


cdef int copy_numbers(float *target, object given, int64_t n) except -1:
    """Copy `n` numbers from a list or a row-major torch tensor."""
    cdef const float *source
    cdef int64_t i
    if type(given) is list:
        for i in range(n):
            target[i] = (<list>given)[i]
        return 0
    source = floats_of(given, n)
    for i in range(n):
        target[i] = source[i]
    return 0


cdef inline float piece_of(
    float x, const float *bounds, const float *slopes, const float *intercepts, int64_t pieces
) noexcept nogil:
    cdef int64_t low = 0, high = pieces + 1, middle
    cdef float inside = x
    if x < bounds[0]:
        inside = bounds[0]
    elif x > bounds[pieces]:
        inside = bounds[pieces]
    while low < high:                   # the first bound that is not below x
        middle = (low + high) // 2
        if bounds[middle] < x:
            low = middle + 1
        else:
            high = middle
    low -= 1
    if low < 0:
        low = 0
    elif low >= pieces:
        low = pieces - 1
    return slopes[low] * inside + intercepts[low]


def linear_pieces(
    y: Tensor, x: Tensor, bounds: list[float] | Tensor, slopes: list[float] | Tensor,
    intercepts: list[float] | Tensor, int64_t rows, int64_t columns, int64_t pieces, bint binary
) -> Tensor:
    """Set `y` to slope * x + intercept of the piece that x is in, and return it.

    x, y: (rows, columns), row-major. The others, lists or tensors: of each column, one after
    another, `pieces` + 1 bounds, and `pieces` slopes and intercepts. With `binary` there is one
    list, for the last column; a first one of two is 1 minus it.
    Raises EnforceNotMet: the bounds of a column are not sorted.
    """
    cdef float *target = floats_of(y, rows * columns)
    cdef const float *source = floats_of(x, rows * columns)
    cdef int64_t groups = 1 if binary else columns, i, j, g
    cdef int64_t edges = pieces + 1
    cdef float *numbers = <float *>malloc(groups * (edges + 2 * pieces) * sizeof(float))
    cdef float *factors = numbers + groups * edges
    cdef float *offsets = factors + groups * pieces
    cdef float found
    if numbers == NULL:
        raise MemoryError
    try:
        copy_numbers(numbers, bounds, groups * edges)
        copy_numbers(factors, slopes, groups * pieces)
        copy_numbers(offsets, intercepts, groups * pieces)
        for g in range(groups):
            for j in range(1, edges):
                if numbers[g * edges + j] < numbers[g * edges + j - 1]:
                    given = [numbers[g * edges + k] for k in range(edges)]
                    raise EnforceNotMet(
                        f"The operator requires that the bounds are sorted; got {given}.")
        for i in range(rows):
            if binary:
                j = (i + 1) * columns - 1
                found = piece_of(source[j], numbers, factors, offsets, pieces)
                target[j] = found
                if columns == 2:
                    target[j - 1] = 1 - found
                continue
            for g in range(groups):
                target[i * columns + g] = piece_of(
                    source[i * columns + g], numbers + g * edges, factors + g * pieces,
                    offsets + g * pieces, pieces)
    finally:
        free(numbers)
    return y
