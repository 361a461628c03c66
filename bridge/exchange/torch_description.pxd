# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.dlpack.abi cimport DLTensor

cdef enum:
    ROOM = 2 * 64       # sizes and strides that `described` has room for

cdef bint described(object tensor, DLTensor* description, int64_t* room) except -1
cdef bint has_lazy_bit(object tensor, bint is_complex) except -1
