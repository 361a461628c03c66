# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Softmax of short rows and its gradient, on the CPU.

torch takes four times as long where a row is shorter than its vectors, which have 16 elements at
most; longer rows are for torch.
"""

from libc.math cimport expf

from bridge.caffe2.operators.base.kernel_memory cimport floats_of

# pyi: from torch import Tensor


def softmax(x: Tensor, y: Tensor, Py_ssize_t rows, Py_ssize_t columns) -> Tensor:
    """Set the rows of `y` to exp(x) over its sum, and return it.

    x, y: (rows, columns), row-major float32, which may be the same.
    """
    cdef Py_ssize_t _row, j
    cdef const float *source = floats_of(x, rows * columns)
    cdef float *target = floats_of(y, rows * columns)
    cdef float largest, total, share
    with nogil:
        for _row in range(rows):
            largest = source[0] if columns else 0
            for j in range(1, columns):
                largest = source[j] if source[j] > largest else largest
            total = 0
            for j in range(columns):
                target[j] = expf(source[j] - largest)
                total += target[j]
            share = 1 / total
            for j in range(columns):
                target[j] *= share
            source += columns
            target += columns
    return y
