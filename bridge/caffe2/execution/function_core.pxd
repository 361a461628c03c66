# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.caffe2.execution.blob_tape cimport BlobTape
from bridge.caffe2.execution.tape cimport Tape
from bridge.caffe2.execution.taped_operator cimport Seen, TapedOperator

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
    cdef public bint has_strings    # whether inputs or outputs are `Strings`
    cdef public bint is_filled      # whether `wants` has values of the operator
    cdef list seen              # of Seen, the latest first

    cdef Seen seen_of(self, list impls)
    cdef int remember(self, Seen seen) except -1
    cdef bint has_tape(self) except -1

cdef class FunctionCore(TapedOperator):
    cdef BoundCore _bound       # None: not run yet
    cdef dict _arguments

    cdef bint _is_prepared(self) noexcept
    cdef int _prepare(self) except -1
    cdef object _compute(self, bint may_record)
    cdef bint _are_plain(self, list impls) noexcept
    cdef BlobTape _blob_tape(self, Tape tape, Seen seen, list layouts)
    cdef list _layouts(self, Seen seen, list impls)
    cdef list _buffers(self, list layouts, list impls, list operands)
    cdef list _checked(self, object returned)
    cdef int _put(self, list results, list impls, list operands, list buffers) except -1
    cdef list _output_impls(self, list results)
    cdef int _put_one(self, Py_ssize_t o, object value, TensorImpl fresh) except -1
    cdef list _input_impls(self)
