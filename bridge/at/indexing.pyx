# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Basic indexing, as NumPy has it: ints, slices of any step, None, and an ellipsis."""

from libc.stdint cimport int64_t

from bridge.c10.tensor_impl cimport TensorImpl
from bridge.c10 cimport views

from bridge.c10.errors import EnforceIndexError, EnforceTypeError, EnforceValueError

cdef str CALLER = "Tensor.__getitem__"


cdef TensorImpl index(TensorImpl impl, object key):
    """The view that a basic index names; None where the index is of another kind."""
    cdef int64_t used = 0
    cdef bint ellipsis = False
    cdef tuple keys
    impl.require_defined(CALLER)
    if type(key) is int:
        return views.select(impl, 0, _place(key, impl), CALLER)
    keys = key if type(key) is tuple else (key,)
    for one in keys:
        if one is None:
            continue
        if one is Ellipsis:
            if ellipsis:
                raise EnforceIndexError("An index has one ellipsis at most.", "", CALLER)
            ellipsis = True
        elif isinstance(one, slice):
            used += 1
        elif _is_int(one):
            used += 1
        else:
            return None
    if used > impl.ndim:
        raise EnforceIndexError(
            f"{used} indices are too many for {impl.ndim} dimensions.", "", CALLER)
    return _walk(impl, keys, impl.ndim - used)


cdef bint _is_int(object one):
    # bool is an int to Python and a mask to NumPy and torch
    if isinstance(one, bool):
        return False
    if isinstance(one, int):
        return True
    # NumPy's integer scalars; not arrays or tensors, which index in another way
    return hasattr(one, "__index__") and not hasattr(one, "__len__") \
        and not hasattr(one, "__dlpack__") and getattr(one, "shape", None) in (None, ()) \
        and type(one).__name__ != "bool"


cdef TensorImpl _walk(TensorImpl impl, tuple keys, int64_t left_over):
    cdef int64_t dim = 0
    cdef int64_t i, start, stop, step, length, size
    cdef TensorImpl out = impl
    for one in keys:
        if one is None:
            out = views.unsqueeze(out, dim, CALLER)
            dim += 1
        elif one is Ellipsis:
            dim += left_over
        elif isinstance(one, slice):
            size = out.c_sizes[dim]
            try:
                start, stop, step = one.indices(size)
            except TypeError as error:
                raise EnforceTypeError(f"A slice is made of ints: {error}", "", CALLER) from error
            except ValueError as error:
                raise EnforceValueError(f"{error}", "", CALLER) from error
            except OverflowError:
                # a step beyond int64 shows the first element alone
                start, stop, _ = slice(one.start, one.stop, 1 if one.step > 0 else -1) \
                    .indices(size)
                step = 1
                stop = min(stop, start + 1) if one.step > 0 else max(stop, start - 1)
                if one.step < 0:
                    step = -1
            if step > 0:
                length = (stop - start + step - 1) // step if stop > start else 0
            else:
                length = (start - stop - step - 1) // -step if start > stop else 0
            out = views.slice_dim(out, dim, start, length, step, CALLER)
            dim += 1
        else:
            i = _place(one.__index__(), impl)
            out = views.select(out, dim, i, CALLER)
    if out is impl:
        return views.alias(impl, CALLER)
    return out


cdef int64_t _place(object index, TensorImpl impl) except? -1:
    try:
        return index
    except OverflowError:
        raise EnforceIndexError(
            f"Index {index} is out of range for sizes {impl.sizes().vec()}.", "", CALLER) from None
