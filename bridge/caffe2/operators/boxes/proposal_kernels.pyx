# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Boxes moved by deltas and proposed from anchors, on the CPU.

The work of BBoxTransform and GenerateProposals on one image. The results are those of
`proposals.py`, operation for operation, but for the last digit of exp().
"""

from libc.math cimport expf
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from bridge.caffe2.operators.base.kernel_memory cimport floats_of
from bridge.caffe2.operators.boxes.box_kernels cimport Chosen, by_score, keep, room_for

from bridge.c10.errors import EnforceNotMet


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
