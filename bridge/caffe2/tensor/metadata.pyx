# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""The sizes, type, device and state of a caffe2.Tensor."""

import warnings

from libc.stdint cimport int64_t

from bridge.c10.array_ref cimport to_int64
from bridge.c10.python_api cimport word8, word32, word64
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    TensorImpl,
    dtype_of,
    is_undefined,
    seen,
    storage_of,
)
from bridge.c10.type_meta cimport TypeMeta, as_type, undefined_type
from bridge.wrapper cimport Wrapper

from bridge.c10.errors import EnforceIndexError, EnforceNotMet


cdef class TensorMetadata(Wrapper):
    """The methods of `caffe2.Tensor` that return its sizes, type, device and state.

    They return values, copied, and change nothing. All but `IsType`, `dtype_initialized` and
    `canonical_axis_index` raise EnforceNotMet for an undefined tensor.

    Follows caffe2::Tensor, caffe2/core/tensor.h, PyTorch 1.8.1.
    """

    def dim(self, i: int | None = None) -> int:
        """Return the number of dimensions. With `i`: the deprecated name of ``size(i)``."""
        self.impl.require_defined("Tensor.dim")
        if i is not None:
            _deprecated("dim(i)", "size(i)")
            return self.size(i)
        return word32(&self.impl.ndim)

    def size(self, i: int | None = None) -> int:
        """Return the size of dimension `i`, which counts from the end if it is negative.

        Without `i`: the deprecated name of ``numel()``. Raises EnforceNotMet, also an IndexError:
        there is no such dimension.
        """
        cdef TensorImpl impl
        self.impl.require_defined("Tensor.size")
        if i is None:
            _deprecated("size()", "numel()")
            return word64(&self.impl.c_numel)
        impl = seen(self.impl)
        return impl.c_sizes[_dim(impl, i, "Tensor.size")]

    def stride(self, i: int) -> int:
        """Return the stride of dimension `i` in elements; a negative `i` counts from the end.

        Raises EnforceNotMet, also an IndexError: there is no such dimension.
        """
        cdef TensorImpl impl
        self.impl.require_defined("Tensor.stride")
        impl = seen(self.impl)
        return impl.c_strides()[_dim(impl, i, "Tensor.stride")]

    def capacity_nbytes(self) -> int:
        """Return the size of the storage in bytes, which may be more than ``nbytes()``."""
        self.impl.require_defined("Tensor.capacity_nbytes")
        return storage_of(self.impl).nbytes()

    def is_contiguous(self) -> bool:
        """Return whether the elements are in row-major order without gaps."""
        self.impl.require_defined("Tensor.is_contiguous")
        return (word8(&self.impl.flags) & CONTIGUOUS) != 0

    def IsType(self, T: TypeLike) -> bool:
        """Return whether the element type is `T`. Raises EnforceNotMet: `T` is not a type."""
        cdef TensorImpl impl = self.impl
        return as_type(T) is <TypeMeta>dtype_of(impl)

    def GetDevice(self) -> Device:
        """Return the Device on which the memory is, or will be allocated."""
        self.impl.require_defined("Tensor.GetDevice")
        return self.impl.device()

    def GetDeviceType(self) -> DeviceType:
        """Return the DeviceType of `GetDevice`."""
        return self.GetDevice().type

    def storage_initialized(self) -> bool:
        """Return whether the elements are allocated; True if there are none."""
        self.impl.require_defined("Tensor.storage_initialized")
        return self.impl.storage_initialized()

    def dtype_initialized(self) -> bool:
        """Return whether the tensor has an element type."""
        return self.impl.dtype() is not undefined_type

    def dim32(self, i: int) -> int:
        """Return ``size(i)`` for an `i` that is not negative.

        Raises EnforceNotMet: the size is 2**31 - 1 or more, or (also an IndexError) there is no
        such dimension.
        """
        cdef int64_t size
        cdef TensorImpl impl
        self.impl.require_defined("Tensor.dim32")
        impl = seen(self.impl)
        size = impl.c_sizes[_dim(impl, i, "Tensor.dim32", False)]
        if size >= 0x7FFFFFFF:
            raise EnforceNotMet(
                f"Size {size} does not fit an int32; use size(i).",
                "Tensor.dim32", condition="size(i) < 2**31 - 1")
        return size

    def size_from_dim(self, k: int) -> int:
        """Return the product of the sizes from dimension `k` on.

        Raises EnforceNotMet, also an IndexError: `k` is negative or more than ``dim()``.
        """
        cdef TensorImpl impl = seen(self.impl)
        return _product(impl, k, impl.ndim, "Tensor.size_from_dim")

    def size_to_dim(self, k: int) -> int:
        """Return the product of the sizes before dimension `k`.

        Raises EnforceNotMet, also an IndexError: `k` is negative or more than ``dim()``.
        """
        return _product(self.impl, 0, k, "Tensor.size_to_dim")

    def size_between_dim(self, k: int, l: int) -> int:  # no-cython-lint
        """Return the product of the sizes between the dimensions `k` and `l`, without these.

        Raises EnforceNotMet, also an IndexError: there are no such dimensions.
        """
        cdef int64_t a = to_int64(k, "Tensor.size_between_dim")
        cdef int64_t b = to_int64(l, "Tensor.size_between_dim")
        cdef TensorImpl impl = seen(self.impl)
        cdef int n = impl.ndim
        if a < 0 or b < 0 or a >= n or b >= n:
            impl.require_defined("Tensor.size_between_dim")
            raise EnforceIndexError(
                f"Dimensions {k} and {l} are not both among the {n}.",
                "Tensor.size_between_dim", condition="k < dim(), l < dim()")
        if a < b:
            return _product(impl, a + 1, b, "Tensor.size_between_dim")
        return _product(impl, b + 1, a, "Tensor.size_between_dim") if a > b else 1

    def canonical_axis_index(self, i: int) -> int:
        """Return dimension `i`, which may count from the end, as counted from the front.

        Raises EnforceNotMet, also an IndexError: there is no such dimension.
        """
        return _dim(seen(self.impl), i, "Tensor.canonical_axis_index")

    def DebugString(self) -> str:
        """Return the item size in bytes, the type and the sizes in Caffe2's sentence."""
        impl = seen(self.impl)
        impl.require_defined("Tensor.DebugString")
        dims = "".join(f"{size}," for size in impl.sizes())
        return (f"A Tensor of item size {impl.c_dtype.itemsize} and type {impl.c_dtype.name} and "
                f"dimension ({dims}).")

    def ndim(self) -> int:
        """Return ``dim()``, with a DeprecationWarning."""
        _deprecated("ndim()", "dim()")
        return self.dim()

    def dims(self) -> ArrayRef:
        """Return ``sizes()``, with a DeprecationWarning."""
        _deprecated("dims()", "sizes()")
        return self.sizes()

    def meta(self) -> TypeMeta:
        """Return ``dtype()``, with a DeprecationWarning."""
        _deprecated("meta()", "dtype()")
        return self.dtype()

    def __bool__(self) -> bool:
        return not is_undefined(self.impl)

    def __repr__(self):
        impl = seen(self.impl)
        if is_undefined(impl):
            return "caffe2.Tensor()"
        state = "" if impl.storage_initialized() else ", not allocated"
        dtype = impl.c_dtype if impl.c_dtype else "no type yet"
        return (f"caffe2.Tensor(sizes={impl.sizes().vec()}, dtype={dtype}, "
                f"device='{impl.device()}'{state})")


cdef int64_t _dim(TensorImpl impl, object i, str caller, bint negative=True) except -1:
    """Return dimension `i` as counted from the front."""
    cdef int64_t dim = to_int64(i, caller)
    impl.require_defined(caller)
    if dim >= impl.ndim or dim < (-impl.ndim if negative else 0):
        raise EnforceIndexError(
            f"Dimension {i} is out of range for {impl.ndim} dimensions.", caller,
            condition="i < dim()")
    return dim + impl.ndim if dim < 0 else dim


cdef object _product(TensorImpl impl, object first, object end, str caller):
    """Return the product of the sizes of the dimensions [first, end)."""
    cdef int64_t a = to_int64(first, caller)
    cdef int64_t b = to_int64(end, caller)
    cdef int64_t i
    impl = seen(impl)
    impl.require_defined(caller)
    if a < 0 or b > impl.ndim or a > impl.ndim or b < 0:
        raise EnforceIndexError(
            f"Dimension {b if a == 0 else a} is out of range for {impl.ndim} dimensions.", caller,
            condition="k <= dim()")
    product = 1
    for i in range(a, b):
        product *= impl.c_sizes[i]
    return product


def _deprecated(old, new):
    # Compiled code has no frames, so the first one is the caller's.
    warnings.warn(
        f"caffe2.Tensor.{old} is the old name of {new}.", DeprecationWarning, stacklevel=1)
