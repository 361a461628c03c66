# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Boxes moved by deltas and proposed from anchors, on the CPU.

The work of BBoxTransform and GenerateProposals on one image. The results are those of
`proposals.py`, operation for operation, but for the last digit of exp().
"""

from libc.math cimport expf
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from bridge.caffe2.operators.boxes.box_kernels cimport Chosen, by_score, keep, room_for


cdef inline float within(float x, float limit) noexcept nogil:
    """Return `x`, at least 0 and at most `limit`; NaN stays."""
    x = limit if x > limit else x
    return 0 if x < 0 else x


cdef inline float growth(float x, float largest) noexcept nogil:
    """Return the factor of a side."""
    return expf(largest if x > largest else x)


cdef inline void transform(
    float *box, const float *deltas, float largest_growth, float one, float right, float low
) noexcept nogil:
    """Move and resize a box, and clip it to an image with the last pixel (right, low)."""
    cdef float width = box[2] - box[0] + one, height = box[3] - box[1] + one
    cdef float x = deltas[0] * width + (box[0] + <float>0.5 * width)
    cdef float y = deltas[1] * height + (box[1] + <float>0.5 * height)
    width = <float>0.5 * (growth(deltas[2], largest_growth) * width)
    height = <float>0.5 * (growth(deltas[3], largest_growth) * height)
    box[0], box[2] = within(x - width, right), within(x + width - one, right)
    box[1], box[3] = within(y - height, low), within(y + height - one, low)


def transform_boxes(
    const float[:, :] boxes, const float[:, :] deltas, const float[::1] weights, float scale,
    Py_ssize_t height, Py_ssize_t width, float largest_growth, bint apply_scale, bint plus_one,
    float[:, :] out
) -> None:
    """Write the boxes of one image, moved by the deltas of each class.

    boxes: (n, 4), of the scaled image. deltas, out: (n, 4 classes). weights: (4), which divide the
    deltas. height, width: of the image before it was scaled. apply_scale: the results are of the
    scaled image again. For the others see `propose`.
    """
    cdef Py_ssize_t i, j, k
    cdef float one = plus_one, right = width - one, low = height - one
    cdef float box[4]
    cdef float by[4]
    for i in range(boxes.shape[0]):
        for j in range(0, deltas.shape[1], 4):
            for k in range(4):
                box[k] = boxes[i, k] / scale
                by[k] = deltas[i, j + k] / weights[k]
            transform(box, by, largest_growth, one, right, low)
            for k in range(4):
                out[i, j + k] = box[k] * scale if apply_scale else box[k]


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
    cdef float one = plus_one, low = <int>image[0] - one, right = <int>image[1] - one
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
            transform(box, by, largest_growth, one, right, low)
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
