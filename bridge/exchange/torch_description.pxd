# SPDX-License-Identifier: Apache-2.0
from bridge.dlpack.abi cimport DLTensor

cdef object described(object tensor, DLTensor* description)
cdef bint has_lazy_bit(object tensor, bint is_complex) except -1
