# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.caffe2.execution.tape cimport Tape
from bridge.caffe2.execution.taped_operator cimport BlobTape, BoundCore, Signature, TapedOperator

cdef class FunctionCore(TapedOperator):
    cdef BoundCore _bound       # None: not run yet
    cdef dict _arguments

    cdef bint _is_prepared(self) noexcept
    cdef int _prepare(self) except -1
    cdef object _compute(self, bint may_record)
    cdef bint _are_plain(self, list impls) except -1
    cdef BlobTape _blob_tape(self, Tape tape, Signature signature, list layouts)
    cdef list _layouts(self, Signature signature, list impls)
    cdef list _buffers(self, list layouts, list impls, list operands)
    cdef int _put(self, list results, list impls, list operands, list buffers) except -1
    cdef list _output_impls(self, list results)
    cdef int _put_one(self, Py_ssize_t o, object value, TensorImpl fresh) except -1
    cdef list _input_impls(self)
