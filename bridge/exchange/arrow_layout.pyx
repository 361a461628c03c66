# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""From ArrowArray to TensorImpl. The producer is not trusted: every field is checked."""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from bridge.c10.copy cimport copy_elements, require_copy
from bridge.c10.device cimport host_accessible
from bridge.c10.dims cimport Dims, parse_dims
from bridge.c10.layout cimport MAX_BYTES, checked_mul, checked_numel
from bridge.c10.reports cimport report_copy
from bridge.c10.storage cimport READONLY
from bridge.c10.tensor_impl cimport TensorImpl, allocated, device_index_of, device_type_of
from bridge.c10.type_meta cimport TypeMeta, as_type, uint8_type
from bridge.c10.views cimport permute, select, unsqueeze
from bridge.dlpack.abi cimport DL_CPU, DLDevice, DLTensor
from bridge.exchange.arrow_structures cimport ArrowArray, ArrowOwner, Field
from bridge.exchange.dlpack_import cimport adopt
from bridge.exchange.numpy cimport export_array, import_array

from bridge.exchange.device_memory import copied_to
from bridge.exchange.fresh_memory import ScatteredMemoryError

cdef extern from *:
    int popcount "__builtin_popcountll"(unsigned long long) nogil


cdef TensorImpl import_column(Field field, ArrowOwner owner, DLDevice where, object copy):
    """Return the TensorImpl of an array of numbers, which `owner` keeps; read-only.

    An array that is released has no elements. Raises BufferError: nulls, a broken structure, or
    ``copy=False`` and a copy is needed.
    """
    return _column(field, &owner.array, owner.array.offset, owner.array.length, owner, where, copy,
                   True)


cdef TensorImpl import_table(list columns, ArrowOwner owner, DLDevice where, object copy):
    """Return the TensorImpl of a table, a row for each of its rows.

    One column is shared, several are copied. Raises BufferError: as `import_column`, or columns
    of more than one dimension.
    """
    cdef const ArrowArray* array = &owner.array
    cdef const ArrowArray* child
    cdef Field field
    cdef Py_ssize_t i, n = len(columns)
    cdef int64_t rows = array.length
    cdef bint empty = array.release == NULL
    cdef list parts = [], blocks = []
    if not empty:
        _check(array, 1, n, owner)
        _refuse_nulls(array, array.offset, rows, where, owner)
    for i in range(n):
        field = <Field>columns[i]
        if field.dims:
            raise BufferError(
                f"A column of {owner.source.__name__} has elements of more than one number. Take "
                "the column.")
        if empty:
            parts.append(_column(field, array, 0, 0, owner, where, copy, n == 1))
            continue
        child = array.children[i]
        try:
            parts.append(_column(field, child, _inside(child, array.offset, rows, owner), rows,
                                 owner, where, copy, n == 1))
        except ScatteredMemoryError as error:
            if n == 1:
                raise
            blocks.extend(error.blocks)
    if n == 1:
        return unsqueeze(<TensorImpl>parts[0], 1, "from_dlpack")
    if copy is False and rows and not empty:
        for i in range(len(parts)):
            blocks.append(_block(<TensorImpl>parts[i]))
        raise ScatteredMemoryError(
            f"The {n} columns of {owner.source.__name__} are separate blocks of memory, so they "
            "cannot be shared as one tensor. Take a column, or allow a copy with copy=None.",
            blocks)
    return _joined(parts, 0 if empty else rows)


cdef tuple _block(TensorImpl impl):
    """Return the address and the number of bytes of a contiguous tensor."""
    return <size_t>impl.data("from_dlpack"), impl.c_numel * impl.c_dtype.itemsize


cdef TensorImpl _joined(list parts, int64_t rows):
    """Return a two-dimensional copy of columns, of the type that NumPy gives them."""
    cdef TensorImpl out, first = <TensorImpl>parts[0]
    cdef TypeMeta dtype = first.c_dtype
    cdef int64_t[2] sizes
    cdef Py_ssize_t i
    if any([(<TensorImpl>part).c_dtype is not dtype for part in parts]):
        import numpy
        common = numpy.result_type(*[(<TensorImpl>part).c_dtype.numpy for part in parts])
        parts = [import_array(export_array(part, "from_dlpack").astype(common), None)
                 for part in parts]
        dtype = as_type(common)
    sizes[0] = rows
    sizes[1] = len(parts)
    if checked_numel(sizes, 2) < 0 or checked_mul(rows * sizes[1], dtype.itemsize) < 0:
        raise BufferError(f"A table of {rows} rows has more bytes than an int64 counts.")
    if rows:
        report_copy(rows * sizes[1] * dtype.itemsize, "its columns are separate blocks of memory")
    out = allocated(sizes, 2, dtype, device_type_of(first), device_index_of(first),
                    "from_dlpack")
    for i in range(sizes[1]):
        copy_elements(select(out, 1, i, "from_dlpack"), <TensorImpl>parts[i], "from_dlpack")
    return out


cdef TensorImpl _column(
    Field field, const ArrowArray* array, int64_t first, int64_t rows, ArrowOwner owner,
    DLDevice where, object copy, bint report,
):
    """Return the TensorImpl of `rows` elements from `first` on, counted in the buffers of `array`.

    `report`: report the copy of booleans.
    """
    cdef DLTensor tensor
    cdef TensorImpl impl
    cdef int64_t size, offset, count = rows
    cdef const void* data = NULL
    cdef int64_t* sizes = &rows
    cdef int ndim = 1
    cdef Dims dims
    if owner.array.release != NULL:
        for size in field.lists:
            _check(array, 1, 1, owner)
            _refuse_nulls(array, first, count, where, owner)
            array = array.children[0]
            first = checked_mul(first, size)
            count = checked_mul(count, size)
            first = _inside(array, first, count, owner)
        if field.all_null:
            _nulls(count, owner)
        _check(array, 2, 0, owner)
        _refuse_nulls(array, first, count, where, owner)
        data = array.buffers[1]
        if data == NULL and count:
            raise BufferError(
                f"The Arrow array of {owner.source.__name__} has {count} elements and no memory "
                "for them (NULL).")
    elif field.all_null:
        _nulls(0, owner)
    if field.dims:
        dims = parse_dims((rows, *field.dims), "from_dlpack")
        sizes = dims.data
        ndim = dims.n
    offset = checked_mul(first, field.dtype.itemsize)       # of bits, a bound
    size = checked_numel(sizes, ndim)
    if size >= 0:
        size = checked_mul(size, field.dtype.itemsize)
    if offset < 0 or size < 0 or size > MAX_BYTES or offset > MAX_BYTES:
        _broken(owner, f"{count} elements of {field.dtype} from number {first} on, more bytes than "
                       "there are addresses")
    if field.bits:
        impl = _from_bits(<const uint8_t*>data, first, count, sizes, ndim, where, copy, report)
        return _ordered(impl, field) if field.permuted else impl
    memset(&tensor, 0, sizeof(tensor))
    tensor.data = <void*>data
    tensor.device = where
    tensor.ndim = ndim
    tensor.dtype = field.dtype.c_dlpack
    tensor.shape = sizes
    tensor.byte_offset = offset if count else 0
    impl = adopt(&tensor, owner, READONLY, True, False if copy is False else None)
    if field.bool8 and not _are_zero_or_one(impl):
        impl = _as_bools(impl, copy, report)
    return _ordered(impl, field) if field.permuted else impl


cdef TensorImpl _ordered(TensorImpl impl, Field field):
    """Return `impl` with the dimensions of its rows in the order that the reader wants."""
    cdef Dims order = parse_dims((0, *[place + 1 for place in field.order]), "from_dlpack")
    return permute(impl, order.data, order.n, "from_dlpack")


# Checks.

cdef int _broken(ArrowOwner owner, str what) except -1:
    raise BufferError(f"The Arrow array of {owner.source.__name__} is broken: it has {what}.")


cdef int _check(const ArrowArray* array, int n_buffers, int64_t n_children, ArrowOwner owner) \
        except -1:
    """Refuse an array whose fields contradict its type or each other."""
    if array == NULL or array.release == NULL:
        _broken(owner, "a child that is missing (NULL)" if array == NULL else
                "a child that was released")
    if array.length < 0 or array.offset < 0 or array.offset > INT64_MAX - array.length:
        _broken(owner, f"the length {array.length} and the offset {array.offset}")
    if array.length + array.offset > MAX_BYTES:
        _broken(owner, f"{array.length} elements from number {array.offset} on, more bytes than "
                       "there are addresses")
    if array.null_count < -1 or array.null_count > array.length:
        _broken(owner, f"{array.null_count} nulls in {array.length} elements")
    if array.n_buffers != n_buffers or array.buffers == NULL:
        _broken(owner, f"{array.n_buffers} buffers, and its type has {n_buffers}"
                if array.n_buffers != n_buffers else "no list of buffers (NULL)")
    if array.n_children != n_children or n_children and array.children == NULL:
        _broken(owner, f"{array.n_children} children, and its type has {n_children}"
                if array.n_children != n_children else "no list of children (NULL)")
    if array.dictionary != NULL:
        _broken(owner, "a dictionary that its schema has not")
    return 0


cdef int64_t _inside(const ArrowArray* child, int64_t first, int64_t count, ArrowOwner owner) \
        except -1:
    """Return where `count` elements from `first` on of a child begin in its buffers."""
    if child == NULL:
        _broken(owner, "a child that is missing (NULL)")
    if child.length < 0 or child.offset < 0 or child.offset > INT64_MAX - child.length:
        _broken(owner, f"a child of the length {child.length} and the offset {child.offset}")
    if first < 0 or count < 0 or count > child.length or first > child.length - count:
        _broken(owner, f"a child of {child.length} elements, which are too few")
    return child.offset + first


cdef int _refuse_nulls(
    const ArrowArray* array, int64_t first, int64_t count, DLDevice where, ArrowOwner owner,
) except -1:
    """Raise BufferError if an element from `first` on is null; the bitmap decides."""
    cdef int64_t nulls = 0
    if array.buffers[0] == NULL:
        if array.null_count > 0:
            _broken(owner, f"{array.null_count} nulls and no bitmap of them (NULL)")
    elif count:
        if not host_accessible(where.device_type):
            # without a look at the bitmap, if the count is known
            nulls = 0 if array.null_count == 0 else \
                _count_on_device(array.buffers[0], first, count, where, owner)
        else:
            nulls = _count_nulls(<const uint8_t*>array.buffers[0], first, count)
    if nulls:
        _nulls(nulls, owner)
    return 0


cdef int _nulls(int64_t n, ArrowOwner owner) except -1:
    if n == 0:
        raise BufferError(
            f"The Arrow data of {owner.source.__name__} is of the type null, which has no elements "
            "in memory. Cast it to a type of numbers.")
    raise BufferError(
        f"{owner.source.__name__} has {n} null{'' if n == 1 else 's'}, which plain memory cannot "
        "hold. Fill them with fill_null(0) (pyarrow.compute.fill_null(x, 0)), or remove them with "
        "drop_null() or drop_nulls().")


cdef int64_t _count_nulls(const uint8_t* bits, int64_t first, int64_t count) noexcept:
    """Return how many of `count` bits from `first` on are 0."""
    cdef int64_t i = first, end = first + count, valid = 0
    cdef uint64_t word
    while i < end and i % 8:
        valid += bits[i // 8] >> (i % 8) & 1
        i += 1
    while i + 64 <= end:
        memcpy(&word, bits + i // 8, 8)
        valid += popcount(word)
        i += 64
    while i < end:
        valid += bits[i // 8] >> (i % 8) & 1
        i += 1
    return count - valid


cdef int64_t _count_on_device(
    const void* bits, int64_t first, int64_t count, DLDevice where, ArrowOwner owner,
) except -1:
    """Do what `_count_nulls` does for a bitmap in memory of a device, by a copy of it."""
    cdef DLTensor tensor
    cdef TensorImpl impl
    cdef int64_t size = (first % 8 + count + 7) // 8
    memset(&tensor, 0, sizeof(tensor))
    tensor.data = <void*>bits
    tensor.device = where
    tensor.ndim = 1
    tensor.dtype = uint8_type.c_dlpack
    tensor.shape = &size
    tensor.byte_offset = first // 8
    impl = <TensorImpl>copied_to(adopt(&tensor, owner, READONLY, True, None), DL_CPU, 0)
    return _count_nulls(<const uint8_t*>impl.data("from_dlpack"), first % 8, count)


# Booleans, of which a tensor has one in each byte.

cdef TensorImpl _from_bits(
    const uint8_t* bits, int64_t first, int64_t count, const int64_t* sizes, int ndim,
    DLDevice where, object copy, bint report,
):
    cdef TensorImpl out
    cdef uint8_t* to
    cdef int64_t i
    if not host_accessible(where.device_type):
        raise BufferError(
            "Arrow packs booleans into bits, which are unpacked in host memory only. Cast them to "
            "uint8.")
    if copy is False and count:
        raise ScatteredMemoryError(
            "Arrow packs booleans into bits, and here each takes a byte, so they cannot be "
            "shared. Allow a copy with copy=None.",
            [(<size_t>(bits + first // 8), (first + count + 7) // 8 - first // 8)])
    if report and count:
        report_copy(count, "Arrow packs booleans into bits, and here each takes a byte")
    out = allocated(sizes, ndim, as_type("bool"), DL_CPU, 0, "from_dlpack")
    to = <uint8_t*>out.data("from_dlpack")
    for i in range(count):
        to[i] = bits[(first + i) // 8] >> ((first + i) % 8) & 1
    return out


cdef bint _are_zero_or_one(TensorImpl impl) except -1:
    """Return whether the bytes of a contiguous tensor can be shared as booleans."""
    cdef const uint8_t* data = <const uint8_t*>impl.data("from_dlpack")
    cdef int64_t i
    cdef uint8_t seen = 0
    if not host_accessible(device_type_of(impl)):
        raise BufferError("Booleans of a byte each are taken in host memory only.")
    for i in range(impl.c_numel):
        seen |= data[i]
    return seen <= 1


cdef TensorImpl _as_bools(TensorImpl impl, object copy, bint report):
    """Return a copy of a contiguous tensor in which every byte but 0 becomes 1."""
    cdef const uint8_t* data = <const uint8_t*>impl.data("from_dlpack")
    cdef TensorImpl out
    cdef uint8_t* to
    cdef int64_t i
    if report or copy is False:
        require_copy(copy, impl.c_numel, "some of its booleans are other bytes than 0 and 1")
    out = allocated(impl.c_sizes, impl.ndim, impl.c_dtype, DL_CPU, 0, "from_dlpack")
    to = <uint8_t*>out.data("from_dlpack")
    for i in range(impl.c_numel):
        to[i] = data[i] != 0
    return out
