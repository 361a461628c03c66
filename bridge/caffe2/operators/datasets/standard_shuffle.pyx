# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The order of std::shuffle with a new std::default_random_engine.

Caffe2's operators that shuffle by it have the same result at each run. This is the implementation
of GNU's library: the minimal standard generator, and two indices from each draw while their product
fits.
"""

from libc.stdint cimport int64_t

import torch

from bridge.caffe2.operators.base.kernel_memory cimport floats_of

cdef int64_t MODULUS = 2**31 - 1
cdef int64_t RANGE = MODULUS - 2    # the engine returns 1 to MODULUS - 1


cdef int64_t below(int64_t *state, int64_t count) noexcept nogil:
    """Draw a uniform integer in [0, count), by x = 16807 x modulo 2**31 - 1."""
    cdef int64_t scale = RANGE // count
    while True:
        state[0] = state[0] * 16807 % MODULUS
        if state[0] - 1 < count * scale:
            return (state[0] - 1) // scale


cdef inline void swap(int64_t *a, int64_t i, int64_t j) noexcept nogil:
    a[i], a[j] = a[j], a[i]


# pyi: from torch import Tensor


def shuffled(int64_t size) -> Tensor:
    """Return the numbers from 0 to below `size` in that order, int64."""
    result = torch.arange(size, device="cpu")
    cdef int64_t *places = <int64_t *>floats_of(result, size)
    cdef int64_t state = 1, i = 1, drawn
    if size and RANGE // size >= size:
        if size % 2 == 0:
            swap(places, 1, below(&state, 2))
            i = 2
        while i < size:
            drawn = below(&state, (i + 1) * (i + 2))
            swap(places, i, drawn // (i + 2))
            swap(places, i + 1, drawn % (i + 2))
            i += 2
    else:
        while i < size:
            swap(places, i, below(&state, i + 1))
            i += 1
    return result
