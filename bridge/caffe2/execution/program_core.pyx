# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""ProgramCore: an operator that runs a recorded program, and the sizes that one fits."""

cimport cython

from bridge.c10.python_api cimport lock_object, unlock_object
from bridge.c10.storage cimport READONLY, Storage, nbytes_of
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    TensorImpl,
    device_index_of,
    device_type_of,
    has_memory,
    is_contiguous_now,
    is_undefined,
    storage_flags,
)
from bridge.caffe2.blobs.core cimport BlobCore, tensor_of
from bridge.caffe2.execution.operator_core cimport OperatorCore, output_sized
from bridge.caffe2.execution.output_backup cimport back_up, restore_all
from bridge.caffe2.execution.program cimport (
    WORTH_ADOPTING,
    Layout,
    Operand,
    Program,
    put_result,
)
from bridge.caffe2.tensor.tensor cimport Tensor
from bridge.dlpack.abi cimport DL_CPU
from bridge.exchange.torch_import cimport import_torch

cdef enum:
    MOST_OTHERS = 15    # programs that an operator keeps for sizes that it had before


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
        """Run a recorded program if one fits the blobs; return whether one did."""
        cdef Program program
        cdef list backups = None
        cdef Operand operand
        cdef Tensor tensor
        cdef Py_ssize_t i, n
        lock_object(self)       # against `keep` in another thread
        program = self._program
        unlock_object()
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
            if not operand.holds(tensor.impl):
                backups = []
                program = self._chosen(program, backups)
                if program is None:
                    return False
                break
        try:
            program.run(program.values)
        except BaseException as error:
            if backups:
                restore_all(backups)
            if not isinstance(error, (IndexError, RuntimeError)) or self._writes_inputs(program):
                raise
            return False        # computed again, the function says what is wrong in its own words
        if program.results is not None:
            self._put_results(program)
        return True

    cdef bint _writes_inputs(self, Program program) except -1:
        """Return whether an output has memory of an input, and so cannot be computed again."""
        cdef Py_ssize_t n = len(self._inputs)
        cdef list inputs = [(<Operand>one).storage for one in program.operands[:n]]
        return any([one is not None and (<Operand>one).storage in inputs
                    for one in program.operands[n:]])

    cdef Program _chosen(self, Program program, list backups):
        """Return a program that fits the inputs, bound to the blobs as they are now, or None.

        `program` is the one that does not fit the blobs as they are. Backups of outputs that get
        other sizes are added to the list.
        """
        cdef list others
        cdef bint resizes = False
        if not self._takes(program):
            others = self._all_others()
            if others is None:
                return None
            for other in others:
                if self._takes(<Program>other):
                    program = <Program>other
                    break
            else:
                return None
            self._prefer(program)
            resizes = True
        return program if self._bind(program, resizes, backups) else None

    @cython.critical_section
    cdef list _all_others(self):
        return None if self._others is None else self._others[:]

    @cython.critical_section
    cdef int _prefer(self, Program program) except -1:
        """Try this one of the other programs first from now on."""
        if self._program is not None and self._others is not None and program in self._others:
            self._others[self._others.index(program)] = self._program
            self._program = program
        return 0

    @cython.critical_section
    cdef int _forget_others(self) except -1:
        self._others = None
        return 0

    @cython.critical_section
    cdef int _forget(self) except -1:
        self._program = None
        return 0

    @cython.critical_section
    cdef int keep(self, Program program) except -1:
        """Set the program that repeats the operator; the one that it had stays for its sizes.

        Programs hold the memory of their operands, so it stays only if that is little, or the same.
        """
        if self._program is not None and program is not None \
                and not self._takes(self._program) and _holds_little(self._program, program):
            if self._others is None:
                self._others = []
            elif len(self._others) == MOST_OTHERS:
                del self._others[0]
            self._others.append(self._program)
        self._program = program
        return 0

    cdef bint _takes(self, Program program):
        """Return whether the inputs have the types and sizes of a program's."""
        cdef Tensor tensor
        cdef Py_ssize_t i
        for i in range(len(self._inputs)):
            tensor = tensor_of(<BlobCore>self._inputs[i])
            if tensor is None or not (<Operand>program.operands[i]).layout.fits(tensor.impl):
                return False
        return True

    cdef bint _bind(self, Program program, bint resizes, list backups) except -1:
        """Bind a program to the blobs as they are now; return whether that is possible.

        resizes: whether outputs may get other sizes; backups of them are added to the list.
        """
        cdef Operand operand
        cdef Tensor tensor
        cdef Py_ssize_t i, n = len(self._inputs)
        cdef bint is_bound = True
        for i in range(len(program.operands)):
            operand = <Operand>program.operands[i]
            if operand is None:
                continue
            blob = <BlobCore>(self._inputs[i] if i < n else self._outputs[i - n])
            tensor = tensor_of(blob)
            if tensor is None:
                restore_all(backups)
                return False
            if operand.holds(tensor.impl):
                continue
            if i >= n and resizes and not operand.layout.fits(tensor.impl):
                if blob in self._inputs:
                    restore_all(backups)
                    return False
                backups.append(back_up(blob, True))
                tensor = output_sized(
                    self, blob, operand.layout.sizes, operand.layout.ndim, operand.layout.dtype)
                if operand.holds(tensor.impl):
                    continue
            if not self._can_rebind(operand, tensor.impl):
                restore_all(backups)
                return False
            if nbytes_of(operand.storage) > WORTH_ADOPTING:
                self._forget_others()   # which hold that memory too
            value = operand.rebind(tensor.impl)
            if value is None:
                restore_all(backups)
                self._forget()
                return False
            program.values[i] = value
            is_bound = False
        if not is_bound:
            program.bind(program.values)
        return True

    cdef bint _can_rebind(self, Operand operand, TensorImpl impl) except -1:
        return not is_undefined(impl) and operand.layout.fits(impl) \
            and is_contiguous_now(impl) and has_memory(impl) \
            and self._is_on_device(impl) \
            and not (operand.written and storage_flags(impl) & READONLY)

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
        return device_type_of(impl) == self._definition.device_type and (
            device_type_of(impl) == DL_CPU
            or device_index_of(impl) == self._definition.device_index)


cdef bint _holds_little(Program program, Program other):
    """Return whether the operands of `program` that have much memory are operands of `other`."""
    cdef Storage storage
    cdef Py_ssize_t i
    if len(program.operands) != len(other.operands):
        return False
    for i in range(len(program.operands)):
        mine, others = program.operands[i], other.operands[i]
        if mine is None:
            continue
        storage = (<Operand>mine).storage
        if nbytes_of(storage) > WORTH_ADOPTING \
                and (others is None or storage is not (<Operand>others).storage):
            return False
    return True
