# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyTypeObject

from bridge.c10.python_api cimport published_pointer
from bridge.c10.tensor_impl cimport TensorImpl

cdef object numpy_array_type        # numpy.ndarray; None until NumPy is loaded
cdef object numpy_generic_type      # numpy.generic; likewise
cdef PyTypeObject* numpy_class      # `numpy_type` reads it
cdef inline PyTypeObject* numpy_type() noexcept:
    """Return the class numpy.ndarray; NULL: NumPy is not loaded. The others are there if it is."""
    return <PyTypeObject*>published_pointer(<void**>&numpy_class)

cpdef TensorImpl import_array(object array, object copy)
cpdef object export_array(TensorImpl impl, str caller)
cdef object flat_array(TensorImpl impl, bint writable, str caller)
cdef bint numpy_loaded() except -1
cdef object copy_to_array(TensorImpl impl, str caller)
cdef int most_dimensions() except -1
