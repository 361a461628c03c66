# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Boxes proposed from anchors, on the CPU: the work of GenerateProposals on one image.

The results are those of `proposals.py`, operation for operation, but for the last digit of exp().
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
    const float *anchor, float across, float up, const float *deltas, Py_ssize_t step,
    float largest_growth, float one, float *box
) noexcept nogil:
    """Set `box` to an anchor that is shifted, and moved and resized by deltas `step` apart."""
    cdef float x1 = anchor[0] + across, y1 = anchor[1] + up
    cdef float width = anchor[2] + across - x1 + one, height = anchor[3] + up - y1 + one
    cdef float x = deltas[0] * width + (x1 + <float>0.5 * width)
    cdef float y = deltas[step] * height + (y1 + <float>0.5 * height)
    width = <float>0.5 * (growth(deltas[2 * step], largest_growth) * width)
    height = <float>0.5 * (growth(deltas[3 * step], largest_growth) * height)
    box[0], box[1], box[2], box[3] = x - width, y - height, x + width - one, y + height - one


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
    float[:, ::1] out_boxes, float[::1] out_scores,
):
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
    cdef float one = plus_one, high = <int>image[0], wide = <int>image[1]
    cdef double least = smallest * <double>image[2]
    cdef const float *all_scores
    cdef float *box
    if not n:
        return 0
    all_scores = &scores[0, 0, 0]
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
            transform(
                &anchors[j, 0], <float>(place % width) * stride, <float>(place // width) * stride,
                &deltas[4 * j, 0, 0] + place, area, largest_growth, one, box)
            box[0], box[2] = within(box[0], wide - one), within(box[2], wide - one)
            box[1], box[3] = within(box[1], high - one), within(box[3], high - one)
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
