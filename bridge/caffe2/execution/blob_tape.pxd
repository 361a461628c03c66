# SPDX-License-Identifier: Apache-2.0
from bridge.c10.storage cimport Storage
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.c10.type_meta cimport TypeMeta
from bridge.caffe2.execution.tape cimport Tape
from libc.stdint cimport int64_t

cdef enum:
    MAX_NDIM = 8                # the sizes of tensors of more dimensions are not remembered
    # Of elements that are remembered: 16 sizes. A net with a Reshape by an input feels it: its run
    # takes 2.6 microseconds, by the function 15.4.
    MOST_BYTES = 128

# The type and the sizes of a tensor; of an input whose elements decide sizes, the elements, too.
cdef class Layout:
    cdef bytes elements     # None: any
    cdef TypeMeta dtype
    cdef int ndim           # -1: not known
    cdef int64_t[8] sizes

    cdef bint set(self, TensorImpl impl)
    cdef bint fits(self, TensorImpl impl) noexcept

# A tensor that a tape reads or writes, and the torch tensor over its memory.
cdef class Operand:
    cdef TensorImpl impl
    cdef Storage storage
    cdef char* data
    cdef int64_t offset
    cdef Layout layout
    cdef bint written

    cdef bint holds(self, TensorImpl impl) except -1
    cdef object rebind(self, TensorImpl impl)

cdef class BlobTape(Tape):
    cdef list operands          # inputs, then outputs that are written
    cdef list values            # by slot

cdef bytes elements_of(TensorImpl impl)
cdef BlobTape bound_tape(Tape tape, list tensors, list layouts, Py_ssize_t inputs)
cdef bint has_layout(object tensor, Layout layout) except -1
