# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3

from libc.stdint cimport int64_t


cdef struct Chosen:
    # The kept boxes by coordinate, so that a box is compared with several at once.
    float *x1
    float *y1
    float *x2
    float *y2
    float *area


cdef Chosen room_for(Py_ssize_t n) except *
cdef Py_ssize_t keep(
    const float *boxes, Py_ssize_t step, const int64_t *order, Py_ssize_t n, float limit,
    Py_ssize_t most, float one, const Chosen *chosen, int64_t *kept
) noexcept nogil
cdef void by_score(
    const float *scores, Py_ssize_t step, int64_t *rows, Py_ssize_t n, int64_t *spare
) noexcept nogil
