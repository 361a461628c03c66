# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""ProgramCore: an operator that runs a recorded program, and the sizes that one fits."""

from bridge.c10.storage cimport READONLY
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl
from bridge.caffe2.blobs.core cimport BlobCore, tensor_of
from bridge.caffe2.execution.operator_core cimport OperatorCore
from bridge.caffe2.execution.program cimport Layout, Operand, Program, put_result
from bridge.caffe2.tensor.tensor cimport Tensor
from bridge.dlpack.abi cimport DL_CPU
from bridge.exchange.torch_import cimport import_torch


cdef class Seen:
    """The types and sizes of the inputs and outputs of a run."""

    cdef bint fits(self, list impls):
        """Return whether inputs have these types and sizes."""
        cdef Py_ssize_t i
        if len(impls) != len(self.inputs):
            return False
        for i in range(len(impls)):
            if not (<Layout>self.inputs[i]).fits(<TensorImpl>impls[i]):
                return False
        return True


cdef Seen seen_in(list inputs, list outputs):
    """Return the layouts of TensorImpls, None for None; None if they cannot be remembered."""
    cdef Seen seen = Seen.__new__(Seen)
    cdef TensorImpl impl
    cdef Layout layout
    seen.inputs, seen.outputs = [], []
    for impls, layouts in ((inputs, seen.inputs), (outputs, seen.outputs)):
        for impl in impls:
            if impl is None:
                layouts.append(None)
                continue
            layout = Layout.__new__(Layout)
            if not layout.set(impl):
                return None
            layouts.append(layout)
    return seen


cdef class ProgramCore(OperatorCore):
    """An operator that runs a recorded program as long as it fits the blobs."""

    cdef bint repeat(self) except -1:
        """Run the recorded program if it still fits the blobs; return whether it did."""
        cdef Program program = self._program
        cdef Operand operand
        cdef Tensor tensor
        cdef Py_ssize_t i, n
        cdef bint is_bound = True
        if program is None:
            return False
        n = len(self._inputs)
        for i in range(len(program.operands)):
            operand = <Operand>program.operands[i]
            if operand is None:
                continue
            tensor = tensor_of(<BlobCore>(
                self._inputs[i] if i < n else self._outputs[i - n]))
            if tensor is None:
                return False
            if operand.holds(tensor.impl):
                continue
            if not self._can_rebind(operand, tensor.impl):
                return False
            value = operand.rebind(tensor.impl)
            if value is None:
                self._program = None
                return False
            program.values[i] = value
            is_bound = False
        if not is_bound:
            program.bind()
        program.run()
        if program.results is not None:
            self._put_results(program)
        return True

    cdef bint _can_rebind(self, Operand operand, TensorImpl impl) except -1:
        return impl.storage is not None and operand.layout.fits(impl) \
            and impl.flags & CONTIGUOUS and impl.storage.data != NULL \
            and self._is_on_device(impl) \
            and not (operand.written and impl.storage.flags & READONLY)

    cdef int _put_results(self, Program program) except -1:
        cdef Py_ssize_t o, slot
        cdef object result
        for o in range(len(program.results)):
            slot = program.results[o]
            if slot >= 0:
                result = program.values[slot]
                program.values[slot] = None
                self._put_result(o, result)
        return 0

    cdef int _put_result(self, Py_ssize_t o, object result) except -1:
        cdef TensorImpl fresh = import_torch(result, None)
        if not fresh.flags & CONTIGUOUS:
            result = result.contiguous()
            fresh = import_torch(result, None)
        return put_result(self._outputs[o], result, fresh)

    cdef bint _is_on_device(self, TensorImpl impl) noexcept:
        return impl.storage.device_type == self._definition.device_type and (
            impl.storage.device_type == DL_CPU
            or impl.storage.device_index == self._definition.device_index)

    def _remember_sizes(self):
        """Remember the types and sizes of the inputs; return whether that is possible."""
        cdef list impls = self._impls_now()
        self._sizes = None if impls is None else seen_in(impls, [])
        return self._sizes is not None

    def _has_sizes(self):
        """Return whether the inputs have the types and sizes that were remembered."""
        cdef list impls = self._impls_now()
        return impls is not None and self._sizes is not None and self._sizes.fits(impls)

    cdef list _impls_now(self):
        cdef list impls = []
        cdef Tensor tensor
        for blob in self._inputs:
            tensor = tensor_of(<BlobCore>blob)
            if tensor is None:
                return None
            impls.append(tensor.impl)
        return impls

    def _set_program(self, Program program):
        """Set the program that repeats the operator, or None; run it if there is one."""
        self._program = program
        if program is not None and program.is_complete:
            program.run()
            if program.results is not None:
                self._put_results(program)
