# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Views of the same bytes as another element type: Tensor.view(dtype)."""

from libc.stdint cimport int64_t

from bridge.at.conversion cimport require_pod
from bridge.c10.layout cimport MAX_OFFSET, checked_mul, checked_numel
from bridge.c10.tensor_impl cimport TensorImpl, seen
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.c10.wrapping cimport wrapped_mul
from bridge.c10 cimport views

from bridge.c10.errors import EnforceNotMet, EnforceValueError


cdef TensorImpl view_as_dtype(TensorImpl impl, object spec):
    """Return the same bytes as elements of another type; None if `spec` is not a type."""
    cdef TensorImpl out
    cdef TypeMeta dtype
    try:
        dtype = as_type(spec)
    except TypeError:
        return None
    impl = seen(impl)
    impl.data("Tensor.view")
    require_pod(impl, "Tensor.view")
    if not dtype.c_is_pod:
        raise EnforceNotMet(
            f"Plain memory cannot be viewed as {dtype}.", "Tensor.view", condition="T.is_pod")
    out = views.alias(impl, "Tensor.view")
    out.c_dtype = dtype
    if dtype.itemsize != impl.c_dtype.itemsize:
        _rescale(out, impl)
    return out


cdef int _rescale(TensorImpl out, TensorImpl impl) except -1:
    """Convert sizes, strides and offset of `out`, now those of `impl`, to its own item size."""
    cdef int64_t size = out.c_dtype.itemsize, old = impl.c_dtype.itemsize, ratio, i
    cdef int last = impl.ndim - 1
    if impl.ndim == 0 or (impl.c_strides()[last] != 1 and impl.c_sizes[last] != 1):
        raise EnforceNotMet(
            f"Only a contiguous last dimension can be viewed from {impl.c_dtype} as {out.c_dtype}, "
            "whose elements have another size.", "Tensor.view", condition="stride(-1) == 1")
    if size < old:
        ratio = old // size
        for i in range(last):
            out.c_strides()[i] = wrapped_mul(out.c_strides()[i], ratio)
        out.c_sizes[last] = wrapped_mul(out.c_sizes[last], ratio)
        # other sizes may be zero, and then those of the last dimension are as many as any
        if checked_mul(impl.c_sizes[last], ratio) < 0 or checked_numel(out.c_sizes, impl.ndim) < 0:
            raise EnforceValueError("The number of elements does not fit an int64.", "Tensor.view")
        out.offset *= ratio
        if out.offset > MAX_OFFSET:
            out.offset = 0      # there are no elements
    else:
        ratio = size // old
        uneven = impl.c_sizes[last] % ratio != 0 or impl.offset % ratio != 0
        for i in range(last):
            if impl.c_strides()[i] % ratio != 0 and impl.c_sizes[i] > 1:
                uneven = True
        if uneven:
            raise EnforceNotMet(
                f"Sizes, strides and offset are not all multiples of {ratio}, the number of "
                f"{impl.c_dtype} elements in one of {out.c_dtype}.", "Tensor.view")
        for i in range(last):
            out.c_strides()[i] //= ratio
        out.c_sizes[last] //= ratio
        out.offset //= ratio
    out.c_strides()[last] = 1
    out.finish()
    return 0
