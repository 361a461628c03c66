# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Boxes selected by score and overlap, moved by deltas and proposed from anchors, on the CPU.

Boxes are rows (x1, y1, x2, y2) of float32. The results are those of Caffe2, operation for
operation, since rounding may decide which box is kept; those of BBoxTransform and GenerateProposals
are those of `proposals.py`, but for the last digit of exp(). NumPy's calls on a handful of boxes
take thirty times as long as the work.
"""

from libc.math cimport exp, expf
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from bridge.caffe2.operators.base.kernel_memory cimport floats_of

from bridge.c10.errors import EnforceNotMet


cdef enum:
    CHUNK = 16      # overlaps computed at once


cdef struct Chosen:
    # The kept boxes by coordinate, so that a box is compared with several at once.
    float *x1
    float *y1
    float *x2
    float *y2
    float *area


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


def best_of_classes(
    float[:, :] scores, const float[:, :] boxes, Py_ssize_t first_score, Py_ssize_t first_box,
    float smallest, float threshold, Py_ssize_t limit, bint plus_one, int64_t[:, ::1] found,
    int64_t[::1] counts, object softly: tuple[bool, float, float] | None = None
) -> None:
    """Keep the best boxes of each class but the background, of one image.

    scores: (n, columns), changed if `softly` is given. boxes: (n, 4 columns) or, the same for all
    classes, (n, 4). The columns of both are next to each other in memory. first_score, first_box:
    which column is that of the first class that is kept; first_box is -1 where all have the same
    boxes. smallest: scores above it are considered. limit: how many boxes of a class are kept at
    most, unless it is not positive. found: room for (classes, n), the kept rows of each class.
    counts: room for how many there are of each class. softly: None, or (linear, sigma, score below
    which a box is left out).
    """
    cdef Py_ssize_t n = scores.shape[0], classes = found.shape[0], j, i, many
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
        return
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
    free(rows)
    free(chosen.x1)


cdef inline float growth(float x, float largest) noexcept nogil:
    """Return the factor of a side."""
    return expf(largest if x > largest else x)


cdef inline void transform(
    float *box, const float *deltas, float largest_growth, float one, const float *last
) noexcept nogil:
    """Move and resize a box, and clip it to an image with the last pixel `last` (x, y)."""
    cdef int k
    cdef float zero = one - one     # for a constant 0 there is a branch, which is mispredicted
    cdef float width = box[2] - box[0] + one, height = box[3] - box[1] + one
    cdef float x = deltas[0] * width + (box[0] + <float>0.5 * width)
    cdef float y = deltas[1] * height + (box[1] + <float>0.5 * height)
    width = <float>0.5 * (growth(deltas[2], largest_growth) * width)
    height = <float>0.5 * (growth(deltas[3], largest_growth) * height)
    box[0], box[2] = x - width, x + width - one
    box[1], box[3] = y - height, y + height - one
    for k in range(4):
        x = last[k & 1] if box[k] > last[k & 1] else box[k]
        box[k] = zero if zero > x else x        # but NaN stays


def count_boxes(
    object counts: Any, object boxes: Any, Py_ssize_t n, Py_ssize_t columns, Py_ssize_t images,
    bint numbered
) -> Any:
    """Return `counts` (images), set to the number of boxes of each image.

    boxes: (n, columns); if `numbered`, the first column is the image's index, else there is one.
    Raises EnforceNotMet: an index is out of range. Then `counts` is unchanged.
    """
    cdef float *found = floats_of(counts, images)
    cdef const float *number = floats_of(boxes, n * columns)
    cdef Py_ssize_t i
    if not numbered:
        found[0] = n
        return counts
    for i in range(n):
        if not -1 < number[i * columns] < images:
            raise EnforceNotMet(
                f"The image indices of boxes are from 0 to below {images}; got "
                f"{number[i * columns]:g} for box {i}.")
    memset(found, 0, images * sizeof(float))
    for i in range(n):
        found[<Py_ssize_t>number[i * columns]] += 1
    return counts


def transform_boxes(
    object made: Any, object counts: Any, object boxes: Any, object deltas: Any,
    object images: Any, Py_ssize_t n, Py_ssize_t columns, Py_ssize_t width, Py_ssize_t count,
    list weights: list[float], float largest_growth, bint apply_scale, bint plus_one
) -> Any:
    """Return `made`, set to boxes moved by the deltas of each class.

    boxes: (n, columns), of scaled images; their last four numbers are used. deltas, made:
    (n, width). images: (count, 3); `counts` has how many boxes each has, which are in its order.
    weights: four, which divide the deltas. largest_growth: the bound of the deltas that are
    exponents. apply_scale: the results are of the scaled image again.
    """
    cdef float *to = floats_of(made, n * width)
    cdef const float *own = floats_of(boxes, n * columns)
    cdef const float *shift = floats_of(deltas, n * width)
    cdef const float *image = floats_of(images, 3 * count)
    cdef const float *found = floats_of(counts, count)
    cdef float one = plus_one, scale = 1, factor = 1
    cdef float[2] last = [0, 0]
    cdef Py_ssize_t left = 0, at = 0, k, _box, _first
    cdef float by[4]
    cdef float box[4]
    cdef float weight[4]
    cdef float unscaled[4]
    weight[:] = weights
    own += columns - 4
    for _box in range(n):
        while not left and at < count:
            left, scale, factor = <Py_ssize_t>found[at], image[2], image[2] if apply_scale else 1
            last[0] = <int>(image[1] / scale + 0.5) - one
            last[1] = <int>(image[0] / scale + 0.5) - one
            at, image = at + 1, image + 3
        left -= 1
        for k in range(4):
            unscaled[k] = own[k] / scale
        for _first in range(0, width, 4):
            for k in range(4):
                by[k] = shift[k] / weight[k]
                box[k] = unscaled[k]
            transform(box, by, largest_growth, one, last)
            for k in range(4):
                to[k] = box[k] * factor
            to, shift = to + 4, shift + 4
        own += columns
    return made


cdef bint is_fine(
    const float *box, double smallest, float height, float width, float one
) noexcept nogil:
    """Return whether a box has sides of at least `smallest` and its center in the image."""
    cdef float w = box[2] - box[0] + one, h = box[3] - box[1] + one
    return (
        w >= smallest and h >= smallest
        and box[0] + w / 2 < width and box[1] + h / 2 < height
    )


def propose(
    const float[:, :, ::1] scores, const float[:, :, ::1] deltas, const float[::1] image,
    const float[:, ::1] anchors, float stride, Py_ssize_t before, Py_ssize_t after,
    double smallest, float threshold, float largest_growth, bint plus_one, float number,
    float[:, ::1] out_boxes, float[::1] out_scores
) -> int:
    """Write the proposed boxes of one image and their scores.

    scores: (A, H, W). deltas: (4 A, H, W). image: height, width, scale. anchors: (A, 4). stride: of
    the places, in pixels. before, after: how many are considered, and proposed, at most, if
    positive. smallest: the least side, in pixels of the unscaled image. largest_growth: the bound
    of the deltas that are exponents. number: the index of the image, written before each box.
    out_boxes: room for (m, 5), out_scores: for (m,), where m is `after` or, if that is not positive
    or greater, the number of scores.

    Returns how many are proposed.
    """
    cdef Py_ssize_t area = scores.shape[1] * scores.shape[2], width = scores.shape[2]
    cdef Py_ssize_t n = scores.shape[0] * area, count = 0, i, j, place
    cdef float one = plus_one
    cdef float[2] last = [<int>image[1] - one, <int>image[0] - one]
    cdef float across, up
    cdef float by[4]
    cdef double least = smallest * <double>image[2]
    cdef const float *all_scores
    cdef const float *all_deltas
    cdef float *box
    if not n:
        return 0
    all_scores, all_deltas = &scores[0, 0, 0], &deltas[0, 0, 0]
    cdef Py_ssize_t considered = before if 0 < before < n else n
    cdef Chosen chosen = room_for(considered)
    cdef int64_t *order = <int64_t *>malloc(3 * n * sizeof(int64_t))
    cdef float *boxes = <float *>malloc(4 * considered * sizeof(float))
    if order == NULL or boxes == NULL:
        free(order)
        free(boxes)
        free(chosen.x1)
        raise MemoryError
    cdef int64_t *rows = order + n
    with nogil:
        for i in range(n):
            order[i] = i
        by_score(all_scores, 1, order, n, rows)
        for i in range(considered):
            place = order[i] % area
            box = boxes + 4 * i
            j = order[i] // area
            across, up = (place % width) * stride, (place // width) * stride
            box[0], box[2] = anchors[j, 0] + across, anchors[j, 2] + across
            box[1], box[3] = anchors[j, 1] + up, anchors[j, 3] + up
            place += 4 * j * area
            by[0], by[1] = all_deltas[place], all_deltas[place + area]
            by[2], by[3] = all_deltas[place + 2 * area], all_deltas[place + 3 * area]
            transform(box, by, largest_growth, one, last)
            if is_fine(box, least, image[0], image[1], one):
                rows[count] = i
                count += 1
        count = keep(
            boxes, 4, rows, count, threshold, after if 0 < after < count else -1, one, &chosen,
            rows)
        for i in range(count):
            out_scores[i] = all_scores[order[rows[i]]]
            out_boxes[i, 0] = number
            for j in range(4):
                out_boxes[i, j + 1] = boxes[4 * rows[i] + j]
    free(boxes)
    free(order)
    free(chosen.x1)
    return count
