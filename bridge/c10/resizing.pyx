# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""New sizes for a TensorImpl: Resize, Reshape, Extend, ShrinkTo and ReserveSpace.

Each function checks and allocates first and changes the tensor last, so one that raises leaves the
tensor as it was. The rules are those of c10/core/TensorImpl.h and caffe2/core/tensor.{h,cc},
PyTorch 1.8.1; where those would access freed memory or memory out of bounds, the tensor is
reallocated or the call refused, and a comment says so.
"""

cimport cython
from libc.math cimport ceil
from libc.stdint cimport INT64_MAX, int64_t, uint64_t
from libc.string cimport memcmp, memcpy

from bridge.c10.allocation cimport (
    keeps_buffer,
    max_idle_nbytes,
    mutable_data,
    nbytes_needed,
    require_contiguous,
    require_type,
    same_kind,
)
from bridge.c10.copy cimport copy_elements, require_alike
from bridge.c10.dims cimport Dims, new_dims, parse_dims, require_numel
from bridge.c10.layout cimport contiguous_strides
from bridge.c10.python_api cimport FREE_THREADED, lock_object, pointer, unlock_object, word64
from bridge.c10.storage cimport (
    Elements,
    Storage,
    allocate_buffer,
    begin_of,
    install,
    nbytes_of,
    new_storage,
    owner_of,
    users_of,
)
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    RESERVED,
    TensorImpl,
    allocated,
    device_index_of,
    device_type_of,
    former,
    has_memory,
    is_storage,
    is_undefined,
    seen,
    set_dtype,
    set_impl_flags,
    set_numel,
    set_offset,
)
from bridge.c10.type_meta cimport TypeMeta

from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.c10.resize_flags import FLAGS


@cython.critical_section
cdef int resize(TensorImpl self, const int64_t* sizes, int ndim, str caller) except -1:
    """Set new sizes, row-major; drop the buffer if it is too small, or as the flags demand.

    Raises EnforceNotMet: undefined, negative sizes, or too many elements.
    """
    _former = former(self)      # released on return, as in every function below
    return _resize(self, sizes, ndim, caller)


cdef int _resize(TensorImpl self, const int64_t* sizes, int ndim, str caller) except -1:
    cdef int64_t numel, needed
    cdef bint drop
    cdef Storage empty = None
    self.require_defined(caller)
    numel = require_numel(sizes, ndim, caller)
    needed = nbytes_needed(self, numel, caller)
    if numel != self.c_numel:
        drop = word64(&self.storage.c_nbytes) < needed
        if not drop and not self.flags & RESERVED:
            drop = (not FLAGS.caffe2_keep_on_shrink
                    or word64(&self.storage.c_nbytes) - needed > max_idle_nbytes())
        if drop and (numel == 0 or has_memory(self)):
            # created before the sizes change: there may be no memory for it
            empty = new_storage(self.storage.device_type, self.storage.device_index)
    self.set_contiguous(sizes, ndim, numel)
    if empty is not None:
        self.set_storage(empty)
        set_offset(self, 0)
    return 0


def resize_allocated(TensorImpl self, sizes: Dims, caller: str) -> None:
    """Set new sizes and allocate for the same element type; unchanged after a MemoryError."""
    cdef Dims dims = parse_dims(sizes, caller)
    cdef TensorImpl target
    cdef Storage fresh
    cdef int64_t numel
    self.require_defined(caller)
    require_type(self.c_dtype, caller)
    numel = require_numel(dims.data, dims.n, caller)
    if keeps_buffer(self, numel) or numel == 0:
        resize(self, dims.data, dims.n, caller)
        mutable_data(self, self.c_dtype, caller)
        return
    target = allocated(dims.data, dims.n, self.c_dtype, device_type_of(self),
                       device_index_of(self), caller)
    with cython.critical_section(self):
        _former = former(self)
        _resize(self, dims.data, dims.n, caller)
        set_offset(self, 0)
        self.origin = None
        set_dtype(self, target.c_dtype)
        fresh = target.storage
        install(self.storage, fresh.ctx, fresh.data, target.c_dtype, fresh.c_nbytes, 0)


@cython.critical_section
cdef int reshape(TensorImpl self, const int64_t* sizes, int ndim, str caller) except -1:
    """Set other sizes of the same number of elements; the buffer stays.

    Raises EnforceNotMet: undefined, not contiguous, or another number of elements.
    """
    cdef int64_t numel
    require_contiguous(self, caller)
    numel = require_numel(sizes, ndim, caller)
    if numel != self.c_numel:
        raise EnforceNotMet(
            f"{self.c_numel} elements do not become {numel}. Reshape keeps their number; "
            "Resize changes it.", caller, condition="numel() == new numel")
    _former = former(self)
    self.set_contiguous(sizes, ndim, numel)
    return 0


cdef int _require_outer(TensorImpl self, str verb, str caller) except -1:
    if self.ndim < 1:
        raise EnforceNotMet(
            f"A tensor without dimensions has no outer dimension to {verb}.", caller,
            condition="dim() >= 1")
    return 0


cdef Dims _with_outer(TensorImpl self, int64_t outer):
    """Return the sizes of the tensor with another outer one."""
    cdef Dims dims = new_dims(self.ndim)
    memcpy(dims.data, self.c_sizes, self.ndim * sizeof(int64_t))
    dims.data[0] = outer
    return dims


cdef enum:
    SMALL_BITS = 28     # counts of so few bits whose products do not overflow in `extend_in_place`


cdef bint extend_in_place(TensorImpl self, int64_t num) noexcept:
    """Append `num` rows if that needs no new buffer; return whether it was done.

    For the common case only, without errors; `extend` does the rest. Growing a tensor row by row
    spends its time here.
    """
    cdef bint done
    lock_object(self)
    done = _extend_in_place(self, num)
    unlock_object()
    return done


cdef inline bint _extend_in_place(TensorImpl self, int64_t num) noexcept:
    cdef int64_t row = 1
    cdef int64_t numel
    cdef int i
    if (is_undefined(self) or not self.flags & CONTIGUOUS or self.ndim < 1
            or (self.c_numel == 0 and self.ndim > 1)
            or <uint64_t>(num | self.c_numel | self.offset) >> SMALL_BITS):
        return False
    for i in range(1, self.ndim):
        row *= self.c_sizes[i]
    numel = self.c_numel + num * row
    if pointer(<void**>&self.storage.data) != NULL and not (
            (self.offset + numel) * self.c_dtype.itemsize <= word64(&self.storage.c_nbytes)
            and same_kind(self)):
        return False
    self.c_sizes[0] += num
    set_numel(self, numel)
    if self.ndim == 1:
        self.c_sizes[1] = 1
    else:
        contiguous_strides(self.c_sizes, self.c_sizes + self.ndim, self.ndim)
    if self.sizes_ref is not None:
        self.sizes_ref = None
    if self.origin is not None:
        self.origin = None
    return True


@cython.critical_section
cdef int extend(TensorImpl self, int64_t num, double growth_pct, str caller) except -1:
    """Append `num` rows, (d0, ...) -> (d0 + num, ...), keeping the data.

    If a new buffer is needed it gets spare room of `growth_pct` percent of d0, and belongs to this
    tensor alone.

    Raises EnforceNotMet: undefined, not contiguous, no dimension, num < 0, or too many elements.
    MemoryError.
    """
    while not _extend(self, num, growth_pct, caller):
        pass
    return 0


@cython.critical_section
cdef int extend_to(TensorImpl self, int64_t rows, double growth_pct, str caller) except -1:
    """Append rows until there are `rows`; see `extend`, and caffe2.Tensor.ExtendTo."""
    cdef bint done = False
    while not done:
        self.require_defined(caller)
        _require_outer(self, "extend", caller)
        if growth_pct < 0:
            raise EnforceNotMet(
                f"growthPct is {growth_pct} percent, which is negative.", caller,
                condition="growthPct >= 0")
        if rows < self.c_sizes[0]:
            raise EnforceNotMet(
                f"ExtendTo adds rows, and {rows} are fewer than {self.c_sizes[0]}. ShrinkTo "
                "removes rows.", caller, condition="num >= size(0)")
        done = _extend(self, rows - self.c_sizes[0], growth_pct, caller)
    return 0


cdef bint _extend(TensorImpl self, int64_t num, double growth_pct, str caller) except -1:
    """Do as `extend`; return False, with nothing done, if another thread changed the tensor."""
    cdef Dims dims
    cdef Storage storage
    cdef int64_t numel, outer, rows, kept, offset
    cdef double grown
    cdef TensorImpl target, source
    if _extend_in_place(self, num):
        return True
    _former = former(self)
    require_contiguous(self, caller)
    _require_outer(self, "extend", caller)
    if num < 0:
        raise EnforceNotMet(
            f"Extend adds rows, and {num} is negative. ShrinkTo takes rows away.",
            caller, condition="num >= 0")
    if num > INT64_MAX - self.c_sizes[0]:
        raise EnforceValueError(
            f"{num} rows on top of {self.c_sizes[0]} do not fit an int64.", caller)
    storage = self.storage
    dims = _with_outer(self, self.c_sizes[0] + num)
    if begin_of(storage) == NULL:
        _resize(self, dims.data, dims.n, caller)
        return True
    numel = require_numel(dims.data, dims.n, caller)
    if nbytes_needed(self, numel, caller) <= nbytes_of(storage) and (numel == 0 or same_kind(self)):
        self.set_contiguous(dims.data, dims.n, numel)
        return True
    outer = dims.data[0]
    # In single precision, as upstream computes the factor.
    grown = ceil(<double>(<float>self.c_sizes[0] * (<float>1 + <float>growth_pct / <float>100)))
    if grown > <double>outer:
        if grown >= 9.2e18:
            raise EnforceValueError(
                f"Growing {self.c_sizes[0]} rows by {growth_pct} percent does not fit an int64.",
                caller)
        dims.data[0] = <int64_t>grown
    rows, kept, offset = self.c_sizes[0], self.c_numel, self.offset
    target = allocated(dims.data, dims.n, self.c_dtype, storage.device_type,
                       storage.device_index, caller)
    dims.data[0] = rows
    target.set_contiguous(dims.data, dims.n, kept)
    # Other threads run while this one waits for memory or copies many elements.
    source = seen(self)
    if FREE_THREADED and target.c_dtype.c_is_pod \
            and not _are_same_rows(source, target, storage, offset):
        return False
    if target.c_dtype.c_is_pod or users_of(storage) > 1:
        copy_elements(target, source, caller)
    else:
        # No other tensor shares the elements, so they are moved, which needs no copy method.
        source.data(caller)
        require_alike(target, source, caller)
        (<Elements?>target.storage.ctx).items[:kept] = \
            (<Elements?>owner_of(source.storage)).items[source.offset:source.offset + kept]
    if not _are_same_rows(self, target, storage, offset):
        return False
    dims.data[0] = outer
    # A storage of its own from here on; tensors that share the old one keep it. (Upstream leaves
    # them with freed memory.)
    self.set_storage(target.storage)
    set_offset(self, 0)
    set_impl_flags(self, self.flags | RESERVED)
    self.set_contiguous(dims.data, dims.n, numel)
    return True


cdef bint _are_same_rows(
        TensorImpl impl, TensorImpl rows, Storage storage, int64_t offset) noexcept:
    """Return whether `impl` has the type and sizes of `rows`, and that place in a storage."""
    return (is_storage(impl, storage) and impl.offset == offset
            and impl.c_dtype is rows.c_dtype and impl.ndim == rows.ndim
            and memcmp(impl.c_sizes, rows.c_sizes, rows.ndim * sizeof(int64_t)) == 0)


@cython.critical_section
cdef int shrink_to(TensorImpl self, int64_t outer_dim, str caller) except -1:
    """Keep the first `outer_dim` rows, (d0, ...) -> (outer_dim, ...), in the same buffer.

    Raises EnforceNotMet: undefined, not contiguous, no dimension, outer_dim not in [0, d0], or the
    storage is shared.
    """
    cdef Dims dims
    require_contiguous(self, caller)
    _require_outer(self, "shrink", caller)
    if outer_dim < 0 or outer_dim > self.c_sizes[0]:
        raise EnforceNotMet(
            f"ShrinkTo goes from {self.c_sizes[0]} rows to fewer, and {outer_dim} is not that. "
            "Extend adds rows.", caller, condition="0 <= outer_dim <= size(0)")
    if users_of(self.storage) != 1:
        raise EnforceNotMet(
            f"{users_of(self.storage)} tensors share the storage. Call Resize instead.", caller,
            condition="storage().unique()")
    dims = _with_outer(self, outer_dim)
    _former = former(self)
    self.set_contiguous(dims.data, dims.n, require_numel(dims.data, dims.n, caller))
    return 0


@cython.critical_section
cdef int reserve_space(TensorImpl self, int64_t outer_dim, str caller) except -1:
    """Reserve memory for `outer_dim` rows; a new buffer, where needed, drops the old data.

    Raises EnforceNotMet: undefined, not contiguous, the storage is shared, no dimension, or
    outer_dim < 0. MemoryError.
    """
    cdef Dims dims
    cdef Storage storage
    cdef TypeMeta dtype = self.c_dtype      # kept: allocate_buffer may run Python that changes it
    cdef char* data = NULL
    cdef int64_t capacity
    require_contiguous(self, caller)
    storage = self.storage
    if users_of(storage) != 1:
        raise EnforceNotMet(
            f"{users_of(storage)} tensors share the storage, and the others would lose their data.",
            caller, condition="storage().unique()")
    _require_outer(self, "reserve rows for", caller)
    if outer_dim < 0:
        raise EnforceNotMet(
            f"{outer_dim} rows cannot be reserved.", caller, condition="outer_dim >= 0")
    dims = _with_outer(self, outer_dim)
    capacity = require_numel(dims.data, dims.n, caller)
    nbytes_needed(self, capacity, caller)
    # As upstream, without the offset of a view, which Extend adds.
    if capacity * dtype.itemsize <= nbytes_of(storage):
        return 0
    if capacity < self.c_numel:
        # Upstream allocates fewer bytes than the sizes need.
        capacity = self.c_numel
    ctx = allocate_buffer(
        storage.device_type, storage.device_index, dtype, capacity, &data, caller)
    _former = former(self)
    set_offset(self, 0)
    self.origin = None
    install(storage, ctx, data, dtype, capacity * dtype.itemsize, 0)
    set_impl_flags(self, self.flags | RESERVED)
    return 0
