# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef object numpy_array_type        # numpy.ndarray once NumPy was met, before that None
cdef object numpy_generic_type      # numpy.generic, likewise
cdef TensorImpl array_in(object array, object copy)
cdef object array_out(TensorImpl impl, str caller)
cdef object flat_array(TensorImpl impl, bint writable, str caller)
cdef bint meet_numpy() except -1
cdef object array_copy(TensorImpl impl, str caller)
