# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Views: TensorImpls of other sizes, strides and offset over the same Storage; nothing is copied.

Rules and errors are those of ATen (aten/src/ATen/native/TensorShape.cpp, PyTorch 1.8.1), except
that steps may be negative, as in NumPy. Every function raises EnforceNotMet (also an IndexError or
ValueError) for an undefined tensor, a dimension out of range, or sizes that make no view.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int64_t
from libc.string cimport memcpy

from bridge.c10.dims cimport Dims, new_dims, require_nbytes, require_numel, wrap_dim
from bridge.c10.layout cimport (
    MAX_OFFSET,
    checked_mul,
    checked_numel,
    contiguous_strides,
    extent,
    view_strides,
    wrapped_add,
    wrapped_mul,
)
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, like, seen

from bridge.c10.errors import EnforceIndexError, EnforceNotMet, EnforceValueError


cdef TensorImpl _same(TensorImpl self):
    """Return a TensorImpl of the same sizes, strides and offset."""
    cdef TensorImpl out = like(self)
    out.set_ndim(self.ndim)
    memcpy(out.c_sizes, self.c_sizes, 2 * self.ndim * sizeof(int64_t))
    out.c_numel = self.c_numel
    out.flags = self.flags & CONTIGUOUS
    return out


cdef inline void _finish_at(TensorImpl out, int64_t offset) noexcept:
    """Call `finish` and set the offset.

    Without elements nothing is read there: as in ATen the offset may lie outside of the storage,
    but one that is out of range is not taken: the source's stays.
    """
    out.finish()
    if out.c_numel or 0 <= offset <= MAX_OFFSET:
        out.offset = offset


cdef list _list(const int64_t* values, int n):
    cdef int i
    return [values[i] for i in range(n)]


@cython.critical_section
cdef TensorImpl alias(TensorImpl self, str caller):
    """Return a view of the whole tensor, with metadata of its own."""
    self.require_defined(caller)
    return _same(self)


@cython.critical_section
cdef TensorImpl as_strided(
    TensorImpl self, const int64_t* sizes, const int64_t* strides, int ndim, int64_t offset,
    str caller,
):
    """Return a view of any sizes, strides and offset (elements) that lies inside the storage."""
    cdef TensorImpl out
    cdef int64_t numel, low = 0, high = 0, end
    self.require_defined(caller)
    numel = require_numel(sizes, ndim, caller)
    require_nbytes(numel, self.c_dtype.itemsize, caller)
    if offset < 0 or offset > MAX_OFFSET:
        raise EnforceValueError(
            f"A storage offset must be from 0 to {MAX_OFFSET}: {offset}.", caller,
            condition="storage_offset >= 0")
    if numel:
        end = -1
        if extent(sizes, strides, ndim, &low, &high) == 0 and high < INT64_MAX - offset:
            end = checked_mul(offset + high + 1, self.c_dtype.itemsize)
        if end < 0 or offset + low < 0 or end > self.storage.c_nbytes:
            raise EnforceValueError(
                f"Sizes {_list(sizes, ndim)}, strides {_list(strides, ndim)} and offset {offset} "
                f"of {self.c_dtype} reach outside the storage of {self.storage.c_nbytes} bytes.",
                caller, condition="the view lies within its storage")
    out = like(self)
    out.offset = offset
    out.set_strided(sizes, strides, ndim, numel)
    return out


@cython.critical_section
cdef TensorImpl view(TensorImpl self, const int64_t* sizes, int ndim, str caller):
    """Return a view in other sizes of the same number of elements.

    One size may be -1, which stands for the remaining elements. Raises EnforceNotMet: another
    number of elements, or the strides do not allow it without a copy.
    """
    cdef TensorImpl out
    cdef Dims dims
    cdef int64_t numel = 1
    cdef int i, inferred = -1
    self.require_defined(caller)
    dims = new_dims(ndim)
    for i in range(ndim):
        dims.data[i] = sizes[i]
        if sizes[i] == -1:
            if inferred >= 0:
                raise EnforceValueError("Only one size can be -1.", caller)
            inferred = i
        elif sizes[i] < 0:
            raise EnforceValueError(
                f"Sizes must not be negative: {sizes[i]}.", caller, condition="size >= 0")
    if inferred >= 0:
        dims.data[inferred] = 1
        numel = checked_numel(dims.data, ndim)
        if numel <= 0 or self.c_numel % numel != 0:
            raise EnforceValueError(
                f"{self.c_numel} elements cannot be viewed in sizes {_list(sizes, ndim)}, whatever "
                "size replaces -1.", caller)
        dims.data[inferred] = self.c_numel // numel
    numel = checked_numel(dims.data, ndim)
    if numel != self.c_numel:
        raise EnforceValueError(
            f"{self.c_numel} elements cannot be viewed in sizes {_list(sizes, ndim)}.", caller,
            condition="numel() == new numel")
    out = like(self)
    out.set_ndim(ndim)
    memcpy(out.c_sizes, dims.data, ndim * sizeof(int64_t))
    if self.flags & CONTIGUOUS:
        contiguous_strides(out.c_sizes, out.c_strides(), ndim)
    elif view_strides(self.c_sizes, self.c_strides(), self.ndim,
                      out.c_sizes, out.c_strides(), ndim) < 0:
        raise EnforceNotMet(
            f"Sizes {_list(self.c_sizes, self.ndim)} with strides "
            f"{_list(self.c_strides(), self.ndim)} cannot be viewed in sizes {_list(sizes, ndim)} "
            "without a copy. Use reshape().", caller, condition="the strides allow the view")
    out.finish()
    return out


@cython.critical_section
cdef TensorImpl transpose(TensorImpl self, int64_t dim0, int64_t dim1, str caller):
    """Return a view with two dimensions exchanged."""
    cdef TensorImpl out
    cdef int64_t* strides
    self.require_defined(caller)
    dim0 = wrap_dim(dim0, self.ndim, caller)
    dim1 = wrap_dim(dim1, self.ndim, caller)
    out = _same(self)
    if dim0 != dim1:
        strides = out.c_strides()
        out.c_sizes[dim0], out.c_sizes[dim1] = self.c_sizes[dim1], self.c_sizes[dim0]
        strides[dim0], strides[dim1] = strides[dim1], strides[dim0]
        out.finish()
    return out


@cython.critical_section
cdef TensorImpl permute(TensorImpl self, const int64_t* order, int n, str caller):
    """Return a view with the dimensions in another order; `order` names each of them once."""
    cdef TensorImpl out
    cdef int64_t* strides
    cdef int64_t d
    cdef int i, j
    self.require_defined(caller)
    if n != self.ndim:
        raise EnforceValueError(
            f"permute takes each of the {self.ndim} dimensions once, not {_list(order, n)}.",
            caller, condition="len(dims) == dim()")
    out = like(self)
    out.set_ndim(n)
    strides = out.c_strides()
    for i in range(n):
        d = wrap_dim(order[i], n, caller)
        for j in range(i):
            if wrap_dim(order[j], n, caller) == d:
                raise EnforceValueError(
                    f"permute takes each dimension once, not {_list(order, n)}.", caller)
        out.c_sizes[i] = self.c_sizes[d]
        strides[i] = self.c_strides()[d]
    out.finish()
    return out


cdef TensorImpl _without(TensorImpl self, int dim):
    """Return a TensorImpl without dimension `dim`; the caller calls `finish`."""
    cdef TensorImpl out = like(self)
    cdef int n = self.ndim - 1
    out.set_ndim(n)
    memcpy(out.c_sizes, self.c_sizes, dim * sizeof(int64_t))
    memcpy(out.c_sizes + dim, self.c_sizes + dim + 1, (n - dim) * sizeof(int64_t))
    memcpy(out.c_sizes + n, self.c_strides(), dim * sizeof(int64_t))
    memcpy(out.c_sizes + n + dim, self.c_strides() + dim + 1, (n - dim) * sizeof(int64_t))
    return out


cdef int _require_dims(TensorImpl self, str caller) except -1:
    self.require_defined(caller)
    if self.ndim == 0:
        raise EnforceIndexError(
            f"{caller.rpartition('.')[2]} needs a dimension, and a 0-d tensor has none.", caller,
            condition="dim() > 0")
    return 0


@cython.critical_section
cdef TensorImpl select(TensorImpl self, int64_t dim, int64_t index, str caller):
    """Return a view of one index of dimension `dim`, without that dimension."""
    cdef TensorImpl out
    cdef int64_t i = index
    _require_dims(self, caller)
    dim = wrap_dim(dim, self.ndim, caller)
    if i < 0:
        i += self.c_sizes[dim]
    if i < 0 or i >= self.c_sizes[dim]:
        raise EnforceIndexError(
            f"Index {index} is out of range for dimension {dim} of size {self.c_sizes[dim]}.",
            caller, condition="-size <= index < size")
    out = _without(self, <int>dim)
    _finish_at(out, wrapped_add(out.offset, wrapped_mul(i, self.c_strides()[dim])))
    return out


@cython.critical_section
cdef TensorImpl slice_dim(
    TensorImpl self, int64_t dim, int64_t start, int64_t length, int64_t step, str caller,
):
    """Return a view of `length` elements of dimension `dim` from `start` on; not checked."""
    cdef TensorImpl out = _same(self)
    cdef int64_t* stride = out.c_strides() + dim
    cdef int64_t offset = out.offset
    if length > 0 or step > 0:
        # for an empty slice, too, as in ATen
        offset = wrapped_add(offset, wrapped_mul(start, stride[0]))
    out.c_sizes[dim] = length
    if length > 1:
        stride[0] = wrapped_mul(stride[0], step)
    elif step > 0 and stride[0] <= INT64_MAX // step and stride[0] >= -INT64_MAX // step:
        stride[0] *= step       # visible in strides(); reaches no element
    _finish_at(out, offset)
    return out


@cython.critical_section
cdef TensorImpl squeeze(TensorImpl self, int64_t dim, bint every, str caller):
    """Return a view without dimension `dim`, or without `every` dimension, of size one."""
    cdef TensorImpl out
    cdef int64_t* strides
    cdef int i, n = 0
    self.require_defined(caller)
    if not every:
        dim = wrap_dim(dim, self.ndim, caller)
        if self.ndim == 0 or self.c_sizes[dim] != 1:
            return _same(self)
        out = _without(self, <int>dim)
        out.finish()
        return out
    for i in range(self.ndim):
        n += self.c_sizes[i] != 1
    out = like(self)
    out.set_ndim(n)
    strides = out.c_strides()
    n = 0
    for i in range(self.ndim):
        if self.c_sizes[i] != 1:
            out.c_sizes[n] = self.c_sizes[i]
            strides[n] = self.c_strides()[i]
            n += 1
    out.finish()
    return out


@cython.critical_section
cdef TensorImpl unsqueeze(TensorImpl self, int64_t dim, str caller):
    """Return a view with a new dimension of size one before dimension `dim`."""
    cdef TensorImpl out
    cdef int n, d
    cdef int64_t stride
    self.require_defined(caller)
    n = self.ndim + 1
    d = <int>wrap_dim(dim, n, caller)
    stride = wrapped_mul(self.c_sizes[d], self.c_strides()[d]) if d < self.ndim else 1
    out = like(self)
    out.set_ndim(n)
    memcpy(out.c_sizes, self.c_sizes, d * sizeof(int64_t))
    out.c_sizes[d] = 1
    memcpy(out.c_sizes + d + 1, self.c_sizes + d, (n - 1 - d) * sizeof(int64_t))
    memcpy(out.c_sizes + n, self.c_strides(), d * sizeof(int64_t))
    out.c_sizes[n + d] = stride
    memcpy(out.c_sizes + n + d + 1, self.c_strides() + d, (n - 1 - d) * sizeof(int64_t))
    out.finish()
    return out


@cython.critical_section
cdef TensorImpl expand(TensorImpl self, const int64_t* sizes, int ndim, str caller):
    """Return a view that repeats dimensions of size one; new ones come first; -1 keeps a size."""
    cdef TensorImpl out
    cdef int64_t* strides
    cdef int64_t size
    cdef int i, d
    self.require_defined(caller)
    if ndim < self.ndim:
        raise EnforceValueError(
            f"expand takes a size for each of the {self.ndim} dimensions, not {ndim} sizes.",
            caller, condition="len(sizes) >= dim()")
    out = like(self)
    out.set_ndim(ndim)
    strides = out.c_strides()
    for i in range(ndim):
        d = i - (ndim - self.ndim)
        size = sizes[i]
        if size == -1:
            if d < 0:
                raise EnforceValueError(
                    "-1 keeps a size, and a new dimension has no size to keep.", caller)
            size = self.c_sizes[d]
        elif size < 0:
            raise EnforceValueError(f"Sizes must not be negative: {size}.", caller)
        if d >= 0 and self.c_sizes[d] == size:
            strides[i] = self.c_strides()[d]
        elif d < 0 or self.c_sizes[d] == 1:
            strides[i] = 0
        else:
            raise EnforceValueError(
                f"Dimension {d} of size {self.c_sizes[d]} cannot be expanded to {size}; only a "
                "size of one can.", caller)
        out.c_sizes[i] = size
    require_nbytes(require_numel(out.c_sizes, ndim, caller), out.c_dtype.itemsize, caller)
    out.finish()
    return out


cdef TensorImpl flatten(TensorImpl self, int64_t start, int64_t end, str caller):
    """Return a view with the dimensions from `start` to `end`, both included, as one."""
    cdef Dims dims
    cdef int64_t run = 1
    cdef int i
    self.require_defined(caller)
    self = seen(self)
    start = wrap_dim(start, self.ndim, caller)
    end = wrap_dim(end, self.ndim, caller)
    if start > end:
        raise EnforceValueError(
            "flatten goes from a dimension to a later one.", caller,
            condition="start_dim <= end_dim")
    if self.ndim == 0:
        dims = new_dims(1)
        dims.data[0] = 1
        return view(self, dims.data, 1, caller)
    dims = new_dims(self.ndim - (end - start))
    for i in range(start):
        dims.data[i] = self.c_sizes[i]
    for i in range(start, end + 1):
        run *= self.c_sizes[i]
    dims.data[start] = run
    for i in range(end + 1, self.ndim):
        dims.data[i - (end - start)] = self.c_sizes[i]
    return view(self, dims.data, dims.n, caller)


@cython.critical_section
cdef TensorImpl diagonal(TensorImpl self, int64_t offset, int64_t dim1, int64_t dim2, str caller):
    """Return a view of a diagonal of two dimensions, as a new last dimension in place of them."""
    cdef TensorImpl out, rest
    cdef int64_t size, first
    cdef int64_t* strides
    _require_dims(self, caller)
    dim1 = wrap_dim(dim1, self.ndim, caller)
    dim2 = wrap_dim(dim2, self.ndim, caller)
    if dim1 == dim2:
        raise EnforceValueError("A diagonal runs through two different dimensions.", caller)
    strides = self.c_strides()
    if offset >= 0:
        size = min(self.c_sizes[dim1], max(self.c_sizes[dim2] - offset, 0)) \
            if offset <= self.c_sizes[dim2] else 0
        first = wrapped_mul(offset, strides[dim2]) if size > 0 else 0
    else:
        size = min(max(self.c_sizes[dim1] + offset, 0), self.c_sizes[dim2]) \
            if offset >= -self.c_sizes[dim1] else 0
        first = wrapped_mul(-offset, strides[dim1]) if size > 0 else 0
    rest = _without(self, <int>max(dim1, dim2))
    rest = _without(rest, <int>min(dim1, dim2))
    out = like(self)
    out.set_ndim(self.ndim - 1)
    memcpy(out.c_sizes, rest.c_sizes, rest.ndim * sizeof(int64_t))
    out.c_sizes[rest.ndim] = max(size, 0)
    memcpy(out.c_strides(), rest.c_strides(), rest.ndim * sizeof(int64_t))
    out.c_strides()[rest.ndim] = wrapped_add(strides[dim1], strides[dim2])
    _finish_at(out, wrapped_add(out.offset, first))
    return out


@cython.critical_section
cdef TensorImpl unfold(TensorImpl self, int64_t dim, int64_t size, int64_t step, str caller):
    """Return a view of windows of `size` along `dim`, `step` apart, as a new last dimension."""
    cdef TensorImpl out
    cdef int n
    cdef int64_t length, stride
    self.require_defined(caller)
    dim = wrap_dim(dim, self.ndim, caller)
    length = self.c_sizes[dim] if self.ndim else 1
    stride = self.c_strides()[dim] if self.ndim else 1
    if size < 0 or size > length:
        raise EnforceValueError(
            f"Windows of {size} do not fit dimension {dim} of size {length}.", caller,
            condition="0 <= size <= size(dim)")
    if step <= 0:
        raise EnforceValueError(
            f"A step must be positive: {step}.", caller, condition="step > 0")
    n = self.ndim + 1
    out = like(self)
    out.set_ndim(n)
    memcpy(out.c_sizes, self.c_sizes, self.ndim * sizeof(int64_t))
    memcpy(out.c_strides(), self.c_strides(), self.ndim * sizeof(int64_t))
    if self.ndim:
        out.c_sizes[dim] = (length - size) // step + 1
        out.c_strides()[dim] = wrapped_mul(stride, step) \
            if out.c_sizes[dim] > 1 or step < 1 << 32 else stride
    out.c_sizes[n - 1] = size
    out.c_strides()[n - 1] = stride
    # windows overlap, so there may be too many elements
    require_nbytes(require_numel(out.c_sizes, n, caller), out.c_dtype.itemsize, caller)
    out.finish()
    return out
