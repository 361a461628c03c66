# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""TapedOperator: an operator that plays a tape on its blobs.

A BlobTape is a tape that is bound to the memory of blobs. It is played as long as each blob has the
same tensor, memory, type and sizes (`Operand.holds`). Memory that changed is bound anew; other
sizes need another tape.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy

from bridge.c10.python_api cimport lock_object, owned, unlock_object
from bridge.c10.storage cimport BORROWED, READONLY, begin_of, flags_of
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    FEW_DIMS,
    TensorImpl,
    device_index_of,
    device_type_of,
    dtype_of,
    has_memory,
    is_contiguous_now,
    is_pod_now,
    is_storage,
    is_undefined,
    nbytes_now,
    offset_of,
    origin_of,
    read_sizes,
    seen,
    storage_flags,
    storage_of,
)
from bridge.caffe2.blobs.core cimport BlobCore, tensor_of
from bridge.caffe2.blobs.replace cimport put_result
from bridge.caffe2.execution.operator_core cimport OperatorCore
from bridge.caffe2.execution.tape cimport Call, Tape
from bridge.caffe2.tensor.tensor cimport Tensor
from bridge.dlpack.abi cimport DL_CPU, DLDataType, DLTensor
from bridge.exchange.torch_api cimport torch_c
from bridge.exchange.torch_layout cimport described
from bridge.exchange.torch_export cimport torch_operand
from bridge.exchange.torch_import cimport import_torch

# For how many types and sizes of inputs an operator keeps a tape, which takes 4 KB. Steps of sparse
# training have other counts of rows each: on 30 counts by turns SparseLengthsSum takes 4
# microseconds, and 16 without a tape; Gather 3 and 19, FC 3.5 and 23.
cdef int MOST_TAPES = 32

cdef class Layout:
    """The type and the sizes of a tensor, to compare with another tensor."""

    def __cinit__(self):
        self.ndim = -1

    cdef bint set(self, TensorImpl impl):
        """Remember the type and sizes of `impl`; return whether they could be remembered."""
        impl = seen(impl)
        if impl.ndim > MAX_NDIM:
            self.ndim = -1
            return False
        self.dtype = impl.c_dtype
        self.ndim = impl.ndim
        memcpy(self.sizes, impl.c_sizes, impl.ndim * sizeof(int64_t))
        return True

    cdef bint fits(self, TensorImpl impl) noexcept:
        """Return whether `impl` has this type and these sizes."""
        cdef int64_t[FEW_DIMS] room
        cdef int64_t* sizes
        cdef int ndim
        read_sizes(impl, room, &sizes, &ndim)
        return dtype_of(impl) == <PyObject*>self.dtype and ndim == self.ndim \
            and memcmp(sizes, self.sizes, ndim * sizeof(int64_t)) == 0 \
            and (self.elements is None or self.elements == elements_of(impl))


cdef bytes elements_of(TensorImpl impl):
    """Return the elements as bytes; None: they are many, on a device, or another framework's."""
    cdef char* data
    impl = seen(impl)
    if is_undefined(impl) or device_type_of(impl) != DL_CPU or not is_pod_now(impl) \
            or not has_memory(impl) or not is_contiguous_now(impl) \
            or nbytes_now(impl) > MOST_BYTES or storage_flags(impl) & BORROWED:
        return None
    _kept = impl.held(&data, "Operator.Input")
    return data[:nbytes_now(impl)]


cdef bint has_layout(object tensor, Layout layout) except -1:
    """Return whether a torch tensor has this type and these sizes, row-major.

    Kernels rely on it: they have the sizes of the recording, and addresses.
    """
    cdef object _kept
    cdef DLTensor now
    cdef int64_t step = 1
    cdef int i
    if (_kept := described(tensor, &now)) is None:
        return False
    if now.ndim != layout.ndim \
            or memcmp(&now.dtype, &layout.dtype.c_dlpack, sizeof(DLDataType)) != 0:
        return False
    for i in range(now.ndim - 1, -1, -1):
        if now.shape[i] != layout.sizes[i] or (now.shape[i] > 1 and now.strides[i] != step):
            return False
        step *= max(now.shape[i], 1)
    return True


cdef class Operand:
    """A tensor of a blob, as it was when a tape was bound to it."""

    cdef bint holds(self, TensorImpl impl) except -1:
        """Return whether `impl` is that tensor, with the same memory, type and sizes."""
        cdef Storage storage = self.storage
        if impl is not self.impl or not is_storage(impl, storage) \
                or begin_of(storage) != self.data or offset_of(impl) != self.offset \
                or not self.layout.fits(impl) or (self.written and flags_of(storage) & READONLY):
            return False
        if flags_of(storage) & BORROWED:
            storage.check()
        return True

    cdef object rebind(self, TensorImpl impl):
        """Return a torch tensor over the memory of `impl`; None if its type or sizes differ."""
        cdef object tensor = torch_operand(impl)
        if tensor is origin_of(impl):
            # Another one, since whoever has the original may change its sizes.
            if torch_c.data == NULL:
                tensor = tensor.detach()
            else:   # which takes less time
                tensor = owned(torch_c.data(<PyObject*>tensor, torch_c.data_closure))
        if not has_layout(tensor, self.layout):
            return None                 # another thread gave it other sizes in the meantime
        self.impl = impl
        self.storage = storage_of(impl)
        self.data = begin_of(self.storage)
        self.offset = offset_of(impl)
        return tensor


cdef class BlobTape(Tape):
    """A tape, its operands and the values by slot."""


cdef class Signature:
    """The types and sizes of the inputs and outputs of a run, and its tape."""

    @cython.critical_section
    cdef Tape recorded(self):
        """Return the tape of a run on these; None: there is none."""
        return self.tape

    @cython.critical_section
    cdef int record(self, Tape tape) except -1:
        """Set the tape."""
        self.tape = tape
        return 0


cdef bint all_fit(list layouts, list impls):
    """Return whether tensors, None for one that is not there, have these types and sizes."""
    cdef Py_ssize_t i
    if impls is None or len(impls) != len(layouts):
        return False
    for i in range(len(impls)):
        if (layouts[i] is None) != (impls[i] is None) or (
                impls[i] is not None and not (<Layout>layouts[i]).fits(<TensorImpl>impls[i])):
            return False
    return True


cdef Signature signature_in(list inputs, list outputs):
    """Return the layouts of TensorImpls, None for None; None if they cannot be remembered."""
    cdef Signature signature = Signature.__new__(Signature)
    cdef TensorImpl impl
    cdef Layout layout
    signature.inputs, signature.outputs = [], []
    for impls, layouts in ((inputs, signature.inputs), (outputs, signature.outputs)):
        for impl in impls:
            if impl is None:
                layouts.append(None)
                continue
            layout = Layout.__new__(Layout)
            if not layout.set(impl):
                return None
            layouts.append(layout)
    return signature


cdef class BoundCore:
    """The fields of a `Bound`."""

    # pyi: forced: dict[int, int] | None
    # pyi: across: frozenset[int]
    def __cinit__(self):
        self.signatures = []

    @cython.critical_section
    cdef Signature signature_of(self, list impls):
        """Return the Signature of inputs of these types and sizes, which moves first, or None."""
        cdef Signature signature
        cdef Py_ssize_t i
        for i in range(len(self.signatures)):
            signature = self.signatures[i]
            if all_fit(signature.inputs, impls):
                if i:
                    self.signatures.insert(0, self.signatures.pop(i))
                return signature
        return None

    @cython.critical_section
    cdef int remember(self, Signature signature) except -1:
        """Add the types and sizes of a run; `MOST_TAPES` at most are kept."""
        self.signatures.insert(0, signature)
        del self.signatures[MOST_TAPES:]
        return 0

    @cython.critical_section
    cdef bint has_tape(self) except -1:
        """Return whether the latest run had a tape."""
        return len(self.signatures) and (<Signature>self.signatures[0]).recorded() is not None


cdef class TapedOperator(OperatorCore):
    """An operator that plays a tape as long as it fits the blobs."""

    cdef bint repeat(self) except -1:
        """Play the tape if it fits the blobs; return whether it did."""
        cdef BlobTape tape
        lock_object(self)       # against `set_tape` in another thread
        tape = self._tape
        unlock_object()
        return tape is not None and self.bind_to_blobs(tape) and self.play(tape)

    cdef int set_tape(self, BlobTape tape) except -1:
        """Set the tape that repeats the operator; None: the function does."""
        lock_object(self)
        _before = self._tape    # released on return
        self._tape = tape
        unlock_object()
        return 0

    cdef BlobTape bound_tape(self, Tape tape, Signature signature, list tensors, list layouts):
        """Return a tape of a signature, bound to caffe2.Tensors; None: one has changed meanwhile.

        tensors: of the inputs, then of the outputs that the calls write, None for other outputs.
        layouts: their types and sizes. Tapes of other sizes are kept as long as the blobs keep
        their memory: a step of sparse training, with other rows each time, takes 12 microseconds
        with these, and 31 if each operator is bound anew.
        """
        cdef BlobTape found = self._tapes.get(signature) if self._tapes else None
        cdef Operand operand
        cdef Call call
        cdef Py_ssize_t i
        if found is not None and self.bind_to_blobs(found):
            return found
        found = BlobTape.__new__(BlobTape)
        # Operators of one definition share the recording; bound arguments are their own.
        found.calls = [call.copy() for call in tape.calls]
        found.slots, found.results = tape.slots, tape.results
        found.operands = []
        found.values = [None] * tape.slots
        for i in range(len(tensors)):
            operand = None
            if tensors[i] is not None:
                operand = Operand.__new__(Operand)
                operand.layout = <Layout>layouts[i]
                operand.written = i >= len(self._inputs)
                found.values[i] = operand.rebind((<Tensor>tensors[i]).impl)
                if found.values[i] is None:
                    return None
            found.operands.append(operand)
        found.bind(found.values)
        if self.another() is not self:      # else two threads may run it at once
            memory = [one and (<Operand>one).storage for one in found.operands]
            if memory != self._memory or len(self._tapes) == MOST_TAPES:
                self._tapes, self._memory = {}, memory
            self._tapes[signature] = found
        return found

    cdef bint play(self, BlobTape tape) except -1:
        """Play a tape that is bound to the blobs, and put its results there.

        Return False if it fails: the function, called then, raises an error of its own.
        """
        cdef Py_ssize_t o, slot
        try:
            tape.run(tape.values)
        except (IndexError, RuntimeError):
            if self._writes_inputs(tape):
                raise
            return False
        if tape.results is not None:
            for o in range(len(tape.results)):
                slot = tape.results[o]
                if slot >= 0:
                    result, tape.values[slot] = tape.values[slot], None
                    self._put_result(o, result)
        return True

    cdef bint _writes_inputs(self, BlobTape tape) except -1:
        """Return whether an output has memory of an input, and so cannot be computed again."""
        cdef Py_ssize_t n = len(self._inputs)
        cdef list inputs = [(<Operand>one).storage for one in tape.operands[:n]]
        return any([one is not None and (<Operand>one).storage in inputs
                    for one in tape.operands[n:]])

    cdef bint bind_to_blobs(self, BlobTape tape) except -1:
        """Bind a tape to the blobs as they are now; return whether that is possible."""
        cdef Operand operand
        cdef Tensor tensor
        cdef Py_ssize_t i, n = len(self._inputs)
        cdef bint is_bound = True
        for i in range(len(tape.operands)):
            operand = <Operand>tape.operands[i]
            if operand is None:
                continue
            tensor = tensor_of(<BlobCore>(
                self._inputs[i] if i < n else self._outputs[i - n]))
            if tensor is not None and operand.holds(tensor.impl):
                continue
            value = None
            if tensor is not None and operand.layout.fits(tensor.impl) \
                    and self.is_plain(tensor.impl) \
                    and not (operand.written and storage_flags(tensor.impl) & READONLY):
                value = operand.rebind(tensor.impl)
            if value is None:
                if not is_bound:
                    self.set_tape(None)     # it is bound in part
                return False
            tape.values[i] = value
            is_bound = False
            self._tapes = self._memory = None       # those of other sizes have the former memory
        if not is_bound:
            if self.overlaps([None if one is None else (<Operand>one).impl
                              for one in tape.operands]):
                self.set_tape(None)
                return False
            tape.bind(tape.values)
        return True

    cdef bint overlaps(self, list impls) except -1:
        """Return whether an output has bytes of another blob that the operator reads or writes.

        Two blobs may have been fed one torch tensor. Calls that write there would change what later
        calls read, so the function runs, and its results are put there when all are computed.
        impls: of the inputs, then of the outputs that calls write, None for others.
        """
        cdef Py_ssize_t i, o, n = len(self._inputs)
        for o in range(n, len(impls)):
            for i in range(o if impls[o] is not None else 0):
                blob = self._inputs[i] if i < n else self._outputs[i - n]
                if impls[i] is not None and blob is not self._outputs[o - n] \
                        and _have_common_bytes(<TensorImpl>impls[i], <TensorImpl>impls[o]):
                    return True
        return False

    cdef bint is_plain(self, TensorImpl impl) noexcept:
        """Return whether a tensor is row-major and allocated, as a tape takes it."""
        return not is_undefined(impl) and has_memory(impl) and is_contiguous_now(impl) \
            and self._is_on_device(impl)

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


cdef bint _have_common_bytes(TensorImpl a, TensorImpl b):
    """Return whether two row-major tensors have bytes in common."""
    cdef char* start_a
    cdef char* start_b
    a, b = seen(a), seen(b)
    if is_undefined(a) or is_undefined(b):
        return False
    start_a = begin_of(a.storage) + a.offset * a.c_dtype.itemsize
    start_b = begin_of(b.storage) + b.offset * b.c_dtype.itemsize
    return start_a < start_b + nbytes_now(b) and start_b < start_a + nbytes_now(a)
