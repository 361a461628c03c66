# SPDX-License-Identifier: Apache-2.0
from bridge.c10.type_meta cimport TypeMeta
from bridge.exchange.arrow_abi cimport ArrowSchema

cdef enum:
    MAX_LISTS = 64      # lists in lists; an array has no more dimensions in NumPy either

# What a schema says of an array of numbers.
cdef class Field:
    cdef TypeMeta dtype         # of the elements
    cdef bint all_null          # Arrow's null type: no element has a value
    cdef bint bits              # booleans of a bit each
    cdef bint bool8             # booleans of a byte each, any but 0 true
    cdef list lists             # sizes of the lists of one size, outermost first
    cdef list dims              # dimensions of a row as it lies in memory
    cdef list order             # of these dimensions, for the reader
    cdef bint permuted          # `order` is another than that in memory

cdef Field read_field(const ArrowSchema* schema, object source)
cdef list read_columns(const ArrowSchema* schema, object source)
cdef bint is_struct(const ArrowSchema* schema) noexcept
