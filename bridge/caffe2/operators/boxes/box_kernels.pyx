# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Boxes selected by score and overlap, on the CPU; boxes are rows (x1, y1, x2, y2) of float32.

The results are those of Caffe2, operation for operation, since rounding may decide which box is
kept. NumPy's calls on a handful of boxes take thirty times as long as the work.
"""

from libc.math cimport exp
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc


cdef enum:
    CHUNK = 16      # overlaps computed at once


cdef Chosen room_for(Py_ssize_t n) except *:
    """Return room for `n` boxes; `x1` is to be freed."""
    cdef Chosen chosen
    cdef Py_ssize_t length = n + CHUNK
    chosen.x1 = <float *>malloc(5 * length * sizeof(float))
    if chosen.x1 == NULL:
        raise MemoryError
    chosen.y1 = chosen.x1 + length
    chosen.x2 = chosen.y1 + length
    chosen.y2 = chosen.x2 + length
    chosen.area = chosen.y2 + length
    return chosen


cdef inline float larger(float a, float b) noexcept nogil:
    return a if a > b else b


cdef inline float smaller(float a, float b) noexcept nogil:
    return a if a < b else b


cdef inline void put(
    const Chosen *chosen, Py_ssize_t i, const float *box, float one
) noexcept nogil:
    """Store a box as number `i`."""
    chosen.x1[i], chosen.y1[i], chosen.x2[i], chosen.y2[i] = box[0], box[1], box[2], box[3]
    chosen.area[i] = (box[2] - box[0] + one) * (box[3] - box[1] + one)


cdef inline float overlap(
    const Chosen *boxes, Py_ssize_t i, float x1, float y1, float x2, float y2, float area, float one
) noexcept nogil:
    """Return intersection over union of number `i` and a box; NaN if both have no area."""
    cdef float width = larger(smaller(boxes.x2[i], x2) - larger(boxes.x1[i], x1) + one, 0)
    cdef float height = larger(smaller(boxes.y2[i], y2) - larger(boxes.y1[i], y1) + one, 0)
    cdef float both = width * height
    return both / (area + boxes.area[i] - both)


cdef bint overlaps_one(
    const Chosen *chosen, Py_ssize_t count, const float *box, float limit, float one
) noexcept nogil:
    """Return whether a box overlaps one of the first `count` by more than `limit`, or by NaN."""
    cdef Py_ssize_t start = 0, i
    cdef float area = (box[2] - box[0] + one) * (box[3] - box[1] + one)
    cdef float x1 = box[0], y1 = box[1], x2 = box[2], y2 = box[3]
    cdef int found
    while start < count:
        found = 0
        if start + CHUNK <= count:
            for i in range(start, start + CHUNK):
                found |= not (overlap(chosen, i, x1, y1, x2, y2, area, one) <= limit)
        else:
            for i in range(start, count):
                found |= not (overlap(chosen, i, x1, y1, x2, y2, area, one) <= limit)
        if found:
            return True
        start += CHUNK
    return False


cdef Py_ssize_t keep(
    const float *boxes, Py_ssize_t step, const int64_t *order, Py_ssize_t n, float limit,
    Py_ssize_t most, float one, const Chosen *chosen, int64_t *kept
) noexcept nogil:
    """Write the kept ones of `order` to `kept`, which may be `order`; return their number."""
    cdef Py_ssize_t i, count = 0
    cdef int64_t row
    for i in range(n):
        if count == most:
            break
        row = order[i]
        if not overlaps_one(chosen, count, boxes + row * step, limit, one):
            put(chosen, count, boxes + row * step, one)
            kept[count] = row
            count += 1
    return count


cdef void by_score(
    const float *scores, Py_ssize_t step, int64_t *rows, Py_ssize_t n, int64_t *spare
) noexcept nogil:
    """Sort rows by descending score; of equal ones the first stays first. A merge sort."""
    cdef Py_ssize_t width = 1, left, middle, end, i, j, k
    cdef int64_t *source = rows
    cdef int64_t *target = spare
    while width < n:
        left = 0
        while left < n:
            middle = left + width if left + width < n else n
            end = left + 2 * width if left + 2 * width < n else n
            i, j = left, middle
            for k in range(left, end):
                if i < middle and (
                    j >= end or not scores[source[j] * step] > scores[source[i] * step]
                ):
                    target[k] = source[i]
                    i += 1
                else:
                    target[k] = source[j]
                    j += 1
            left = end
        source, target = target, source
        width *= 2
    if source != rows:
        for i in range(n):
            rows[i] = source[i]


cdef double lowered_by(float found, double sigma, float threshold, bint linear) noexcept nogil:
    """Return the factor of a score for an overlap."""
    if linear:
        return <float>1.0 - found if found > threshold else 1.0
    return exp(-1.0 * (<double>found * <double>found) / sigma)


cdef Py_ssize_t keep_softly(
    const float *boxes, Py_ssize_t step, float *scores, Py_ssize_t score_step, int64_t *rows,
    Py_ssize_t n, double sigma, float threshold, float smallest, bint linear, float one,
    const Chosen *chosen, int64_t *kept
) noexcept nogil:
    """Write the kept ones of `rows` to `kept`, lower scores; return their number (soft NMS)."""
    cdef Py_ssize_t i, best, left, count = 0
    cdef int64_t row
    cdef const float *box
    cdef float area, found
    while n:
        best = 0
        for i in range(1, n):
            if scores[rows[i] * score_step] > scores[rows[best] * score_step]:
                best = i
        row = rows[best]
        kept[count] = row
        count += 1
        # The first one moves to the place of the largest: this decides among equal scores.
        rows[best] = rows[0]
        box = boxes + row * step
        area = (box[2] - box[0] + one) * (box[3] - box[1] + one)
        left = 0
        for i in range(1, n):
            put(chosen, 0, boxes + rows[i] * step, one)
            found = overlap(chosen, 0, box[0], box[1], box[2], box[3], area, one)
            scores[rows[i] * score_step] *= <float>lowered_by(found, sigma, threshold, linear)
            if scores[rows[i] * score_step] >= smallest:
                rows[left] = rows[i]
                left += 1
        n = left
    return count


cdef Py_ssize_t limited(
    const float *scores, Py_ssize_t step, int64_t[:, ::1] found, int64_t *counts, Py_ssize_t total,
    Py_ssize_t limit
) except -1:
    """Leave of the kept rows of all classes those with the best scores; return their number."""
    cdef Py_ssize_t classes = found.shape[0], i, j, at = 0
    cdef int64_t *numbers = <int64_t *>malloc(4 * total * sizeof(int64_t))
    cdef float *values = <float *>malloc(total * sizeof(float))
    if numbers == NULL or values == NULL:
        free(numbers)
        free(values)
        raise MemoryError
    cdef int64_t *rows = numbers + 2 * total
    cdef int64_t *owners = numbers + 3 * total
    for j in range(classes):
        for i in range(counts[j]):
            numbers[at], rows[at], owners[at] = at, found[j, i], j
            values[at] = scores[found[j, i] * step + j]
            at += 1
        counts[j] = 0
    by_score(values, 1, numbers, total, numbers + total)
    for i in range(limit):
        j = owners[numbers[i]]
        found[j, counts[j]] = rows[numbers[i]]
        counts[j] += 1
    free(numbers)
    free(values)
    return limit


def best_of_classes(
    float[:, :] scores, const float[:, :] boxes, Py_ssize_t first_score, Py_ssize_t first_box,
    float smallest, float threshold, Py_ssize_t limit, bint plus_one, int64_t[:, ::1] found,
    int64_t[::1] counts, object softly: tuple[bool, float, float] | None = None
) -> int:
    """Keep the best boxes of each class but the background, of one image.

    scores: (n, columns), changed if `softly` is given. boxes: (n, 4 columns) or, the same for all
    classes, (n, 4). The columns of both are next to each other in memory. first_score, first_box:
    which column is that of the first class that is kept; first_box is -1 where all have the same
    boxes. smallest: scores above it are considered. limit: how many boxes are kept at most, unless
    it is not positive. found: room for (classes, n), the kept rows of each class. counts: room for
    how many there are of each class. softly: None, or (linear, sigma, score below which a box is
    left out).

    Returns how many are kept in all.
    """
    cdef Py_ssize_t n = scores.shape[0], classes = found.shape[0], j, i, many, total = 0
    cdef Py_ssize_t score_step = scores.strides[0] // <Py_ssize_t>sizeof(float)
    cdef Py_ssize_t box_step = boxes.strides[0] // <Py_ssize_t>sizeof(float)
    cdef bint soft = softly is not None, linear = False
    cdef double sigma = 0
    cdef float least = 0
    cdef const float *own
    cdef float *own_scores
    if soft:
        linear, sigma, least = softly
    if not n or not classes:
        counts[:] = 0
        return 0
    cdef Chosen chosen = room_for(n)
    cdef int64_t *rows = <int64_t *>malloc(2 * n * sizeof(int64_t))
    if rows == NULL:
        free(chosen.x1)
        raise MemoryError
    with nogil:
        for j in range(classes):
            own_scores = &scores[0, j + first_score]
            own = &boxes[0, 0] + (0 if first_box < 0 else 4 * (j + first_box))
            many = 0
            for i in range(n):
                if own_scores[i * score_step] > smallest:
                    rows[many] = i
                    many += 1
            if soft:
                many = keep_softly(
                    own, box_step, own_scores, score_step, rows, many, sigma, threshold, least,
                    linear, plus_one, &chosen, &found[j, 0])
            else:
                by_score(own_scores, score_step, rows, many, rows + n)
                many = keep(
                    own, box_step, rows, many, threshold, limit if limit > 0 else -1, plus_one,
                    &chosen, &found[j, 0])
            counts[j] = many
            total += many
    free(rows)
    free(chosen.x1)
    if 0 < limit < total:
        return limited(&scores[0, first_score], score_step, found, &counts[0], total, limit)
    return total


def gather(
    const float[:, :] scores, const float[:, :] boxes, Py_ssize_t first_score, Py_ssize_t first_box,
    const int64_t[:, ::1] found, const int64_t[::1] counts, Py_ssize_t first_class,
    float[::1] out_scores, float[:, ::1] out_boxes, float[::1] out_classes, int[::1] out_rows
) -> None:
    """Write the boxes that `best_of_classes` kept: scores, boxes, classes and rows.

    first_class: the number of the first class that is kept. The outputs begin where those of this
    image begin.
    """
    cdef Py_ssize_t i, j, k, row, column, at = 0
    for j in range(found.shape[0]):
        column = 0 if first_box < 0 else 4 * (j + first_box)
        for i in range(counts[j]):
            row = found[j, i]
            out_scores[at] = scores[row, j + first_score]
            for k in range(4):
                out_boxes[at, k] = boxes[row, column + k]
            out_classes[at] = j + first_class
            out_rows[at] = row
            at += 1
