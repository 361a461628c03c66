# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Functions that are linear by pieces, of float32 on the CPU, in one pass."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from bridge.caffe2.operators.base.kernel_memory cimport floats_of

from bridge.c10.errors import EnforceNotMet


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

# pyi: from torch import Tensor


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
