# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Arithmetic of sizes and strides: C only, overflow-checked, without Python objects."""

from libc.stdint cimport INT64_MAX, int64_t, uintptr_t


cdef int64_t checked_mul(int64_t a, int64_t b) noexcept nogil:
    """Return the product of two counts that are not negative; -1 on overflow."""
    if a == 0 or b == 0:
        return 0
    if a > INT64_MAX // b:
        return -1
    return a * b


cdef int64_t checked_numel(const int64_t* sizes, int ndim) noexcept nogil:
    """Return the number of elements; -1 if a size is negative or the product overflows.

    The product of the sizes that are not zero must fit even if another size is zero, since strides
    are computed from it.
    """
    cdef int64_t numel = 1
    cdef bint empty = False
    cdef int i
    for i in range(ndim):
        if sizes[i] < 0:
            return -1
        if sizes[i] == 0:
            empty = True
        else:
            if numel > INT64_MAX // sizes[i]:
                return -1
            numel *= sizes[i]
    return 0 if empty else numel


cdef void contiguous_strides(const int64_t* sizes, int64_t* strides, int ndim) noexcept nogil:
    """Set row-major strides; a size of zero counts as one, as in c10::TensorImpl."""
    cdef int64_t step = 1
    cdef int i
    for i in range(ndim - 1, -1, -1):
        strides[i] = step
        if sizes[i] > 1:
            step *= sizes[i]


cdef bint is_contiguous(const int64_t* sizes, const int64_t* strides, int ndim) noexcept nogil:
    """Return whether elements lie row-major without gaps; strides of sizes of one are ignored."""
    cdef int64_t step = 1
    cdef int i
    for i in range(ndim):
        if sizes[i] == 0:
            return True
    for i in range(ndim - 1, -1, -1):
        if sizes[i] != 1:
            if strides[i] != step:
                return False
            step *= sizes[i]
    return True


cdef int extent(
    const int64_t* sizes, const int64_t* strides, int ndim,
    int64_t* lowest, int64_t* highest,
) noexcept nogil:
    """Set the offsets of the lowest and the highest element from the first; return -1 on overflow.

    For a tensor that has elements; lowest <= 0 <= highest.
    """
    cdef int64_t low = 0
    cdef int64_t high = 0
    cdef int64_t span
    cdef int i
    for i in range(ndim):
        if sizes[i] <= 1 or strides[i] == 0:
            continue
        if strides[i] > 0:
            span = checked_mul(sizes[i] - 1, strides[i])
            if span < 0 or high > INT64_MAX - span:
                return -1
            high += span
        else:
            if strides[i] < -INT64_MAX:
                return -1
            span = checked_mul(sizes[i] - 1, -strides[i])
            if span < 0 or low < -INT64_MAX + span:
                return -1
            low -= span
    lowest[0] = low
    highest[0] = high
    return 0


cdef int64_t block(
    uintptr_t first, const int64_t* sizes, const int64_t* strides, int ndim, int64_t itemsize,
    int64_t* lowest,
) noexcept nogil:
    """Return the bytes of the block with all elements of a tensor that has some.

    `first`: the address of the first element; `lowest`: set to the offset of the lowest one from
    it, not positive. -1: no address space has such a block.
    """
    cdef int64_t high = 0, nbytes
    cdef uintptr_t begin
    if extent(sizes, strides, ndim, lowest, &high) != 0 or high >= INT64_MAX + lowest[0]:
        return -1
    nbytes = checked_mul(high - lowest[0] + 1, itemsize)
    if nbytes < 0 or nbytes > MAX_BYTES:
        return -1
    begin = first - <uintptr_t>(-lowest[0] * itemsize)
    return -1 if begin > first or begin + <uintptr_t>nbytes < begin else nbytes


cdef int view_strides(
    const int64_t* old_sizes, const int64_t* old_strides, int old_ndim,
    const int64_t* new_sizes, int64_t* new_strides, int new_ndim,
) noexcept nogil:
    """Set strides that view the same elements in new sizes; return -1 if that needs a copy.

    Both sizes have the same number of elements, which is not zero. The old dimensions are grouped
    into runs that are contiguous, and the new sizes are distributed over the runs, last dimension
    first.
    """
    cdef int64_t run = 1        # elements of the current run so far
    cdef int64_t covered = 1       # elements of the run that new dimensions cover
    cdef int64_t step           # stride of the last dimension of the run
    cdef int new_d = new_ndim - 1
    cdef int d
    if old_ndim == 0:
        for d in range(new_ndim):
            new_strides[d] = 1
        return 0
    step = old_strides[old_ndim - 1]
    for d in range(old_ndim - 1, -1, -1):
        run *= old_sizes[d]
        if d > 0 and (old_sizes[d - 1] == 1 or old_strides[d - 1] == run * step):
            continue            # the preceding dimension belongs to the same run
        while new_d >= 0 and (covered < run or new_sizes[new_d] == 1):
            new_strides[new_d] = covered * step
            covered *= new_sizes[new_d]
            new_d -= 1
        if covered != run:
            return -1
        if d > 0:
            step = old_strides[d - 1]
            run = covered = 1
    return 0 if new_d == -1 else -1
