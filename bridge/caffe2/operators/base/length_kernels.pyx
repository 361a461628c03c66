# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Segments of rows by their lengths or ids, on the CPU, where torch has functions for parts only.

Operands are row-major torch tensors; only their numbers of elements are checked. Lengths are int32,
ids int32, or with `wide` int64; they are checked before anything is written. The first operand is
set and returned.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.string cimport memcpy, memset

from bridge.caffe2.operators.base.cloned cimport cloned_void, inlined_void
from bridge.caffe2.operators.base.kernel_memory cimport check_rows, floats_of
from bridge.caffe2.operators.base.row_memory cimport AHEAD, LINE, fetch, row_at

from bridge.c10.errors import EnforceNotMet

# pyi: from torch import Tensor


cdef list all_ids(const void *ids, bint wide, int64_t n):
    return [row_at(ids, wide, i) for i in range(n)]


def sum_of_lengths(lengths: Tensor, int64_t segments) -> int:
    """Return the sum of the lengths. Raises EnforceNotMet: one is negative."""
    cdef const int32_t *counts = <const int32_t *>floats_of(lengths, segments)
    cdef int64_t total = 0, s
    for s in range(segments):
        if counts[s] < 0:
            given = [counts[i] for i in range(segments)]
            raise EnforceNotMet(f"Lengths must not be negative: {given}.")
        total += counts[s]
    return total


cdef const int32_t* lengths_of(object lengths, int64_t segments, int64_t n) except? NULL:
    """Return the address of lengths. Raises EnforceNotMet: their sum is not `n`."""
    total = sum_of_lengths(lengths, segments)
    if total != n:
        raise EnforceNotMet(
            f"The lengths add up to {total}, but there are {n} rows.",
            condition="the sum of lengths is the number of rows")
    return <const int32_t *>floats_of(lengths, segments)


def checked(lengths: Tensor, int64_t segments, int64_t n) -> Tensor:
    """Return the lengths. Raises EnforceNotMet: one is negative, or their sum is not `n`, if any.

    `n`: -1 for any sum.
    """
    if n == -1:
        sum_of_lengths(lengths, segments)
    else:
        lengths_of(lengths, segments, n)
    return lengths


def ids_by_lengths(y: Tensor, lengths: Tensor, int64_t segments, int64_t n, bint wide) -> Tensor:
    """Set `y`, int32 or `wide`, to the segment of each of `n` rows: [2, 0, 1] -> [0, 0, 2]."""
    cdef int32_t *target = <int32_t *>floats_of(y, n)
    cdef int64_t *wide_target = <int64_t *>target
    cdef const int32_t *counts = lengths_of(lengths, segments, n)
    cdef int64_t s, i, start = 0
    for s in range(segments):
        for i in range(start, start + counts[s]):
            if wide:
                wide_target[i] = s
            else:
                target[i] = <int32_t>s
        start += counts[s]
    return y


def in_range(ids: Tensor, int64_t n, int64_t rows, bint wide) -> Tensor:
    """Return the `n` indices. Raises EnforceNotMet, also an IndexError: one is not in [0, rows)."""
    check_rows(<const void *>floats_of(ids, n), wide, n, 0, rows)
    return ids


def places_by_lengths(y: Tensor, lengths: Tensor, int64_t segments, int64_t n) -> Tensor:
    """Set `y`, int32, to the place of each of `n` rows in its segment: [2, 0, 1] -> [0, 1, 0]."""
    cdef int32_t *target = <int32_t *>floats_of(y, n)
    cdef const int32_t *counts = lengths_of(lengths, segments, n)
    cdef int64_t s
    cdef int32_t i
    for s in range(segments):
        for i in range(counts[s]):
            target[i] = i
        target += counts[s]
    return y


def last_id(ids: Tensor, int64_t n, bint wide, bint gapless) -> int:
    """Return the last of `n` sorted ids, -1 if there is none.

    Raises EnforceNotMet: they are not sorted, or the first one is negative; if `gapless`, they are
    not 0, 1, 2, ..., each at least once.
    """
    cdef const void *given = <const void *>floats_of(ids, n)
    cdef int64_t i, one, last = 0, most = 0 if gapless else INT64_MAX
    cdef bint fits = True
    for i in range(n):
        one = row_at(given, wide, i)
        if one < last or one > most:
            fits = False
        last = one
        if gapless:
            most = one + 1
    if not fits:
        rule = "begin with 0, are sorted and have no gaps" if gapless else \
            "are sorted, and not negative"
        raise EnforceNotMet(
            f"The operator requires that the segment ids {rule}; got {all_ids(given, wide, n)}.")
    return last if n else -1


def sorted_to(ids: Tensor, int64_t n, int64_t segments) -> Tensor:
    """Return `n` ids, int32, which are 0, 1, 2, ..., each at least once, below `segments`.

    Raises EnforceNotMet: they are not.
    """
    if n and last_id(ids, n, False, True) != segments - 1:
        raise EnforceNotMet(
            f"The segment ids are to be of {segments} segments, one for each gradient; got "
            f"{all_ids(<const void *>floats_of(ids, n), False, n)}.")
    return ids


def counts_of_ids(y: Tensor, ids: Tensor, int64_t n, int64_t segments, bint wide) -> Tensor:
    """Set `y`, int32, to how often each of the sorted ids occurs."""
    cdef int32_t *target = <int32_t *>floats_of(y, segments)
    cdef const void *given = <const void *>floats_of(ids, n)
    cdef int64_t i = 0, start, s
    for s in range(segments):
        start = i
        while i < n and row_at(given, wide, i) == s:
            i += 1
        target[s] = <int32_t>(i - start)
    return y


cdef cloned_void add_row(float *target, const float *source, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        target[i] += source[i]


def sums_by_ids(
    y: Tensor, data: Tensor, ids: Tensor, int64_t n, int64_t width, int64_t segments
) -> Tensor:
    """Set `y` (segments, width) to the sums of the rows of `data` (n, width) by their ids, int32.

    Rows are added in their order.
    """
    cdef float *target = floats_of(y, segments * width)
    cdef const float *source = floats_of(data, n * width)
    cdef const int32_t *given = <const int32_t *>floats_of(ids, n)
    cdef int64_t i
    check_rows(given, False, n, 0, segments)
    if segments * width == 0:       # and maybe no memory: memset takes no NULL
        return y
    memset(target, 0, segments * width * sizeof(float))
    for i in range(n):
        add_row(target + given[i] * width, source + i * width, width)
    return y


cdef cloned_void raise_row(float *target, const float *source, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        target[i] = source[i] if source[i] > target[i] else target[i]


def greatest_by_lengths(
    y: Tensor, data: Tensor, lengths: Tensor, int64_t n, int64_t width, int64_t segments
) -> Tensor:
    """Set `y` (segments, width) to the greatest elements of the rows of segments, 0 for no rows."""
    cdef float *target = floats_of(y, segments * width)
    cdef const float *source = floats_of(data, n * width)
    cdef const int32_t *counts = lengths_of(lengths, segments, n)
    cdef int64_t s, i
    if segments * width == 0:
        return y
    for s in range(segments):
        if counts[s] == 0:
            memset(target, 0, width * sizeof(float))
        else:
            memcpy(target, source, width * sizeof(float))
        for i in range(1, counts[s]):
            raise_row(target, source + i * width, width)
        source += counts[s] * width
        target += width
    return y


def rows_of_segments(
    y: Tensor, data: Tensor, lengths: Tensor, int64_t segments, int64_t n, int64_t width, bint mean
) -> Tensor:
    """Set the rows of `y` (n, width) to those of their segments in `data` (segments, width).

    With `mean` they are over the number of rows of the segment. Both are float32.
    """
    cdef float *target = floats_of(y, n * width)
    cdef const float *source = floats_of(data, segments * width)
    cdef const int32_t *counts = lengths_of(lengths, segments, n)
    cdef int64_t s, j, _row
    if n * width == 0:
        return y
    for s in range(segments):
        for _row in range(counts[s]):
            if mean:
                for j in range(width):
                    target[j] = source[j] / counts[s]
            else:
                memcpy(target, source, width * sizeof(float))
            target += width
        source += width
    return y


def longest(lengths: Tensor, int64_t segments) -> int:
    """Return the greatest length, or id, int32; 0 if there is none above."""
    cdef const int32_t *counts = <const int32_t *>floats_of(lengths, segments)
    cdef int64_t found = 0, s
    for s in range(segments):
        found = max(found, counts[s])
    return found


def packed(
    y: Tensor, data: Tensor, lengths: Tensor, int64_t segments, int64_t n, int64_t longest,
    int64_t width, float padding
) -> Tensor:
    """Set `y`, (segments, longest, width), to the first rows of the segments of `n` rows."""
    cdef float *target = floats_of(y, segments * longest * width)
    cdef const float *source = floats_of(data, n * width)
    cdef const int32_t *counts = lengths_of(lengths, segments, n)
    cdef int64_t s, i, taken
    if segments * longest * width == 0:
        return y
    for s in range(segments):
        taken = min(<int64_t>counts[s], longest) * width
        if taken:
            memcpy(target, source, taken * sizeof(float))
        for i in range(taken, longest * width):
            target[i] = padding
        target += longest * width
        source += counts[s] * width
    return y


def unpacked(
    y: Tensor, data: Tensor, lengths: Tensor, int64_t segments, int64_t n, int64_t longest,
    int64_t width
) -> Tensor:
    """Set `y`, (n, width), to the rows of `data`, (segments, longest, width), within the lengths.

    None of these is greater than `longest`.
    """
    cdef float *target = floats_of(y, n * width)
    cdef const float *source = floats_of(data, segments * longest * width)
    cdef const int32_t *counts = lengths_of(lengths, segments, n)
    cdef int64_t s
    if n * width == 0:
        return y
    for s in range(segments):
        if counts[s] > longest:
            raise EnforceNotMet(f"A length of {counts[s]} is greater than {longest}.")
        memcpy(target, source, counts[s] * width * sizeof(float))
        target += counts[s] * width
        source += longest * width
    return y


cdef enum:
    BLOCK = 64      # columns that are summed at once


cdef inline inlined_void sum_block(
    const float *data, const void *indices, bint wide, const float *weights, Py_ssize_t start,
    Py_ssize_t end, Py_ssize_t n, Py_ssize_t width, Py_ssize_t columns, float *y
) noexcept nogil:
    """Set `y` to the sum of some columns of the rows at some indices, in their order."""
    cdef float[BLOCK] total      # in registers, if there are BLOCK columns
    cdef const float *row
    cdef float by
    cdef Py_ssize_t i, c
    memset(total, 0, BLOCK * sizeof(float))
    for i in range(start, end):
        if i + AHEAD < n:
            fetch(data + row_at(indices, wide, i + AHEAD) * width, columns)
        row = data + row_at(indices, wide, i) * width
        if weights == NULL:
            for c in range(columns):
                total[c] += row[c]
        else:
            by = weights[i]
            for c in range(columns):
                total[c] += by * row[c]
    memcpy(y, total, columns * sizeof(float))


cdef cloned_void sum_rows(
    const float *data, const void *indices, bint wide, const float *weights, Py_ssize_t start,
    Py_ssize_t end, Py_ssize_t n, Py_ssize_t width, float *y
) noexcept nogil:
    """Set `y` to the sum of the rows at some indices, in their order."""
    cdef Py_ssize_t c = 0
    while c + BLOCK <= width:
        sum_block(data + c, indices, wide, weights, start, end, n, width, BLOCK, y + c)
        c += BLOCK
    while c + LINE <= width:
        sum_block(data + c, indices, wide, weights, start, end, n, width, LINE, y + c)
        c += LINE
    if c < width:
        sum_block(data + c, indices, wide, weights, start, end, n, width, width - c, y + c)


def sum_segments(
    y: Tensor, data: Tensor, indices: Tensor | None, lengths: Tensor, weights: Tensor | None,
    Py_ssize_t rows, Py_ssize_t width, Py_ssize_t n, Py_ssize_t segments, bint wide, bint mean
) -> Tensor:
    """Set `y`, (segments, width), to the sums or means of segments of rows.

    data: (rows, width). indices: (n), int64 if `wide`, else int32; or None for the rows 0, 1,
    ... lengths: (segments), int32, with the sum n. weights: (n), or None for ones.
    """
    cdef const int32_t *counts = lengths_of(lengths, segments, n)
    cdef float *at = NULL if indices is None else floats_of(indices, n)
    cdef const float *table = floats_of(data, rows * width)
    cdef float *by = NULL if weights is None else floats_of(weights, n)
    cdef float *target = floats_of(y, segments * width)
    cdef Py_ssize_t start = 0, end, s, c
    if indices is not None:
        check_rows(at, wide, n, 0, rows)
    with nogil:
        for s in range(segments):
            end = start + counts[s]
            sum_rows(table, at, wide, by, start, end, n, width, target)
            if mean and counts[s]:
                for c in range(width):
                    target[c] /= counts[s]
            start = end
            target += width
    return y


cdef char* pad_rows(char *target, int64_t n, const char *row, int64_t size) noexcept nogil:
    """Set `n` rows to `row`, or zeros; return the address after them."""
    cdef int64_t _row
    if size == 0:               # and maybe no memory: memcpy takes no NULL
        return target
    for _row in range(n):
        if row == NULL:
            memset(target, 0, size)
        else:
            memcpy(target, row, size)
        target += size
    return target


def padded(
    y: Tensor, longer: Tensor, data: Tensor, lengths: Tensor, first: Tensor | None,
    last: Tensor | None, int64_t segments, int64_t n, int64_t width, int64_t itemsize,
    int64_t head, int64_t tail
) -> Tensor:
    """Set `y` to segments with `head` rows more before each, and `tail` after it; fewer, if < 0.

    data: the `n` rows, of `width` elements, of all segments. first, last: the rows to add; None: of
    zeros. longer: set to the new lengths. Raises EnforceNotMet: a segment has not so many rows.
    """
    cdef int64_t size = width * itemsize, s, left
    cdef const int32_t *counts = lengths_of(lengths, segments, n)
    cdef char *target = <char *>floats_of(y, (n + segments * (head + tail)) * width)
    cdef int32_t *found = <int32_t *>floats_of(longer, segments)
    cdef const char *source = <const char *>floats_of(data, n * width)
    cdef const char *before = NULL if first is None else <const char *>floats_of(first, width)
    cdef const char *after = NULL if last is None else <const char *>floats_of(last, width)
    for s in range(segments):
        if counts[s] + min(head, 0) + min(tail, 0) < 0:
            raise EnforceNotMet(
                f"A segment of {counts[s]} rows is shorter than its padding, {-head - tail}.")
    for s in range(segments):
        target = pad_rows(target, head, before, size)
        left = size * (counts[s] + min(head, 0) + min(tail, 0))
        if left:
            memcpy(target, source - size * min(head, 0), left)
        target += left
        source += size * counts[s]
        target = pad_rows(target, tail, after, size)
        found[s] = <int32_t>(counts[s] + head + tail)
    return y
