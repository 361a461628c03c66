# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

cdef float* floats_of(object tensor, int64_t numel) except? NULL
