# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

# The place of a tensor in a call that was recorded.
cdef class Slot:
    cdef readonly int index

# The elements of a tensor, for a kernel: what it asks a torch tensor for at each call.
cdef class Memory:
    cdef void* data
    cdef int64_t numel
    cdef object owner           # the torch tensor

cdef class Call:
    cdef object function
    cdef bint is_kernel         # which takes Memory in the place of a tensor
    cdef tuple arguments
    cdef dict keywords
    cdef object result          # a slot's number, a tuple of them, or None
    cdef bint is_view           # of operands: computed when the program is bound
    cdef frozenset roots        # the operands that it depends on; None: on results, too
    cdef tuple bound_arguments
    cdef dict bound_keywords
    cdef tuple last             # the slots that no later call reads

    cdef Call copy(self)
    cdef int bind(self, list values) except -1
    cdef int make(self, list values) except -1
    cdef int forget(self, list values) except -1

cdef class Tape:
    cdef list calls
    cdef int slots
    cdef readonly tuple results  # pyi: tuple[int, ...] | None

    cdef int bind(self, list values) except -1
    cdef int run(self, list values) except -1
