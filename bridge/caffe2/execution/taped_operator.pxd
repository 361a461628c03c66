# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t

from bridge.c10.storage cimport Storage
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.c10.type_meta cimport TypeMeta
from bridge.caffe2.execution.operator_core cimport OperatorCore
from bridge.caffe2.execution.tape cimport Tape

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
cdef bint has_layout(object tensor, Layout layout) except -1

# The types and sizes of the inputs and outputs of a run of a definition.
cdef class Signature:
    cdef list inputs            # of Layout
    # Of Layout; None: not written. Empty: outputs cannot be requested before a run.
    cdef list outputs
    cdef Tape tape              # None: not recorded

    cdef Tape recorded(self)
    cdef int record(self, Tape tape) except -1

cdef bint all_fit(list layouts, list impls)
cdef Signature signature_in(list inputs, list outputs)

# The fields of a Bound that a run needs; the base of it.
cdef class BoundCore:
    cdef public object declaration
    cdef public object function  # pyi: Callable[..., Any]
    cdef public dict arguments  # pyi: dict[str, Any]
    cdef public tuple types
    cdef public dict in_place  # pyi: dict[int, int]
    cdef public dict forced         # of `in_place` the outputs that must be; None: there are none
    cdef public frozenset on_host  # pyi: frozenset[int]
    cdef public frozenset across    # inputs that may be on another device of the same type
    cdef public dict wants  # pyi: dict[str, str]
    cdef public str out_name  # pyi: str | None
    cdef public bint is_recorded
    cdef public bint reads_values
    cdef public tuple sized_by      # inputs whose elements decide sizes  # pyi: tuple[int, ...]
    cdef public bint has_strings    # whether inputs or outputs are `Strings`
    cdef public bint is_filled      # whether `wants` has values of the operator
    cdef list signatures            # the latest first

    cdef Signature signature_of(self, list impls)
    cdef int remember(self, Signature signature) except -1
    cdef bint has_tape(self) except -1

# An operator that may have a tape.
cdef class TapedOperator(OperatorCore):
    cdef BlobTape _tape         # None: not recorded
    cdef dict _tapes            # by Signature, bound to `_memory`; None: none
    cdef list _memory           # the storages of the operands

    cdef BlobTape bound_tape(self, Tape tape, Signature signature, list tensors, list layouts)
    cdef int set_tape(self, BlobTape tape) except -1
    cdef bint play(self, BlobTape tape) except -1
    cdef bint bind_to_blobs(self, BlobTape tape) except -1
    cdef bint overlaps(self, list impls) except -1
    cdef bint _writes_inputs(self, BlobTape tape) except -1
    cdef bint is_plain(self, TensorImpl impl) noexcept
    cdef int _put_result(self, Py_ssize_t o, object result) except -1
    cdef bint _is_on_device(self, TensorImpl impl) noexcept
