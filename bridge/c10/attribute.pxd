# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject, PyTypeObject

from bridge.c10.slots cimport method_call

ctypedef object (*attribute_reader)(object self)

cdef class CallableAttribute:
    cdef method_call vectorcall
    cdef attribute_reader read              # the value of ``x.name()``
    cdef attribute_reader read_attribute    # the value of ``x.name``
    cdef object owner
    cdef PyTypeObject* owner_type
    cdef readonly str __name__
    cdef str doc

cdef CallableAttribute callable_attribute(
    object owner, str name, str doc, attribute_reader read, attribute_reader read_attribute)
