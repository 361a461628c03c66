# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Indexing as in NumPy.

Basic indexing makes views: by ints, slices of any step, None and an ellipsis. Advanced indexing is
evaluated by torch: by tensors, lists and masks.
"""

from libc.stdint cimport INT64_MAX, int64_t

from bridge.at.conversion cimport as_source
from bridge.at.element_writes cimport write_back
from bridge.at.storage_ops cimport import_result
from bridge.c10.dims cimport wrap_dim
from bridge.c10.tensor_impl cimport TensorImpl, seen
from bridge.c10 cimport views
from bridge.exchange.import_tensor cimport import_tensor
from bridge.exchange.torch_export cimport torch_operand

from bridge.c10.errors import (
    EnforceIndexError,
    EnforceNotMet,
    EnforceTypeError,
    EnforceValueError,
)

cdef str CALLER = "Tensor.__getitem__"


cdef TensorImpl basic_index(TensorImpl impl, object key):
    """Return the view ``x[key]``; None if `key` is not a basic index."""
    cdef int64_t used = 0
    cdef bint ellipsis = False, foreign = False
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
                raise EnforceIndexError("An index has at most one ellipsis.", CALLER)
            ellipsis = True
        elif isinstance(one, slice):
            used += 1
            foreign = foreign or not (
                _is_builtin(one.start) and _is_builtin(one.stop) and _is_builtin(one.step))
        elif is_integer(one):
            used += 1
            foreign = foreign or type(one) is not int
        else:
            return None
    if foreign:
        # An __index__ may run any code, such as a resize of this tensor: index a snapshot.
        impl = views.alias(impl, CALLER)
    else:
        impl = seen(impl)
    if used > impl.ndim:
        raise EnforceIndexError(
            f"{used} indices are too many for {impl.ndim} dimensions.", CALLER)
    return _walk(impl, keys, impl.ndim - used)


cdef bint _is_builtin(object one) noexcept:
    """Return whether a part of a slice is None or an int, which runs no code when it is read."""
    return one is None or type(one) is int


cdef bint is_integer(object one):
    """Return whether `one` is an integer of any package, but not a bool.

    A bool is an int in Python and a mask in NumPy and torch.
    """
    if isinstance(one, bool):
        return False
    if isinstance(one, int):
        return True
    # NumPy's integer scalars, but not arrays or tensors, which are advanced indices
    return hasattr(one, "__index__") and not hasattr(one, "__len__") \
        and not hasattr(one, "__dlpack__") and getattr(one, "shape", None) in (None, ()) \
        and type(one).__name__ != "bool"


cdef TensorImpl _walk(TensorImpl impl, tuple keys, int64_t left_over):
    cdef int64_t dim = 0
    cdef int64_t i, start, stop, step, size
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
                start, stop, every = one.indices(size)
            except TypeError as error:
                raise EnforceTypeError(f"A slice consists of ints: {error}", CALLER) from error
            except ValueError as error:
                raise EnforceValueError(f"{error}", CALLER) from error
            try:
                step = every
            except OverflowError:
                # a step larger than `size` selects one index at most
                step = INT64_MAX if every > 0 else -INT64_MAX
            out = views.slice_dim(out, dim, start, _steps(start, stop, step), step, CALLER)
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
            f"Index {index} is out of range for sizes {impl.sizes().vec()}.", CALLER) from None


cdef int64_t _steps(int64_t start, int64_t stop, int64_t step) noexcept:
    """Return the number of indices from `start` to before `stop`, for a step other than zero."""
    if step > 0:
        return 1 + (stop - start - 1) // step if stop > start else 0
    return 1 + (stop - start + 1) // step if start > stop else 0


cdef TensorImpl sliced(
    TensorImpl impl, int64_t dim, object start, object end, int64_t step, str caller,
):
    """Return a view of every `step`-th index of a dimension, from `start` to before `end`."""
    cdef int64_t first, last, size
    # First, since an __index__ may change `impl`.
    start, end = _end(start, caller), _end(end, caller)
    impl = seen(impl)
    require_dim(impl, caller)
    dim = wrap_dim(dim, impl.ndim, caller)
    size = impl.c_sizes[dim]
    if step <= 0:
        advice = f" Use x[::{step}] for a reversed view." if step else ""
        raise EnforceNotMet(
            f"The step must be positive, not {step}.{advice}", caller, condition="step > 0")
    first = 0 if start is None else _clamped(start, size)
    last = size if end is None else _clamped(end, size)
    if last < first:
        last = first
    return views.slice_dim(impl, dim, first, _steps(first, last, step), step, caller)


cdef object _end(object value, str caller):
    """Return an end of a slice as an int, or None."""
    if _is_builtin(value):
        return value
    try:
        return value.__index__()
    except AttributeError:
        raise EnforceTypeError(
            f"The ends of a slice must be ints or None, not {type(value).__name__}.",
            caller) from None


cdef int64_t _clamped(object value, int64_t size) except -1:
    """Return an end of a slice as Python counts it: negative from the end, limited to `size`."""
    if value < 0:
        value += size
    return 0 if value < 0 else size if value > size else value


cdef int require_dim(TensorImpl impl, str caller) except -1:
    """Raise EnforceIndexError if there are no dimensions."""
    impl.require_defined(caller)
    if impl.ndim == 0:
        raise EnforceIndexError("A 0-d tensor has no dimensions.", caller, condition="dim() > 0")
    return 0


cdef TensorImpl advanced_index(TensorImpl impl, object key):
    """Return ``x[key]`` for a key that basic indexing does not support; a copy."""
    if isinstance(key, (str, float, complex, dict, bytes)):
        raise EnforceTypeError(
            f"{key!r} is not an index. An index consists of ints, slices, None, ..., or tensors of "
            "ints or bools.", "Tensor.__getitem__")
    source = torch_operand(impl)
    try:
        found = source[_torch_key(key)]
    except IndexError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise EnforceTypeError(f"{key!r} is not a valid index: {error}",
                               "Tensor.__getitem__") from error
    if found.data_ptr() and found.untyped_storage().data_ptr() == \
            source.untyped_storage().data_ptr():
        found = found.clone()
    return import_result(found)


cdef int advanced_assign(TensorImpl impl, object key, object value) except -1:
    """Set ``x[key]`` to `value` for a key that basic indexing does not support."""
    if not isinstance(value, (bool, int, float, complex)):
        value = torch_operand(as_source(value, impl, "Tensor.__setitem__"))
    try:
        target = torch_operand(impl)
        target[_torch_key(key)] = value
        write_back(impl, target)
    except IndexError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, EnforceNotMet):
            raise
        raise EnforceTypeError(f"{key!r} is not a valid index: {error}",
                               "Tensor.__setitem__") from error
    return 0


def _torch_key(key):
    """Return an index for torch; tensors of all frameworks become torch tensors."""
    if isinstance(key, tuple):
        return tuple([_torch_key(one) for one in key])
    if isinstance(key, range):
        return list(key)
    if isinstance(key, (list, int, slice)) or key is None or key is Ellipsis:
        return key
    tensor = torch_operand(import_tensor(key))
    if tensor.dtype.is_signed or tensor.dtype.itemsize == 1:
        return tensor
    # Of unsigned integers torch supports only bytes, as masks.
    signed = tensor.long()
    if (signed < 0).any():
        raise EnforceIndexError(
            f"An index in {key!r} is out of range.", "Tensor.__getitem__")
    return signed
