# SPDX-License-Identifier: Apache-2.0
from bridge.caffe2.execution.calls cimport Call
from bridge.caffe2.execution.program cimport Layout

# A tensor of the caller's that a program reads: an input or a parameter.
cdef class Given:
    cdef int slot
    cdef Layout layout
    cdef void* data             # NULL: the program is not bound to one yet
    cdef list users             # the bound calls that use it or a view of it

# What a program returns.
cdef class Returned:
    cdef int slot
    cdef bint is_written        # by calls, into a buffer; else it is the result of a call
    cdef list users
    cdef object storage         # of the buffer
    cdef object number          # of the storage, among torch's
    cdef object address
    cdef object nbytes

cdef class NetCall(Call):
    cdef tuple checked          # pairs of a result's slot and its Layout; None: no outputs

cdef class NetProgram:
    cdef list values            # by slot
    cdef list calls             # of NetCall: those that a run makes
    cdef list bound             # of NetCall: those that depend on no result
    cdef bint is_ready          # whether these are bound to tensors
    cdef list inputs            # of Given
    cdef list parameters        # of Given
    cdef list outputs           # of Returned
    cdef int is_busy            # the flag of `claim`

    cdef int bind(self, list calls) except -1
    cdef bint take(self, Given given, object tensor, bint with_grad, bint is_parameter) except -1
    cdef int prepare(self, Returned output) except -1
    cdef int run(self) except -1
