# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.caffe2.execution.operator_core cimport OperatorCore
from bridge.caffe2.execution.program cimport Operand, Program

# The types and sizes of the inputs and outputs of a run of a definition.
cdef class Seen:
    cdef list inputs            # of Layout
    # Of Layout; None: not written. Empty: outputs cannot be requested before a run.
    cdef list outputs

    cdef bint fits(self, list impls)

cdef Seen seen_in(list inputs, list outputs)

# An operator that may have a recorded program.
cdef class ProgramCore(OperatorCore):
    cdef Program _program       # None: not recorded
    cdef list _others           # programs of other sizes; None: there are none

    cdef int keep(self, Program program) except -1
    cdef bint _takes(self, Program program)
    cdef bint _writes_inputs(self, Program program) except -1
    cdef Program _chosen(self, Program program, list backups)
    cdef list _all_others(self)
    cdef int _prefer(self, Program program) except -1
    cdef int _forget_others(self) except -1
    cdef int _forget(self) except -1
    cdef bint _bind(self, Program program, bint resizes, list backups) except -1
    cdef bint _can_rebind(self, Operand operand, TensorImpl impl) except -1
    cdef int _put_results(self, Program program) except -1
    cdef int _put_result(self, Py_ssize_t o, object result) except -1
    cdef bint _is_on_device(self, TensorImpl impl) noexcept
