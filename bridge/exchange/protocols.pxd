# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyTypeObject

from bridge.c10.tensor_impl cimport TensorImpl

# The protocols, in the order in which they are tried.
cdef enum:
    UNKNOWN = 0
    WRAPPER = 1         # one of the bridge's own tensor classes
    TORCH = 2           # torch.Tensor or a subclass
    NUMPY = 3           # numpy.ndarray or a subclass
    CAPSULE = 4         # a DLPack capsule
    ADAPTER = 5         # a registered class; see bridge.exchange.registry
    TABLE = 6           # has __dlpack_c_exchange_api__
    DLPACK = 7          # has __dlpack__
    CUDA = 8            # has __cuda_array_interface__
    BUFFER = 9          # exports a buffer
    INTERFACE = 10      # has __array_interface__ or __array_struct__
    ARROW = 11          # has one of the methods of Arrow's PyCapsule interface
    CAPSULES = 12       # has to_dlpack()
    ARRAY = 13          # has __array__
    NOTHING = 14
    READ_ONLY = 15      # torch tensors of read-only memory; see is_read_only_class
    HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE

ctypedef TensorImpl (*fast_import)(object)

# class -> Adapter; the classes of libraries live as long as the process
cdef dict adapters

cdef int protocol_of(object x) except -1
cdef int find_protocol(object x, bint with_adapter, int after=*) except -1
cdef int own_protocol(object x, int after) except -1
cdef object adapter_for(object cls)
cdef fast_import fast_import_of(PyTypeObject* cls) noexcept nogil
cdef int register_fast_import(object cls, fast_import function) except -1
