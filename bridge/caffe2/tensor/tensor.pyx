# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""caffe2.Tensor, the Caffe2-style wrapper: sized first, allocated at `mutable_data`."""

from copy import deepcopy

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uintptr_t

from bridge.c10 cimport allocation, content, resizing, views
from bridge.c10.array_ref cimport to_int64
from bridge.c10.dims cimport Dims, parse_dims_args
from bridge.c10.handle cimport Handle
from bridge.c10.python_api cimport word64
from bridge.c10.reports cimport is_observed, report_shared, unlikely
from bridge.c10.slots cimport call_init, dealloc_of, own_methods, set_constructor, set_dealloc
from bridge.c10.storage cimport READONLY, Storage
from bridge.c10.tensor_impl cimport (
    TensorImpl,
    allocatable,
    is_contiguous_now,
    is_undefined,
    nbytes_now,
    seen,
    storage_flags,
    storage_of,
    undefined_impl,
)
from bridge.c10.type_meta cimport as_type, set_element_class, tensor_type, undefined_type
from bridge.caffe2.tensor.construct cimport from_arguments, unallocated
from bridge.caffe2.tensor.flat_view cimport flat_view, mutable_view
from bridge.caffe2.tensor.metadata cimport TensorMetadata
from bridge.dlpack.abi cimport DLManagedTensorVersioned, DLPackExchangeAPI
from bridge.exchange_table cimport exchange_table, import_object
from bridge.wrapper cimport Wrapper, inherit_metadata

from bridge.at.tensor import Tensor as AtTensor
from bridge.c10.errors import EnforceNotMet, EnforceTypeError, EnforceValueError
from bridge.c10.raw_parts import sized


cdef DLPackExchangeAPI _table


cdef int _import(DLManagedTensorVersioned* managed, void** out) noexcept:
    return import_object(managed, out, Tensor, "caffe2.Tensor")


cdef class Tensor(TensorMetadata):
    """A tensor that manages its memory as Caffe2's does: sized first, then allocated.

    ``Tensor()`` is undefined. ``Tensor(D)`` has sizes (0,) on the device `D`. ``Tensor(dims, D)``
    has sizes and no memory yet. ``Tensor(dims, values, T=None)`` is a copy of a list, on the CPU.
    ``Tensor(at_tensor)`` shares the TensorImpl of a contiguous at.Tensor, and ``Tensor(x)`` the
    memory of a contiguous tensor of any library, as `bridge.from_dlpack` does.
    ``Tensor(tensor, D)`` is a copy on the device `D`.

    Raises EnforceNotMet: other arguments (also a TypeError), the tensor is not contiguous, or it
    cannot be exchanged (also a BufferError).

    Follows caffe2::Tensor, caffe2/core/tensor.h, PyTorch 1.8.1.

    Sizes come first, memory with `mutable_data`:

    >>> from bridge import caffe2
    >>> t = caffe2.Tensor([2, 3], "cpu")
    >>> t.numel(), t.dtype_initialized(), t.storage_initialized(), t.defined()
    (6, False, False, True)
    >>> t.mutable_data("float32")[:] = range(6)
    >>> t.numpy().tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    >>> t.data().tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    >>> t.raw_data() == t.raw_mutable_data() == t.numpy().ctypes.data
    True

    Metadata:

    >>> t.sizes(), t.shape, t.strides(), t.dim(), t.size(-1), t.stride(0), t.dim32(1)
    (ArrayRef([2, 3]), (2, 3), ArrayRef([3, 1]), 2, 3, 3, 3)
    >>> t.dtype(), t.IsType("float32"), t.itemsize(), t.nbytes(), t.capacity_nbytes()
    (TypeMeta('float32'), True, 4, 24, 24)
    >>> t.dtype is t.dtype(), t.dtype == "float32", t.device == t.GetDevice() == "cpu"
    (True, True, True)
    >>> t.GetDevice(), t.GetDeviceType(), t.is_contiguous()
    (Device('cpu'), <DeviceType.CPU: 1>, True)
    >>> t.size_from_dim(1), t.size_to_dim(1), t.size_between_dim(0, 1), t.canonical_axis_index(-1)
    (3, 2, 1, 1)
    >>> t.DebugString()
    'A Tensor of item size 4 and type float32 and dimension (2,3,).'

    New sizes:

    >>> t.Resize(3, 2)
    >>> t.numpy().tolist()
    [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    >>> t.Reshape(2, 3)
    >>> t.Extend(1)                         # (2, 3) -> (3, 3), and room for more
    >>> t.ExtendTo(4)                       # (3, 3) -> (4, 3)
    >>> t.ShrinkTo(2)                       # (4, 3) -> (2, 3); Shrink does the same
    >>> t.data().tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    >>> t.Shrink(1)
    >>> t.ReserveSpace(100)                 # memory for (100, 3); the sizes stay
    >>> t.sizes(), t.capacity_nbytes() >= 1200
    (ArrayRef([1, 3]), True)
    >>> t.FreeMemory()
    >>> t.storage_initialized(), t.storage().nbytes()
    (False, 0)

    Sharing and copying:

    >>> x = caffe2.Tensor([2], [1.0, 2.0])
    >>> same, alias, copy = x.UnsafeSharedInstance(), x.Alias(), x.Clone()
    >>> same.is_same(x), alias.is_same(x), alias.raw_data() == x.raw_data()
    (True, False, True)
    >>> x.unsafeGetTensorImpl() is same.unsafeGetTensorImpl()
    True
    >>> copy.mutable_data()[:] = 5
    >>> x.CopyFrom(copy)
    >>> alias.numpy().tolist(), x.to_torch().tolist()
    ([5.0, 5.0], [5.0, 5.0])
    >>> y = caffe2.Tensor("cpu")
    >>> y.ResizeLike(x)
    >>> y.ShareData(x)
    >>> y.raw_data() == x.raw_data()
    True
    >>> import numpy as np
    >>> array = np.arange(2.0)
    >>> y.ShareExternalPointer(array)
    >>> y.mutable_data()[0] = 7
    >>> array.tolist()
    [7.0, 1.0]
    >>> x.swap(y)
    >>> x.dtype(), y.dtype()
    (TypeMeta('float64'), TypeMeta('float64'))

    Deprecated names:

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     x.ndim(), x.dims(), x.meta()
    (1, ArrayRef([2]), TypeMeta('float64'))
    """

    # pyi: __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    __dlpack_c_exchange_api__ = exchange_table(&_table, _import)

    # pyi: @overload
    # pyi: def __init__(self) -> None: ...
    # pyi: @overload
    # pyi: def __init__(self, source: TensorLike | DeviceLike, /) -> None: ...
    # pyi: @overload
    # pyi: def __init__(self, dims: Wrapper | Dims, device: DeviceLike, /) -> None: ...
    # pyi: @overload
    # pyi: def __init__(
    # pyi:     self, dims: Dims, values: ArrayLike, /, T: TypeLike | None = None
    # pyi: ) -> None: ...
    def __init__(self, *args, T=None):
        cdef TensorImpl impl
        if not args and T is None:
            return
        impl = _impl_for_caffe2(args[0]) if len(args) == 1 and T is None else None
        if impl is None:
            impl = from_arguments(args, T)
            if not is_contiguous_now(impl):
                _refuse_strided(impl)
        self.impl = impl

    @staticmethod
    def _wrap(TensorImpl impl not None) -> Tensor:
        """Return a caffe2.Tensor of `impl`, shared, which must be contiguous."""
        if not is_undefined(impl) and not is_contiguous_now(impl):
            _refuse_strided(impl)
        return wrap(impl)

    # Sharing and copying.

    def UnsafeSharedInstance(self) -> Tensor:
        """Return another wrapper of the same TensorImpl: data and metadata are shared."""
        return wrap(self.impl)

    def Alias(self) -> Tensor:
        """Return a tensor that shares the storage, with its own copy of the metadata.

        Raises EnforceNotMet: nothing is allocated. Follows caffe2::Tensor::Alias.
        """
        cdef TensorImpl impl = self.impl
        impl.require_defined("Tensor.Alias")
        if not impl.storage_initialized():
            raise EnforceNotMet(
                "The tensor has no content: call mutable_data(T) first.", "Tensor.Alias",
                condition="storage_initialized()")
        return wrap(views.alias(impl, "Tensor.Alias"))

    def Clone(self) -> Tensor:
        """Return a copy in new memory on the same device.

        Raises EnforceNotMet: nothing is allocated. MemoryError. Follows caffe2::Tensor::Clone.
        """
        cdef TensorImpl impl = self.impl
        cdef TensorImpl out
        cdef Storage storage = storage_of(impl)
        impl.require_defined("Tensor.Clone")
        out = unallocated(allocatable(storage.device_type), storage.device_index)
        content.copy_from(out, impl, "Tensor.Clone")
        return wrap(out)

    def CopyFrom(self, src: Wrapper, async_: bool = False) -> None:
        """Copy the sizes, type and elements of `src`, a caffe2.Tensor or at.Tensor.

        The device stays. The buffer stays if type and size allow, as in `Resize`; tensors that
        share it then see the elements. `async_` has no effect: a copy within CUDA memory is queued
        on torch's current stream, and a copy from or to the host is complete on return.

        Raises EnforceNotMet: `src` is not a tensor, not contiguous, or not allocated. MemoryError.
        Follows caffe2::Tensor::CopyFrom, caffe2/core/tensor.cc.
        """
        content.copy_from(self.impl, _tensor(src, "Tensor.CopyFrom"), "Tensor.CopyFrom")

    def ShareData(self, src: Wrapper) -> None:
        """Share the storage of `src`, a caffe2.Tensor or at.Tensor: its type and elements.

        The sizes stay. Raises EnforceNotMet: the numbers of elements differ, or `src` is not a
        tensor, not contiguous, or not allocated. Follows TensorImpl::ShareData.
        """
        content.share_data(self.impl, _tensor(src, "Tensor.ShareData"), "Tensor.ShareData")

    def ShareExternalPointer(
        self,
        src: int | TensorLike,
        T: TypeLike | None = None,
        nbytes: int = 0,
        deleter: Deleter | None = None,
    ) -> None:
        """Share memory from outside: an address (an int), a buffer, or a DLPack producer.

        The sizes stay. `T`: the element type; None: the buffer's. `nbytes`: the capacity in
        bytes; 0: the bytes that the sizes require. `deleter(address)` is called once, when no
        tensor or view uses the memory any more; a buffer is kept alive until then.

        Raises EnforceNotMet: an address without a type (also a TypeError), a non-POD type, or
        memory that is too small, misaligned (also a ValueError), read-only, not contiguous or on
        another device (also a BufferError). Follows caffe2::Tensor::ShareExternalPointer.
        """
        from bridge.caffe2.tensor.external_pointer import share_external_pointer

        share_external_pointer(self.impl, src, T, nbytes, deleter)

    def swap(self, other: Tensor) -> None:
        """Exchange the TensorImpls of this and another caffe2.Tensor; no data is copied.

        Raises EnforceNotMet, also a TypeError: `other` is not a caffe2.Tensor.
        """
        cdef Tensor that
        if not isinstance(other, Tensor):
            raise EnforceTypeError(
                f"A caffe2.Tensor is swapped with another, not with {type(other).__name__}.",
                "Tensor.swap")
        that = <Tensor>other
        self.impl, that.impl = that.impl, self.impl

    # Shape.

    def Resize(self, *dims: int | Dims) -> None:
        """Change the sizes, as ``Resize(2, 3)`` or ``Resize([2, 3])``.

        The buffer and its elements stay if it is large enough, unless `FLAGS` have it freed when a
        tensor shrinks. Otherwise the tensor is not allocated until the next `mutable_data`; tensors
        that share the storage keep it.

        Raises EnforceNotMet: an undefined tensor, negative sizes, or too many elements.
        Follows TensorImpl::Resize, c10/core/TensorImpl.h, PyTorch 1.8.1.
        """
        cdef Dims sizes = parse_dims_args(dims, "Tensor.Resize")
        resizing.resize(self.impl, sizes.data, sizes.n, "Tensor.Resize")

    def ResizeLike(self, src: Wrapper) -> None:
        """Change the sizes to the sizes of `src`, a caffe2.Tensor or at.Tensor, as `Resize` does.

        Raises EnforceNotMet: `src` is not a tensor, undefined, or not contiguous.
        Follows caffe2::Tensor::ResizeLike.
        """
        cdef TensorImpl other = _tensor(src, "Tensor.ResizeLike")
        other.require_defined("Tensor.ResizeLike")
        if other is not self.impl:
            other = seen(other)
        if not is_contiguous_now(other):
            raise EnforceNotMet(
                "ResizeLike takes a contiguous tensor.",
                "Tensor.ResizeLike", condition="src.is_contiguous()")
        if other is not self.impl:
            resizing.resize(self.impl, other.c_sizes, other.ndim, "Tensor.ResizeLike")

    def Reshape(self, *dims: int | Dims) -> None:
        """Change the sizes and keep the number of elements: (2, 3) -> (3, 2). The elements stay.

        Raises EnforceNotMet: the number of elements would change, or sizes are negative.
        Follows TensorImpl::Reshape.
        """
        cdef Dims sizes = parse_dims_args(dims, "Tensor.Reshape")
        resizing.reshape(self.impl, sizes.data, sizes.n, "Tensor.Reshape")

    def Extend(self, num: int, growthPct: float = 40.0) -> None:
        """Grow the outer dimension by `num` and keep the elements: (d0, …) -> (d0 + num, …).

        New POD elements are not set. If the buffer is too small, a new one gets room for
        `growthPct` percent of d0 more, and tensors that share the old storage keep it. Many small
        steps take amortised O(1) each.

        Raises EnforceNotMet: no dimension, num < 0, or not contiguous. MemoryError.
        Follows TensorImpl::Extend, c10/core/TensorImpl.h, PyTorch 1.8.1.
        """
        cdef int64_t rows = to_int64(num, "Tensor.Extend")
        # The default is not checked again, for loops that add a row at a time.
        if type(growthPct) is float and <double>growthPct == 40.0 \
                and resizing.extend_in_place(self.impl, rows):
            return
        resizing.extend(self.impl, rows, _percent(growthPct, "Tensor.Extend"), "Tensor.Extend")

    def ExtendTo(self, num: int, growthPct: float = 40.0) -> None:
        """Grow the outer dimension to `num`, as `Extend` does: (d0, …) -> (num, …).

        Raises EnforceNotMet as `Extend`, and if num < size(0) or growthPct < 0. MemoryError.
        """
        cdef int64_t rows = to_int64(num, "Tensor.ExtendTo")
        cdef double percent = _percent(growthPct, "Tensor.ExtendTo")
        resizing.extend_to(self.impl, rows, percent, "Tensor.ExtendTo")

    def ShrinkTo(self, outer_dim: int) -> None:
        """Shrink the outer dimension and keep the buffer: (d0, …) -> (outer_dim, …).

        Raises EnforceNotMet: the storage is shared (call Resize instead), no dimension, outer_dim
        is negative or more than size(0), or not contiguous. Follows caffe2::Tensor::ShrinkTo.
        """
        resizing.shrink_to(self.impl, to_int64(outer_dim, "Tensor.ShrinkTo"), "Tensor.ShrinkTo")

    def Shrink(self, outer_dim: int) -> None:
        """Do as `ShrinkTo`."""
        resizing.shrink_to(self.impl, to_int64(outer_dim, "Tensor.Shrink"), "Tensor.Shrink")

    def ReserveSpace(self, outer_dim: int) -> None:
        """Allocate a buffer for `outer_dim` rows, if the present one is smaller.

        The sizes stay; the elements are lost if the buffer is new. A `Resize` within the buffer
        then keeps it, whatever the values of `FLAGS`.

        Raises EnforceNotMet: the storage is shared, no dimension, or not contiguous. MemoryError.
        Follows TensorImpl::ReserveSpace.
        """
        resizing.reserve_space(
            self.impl, to_int64(outer_dim, "Tensor.ReserveSpace"), "Tensor.ReserveSpace")

    def FreeMemory(self) -> None:
        """Release the buffer; sizes and type stay. Tensors that share the storage keep it.

        Raises EnforceNotMet: an undefined tensor. Follows TensorImpl::FreeMemory.
        """
        allocation.free_memory(self.impl, "Tensor.FreeMemory")

    # Data.

    def mutable_data(self, T: TypeLike | None = None) -> Any:
        """Return the elements as a flat, writable view, shared: (d0, d1, …) -> (numel(),).

        The type becomes `T`; None keeps it. A buffer is allocated unless there is one that fits;
        new POD elements are not set. The view is a NumPy array on the CPU, an at.Tensor elsewhere,
        a mutable sequence for non-POD types. It stays valid whatever the tensor does next.

        Raises EnforceNotMet: an undefined tensor, read-only memory, or no type. MemoryError.
        Follows TensorImpl::mutable_data.
        """
        return mutable_view(self.impl, T, False, "Tensor.mutable_data")

    def data(self, T: TypeLike | None = None) -> Any:
        """Return the elements as a flat view, as `mutable_data` does, without allocating.

        The view is not writable if the memory is read-only. Raises EnforceNotMet: the type is not
        `T` or not set, or nothing is allocated. Follows TensorImpl::data.
        """
        cdef TensorImpl impl = seen(self.impl)
        impl.require_defined("Tensor.data")
        if impl.c_dtype is undefined_type:
            raise EnforceNotMet(
                "The tensor has no element type yet; call mutable_data(T) first.", "Tensor.data",
                condition="dtype_initialized()")
        if T is not None and as_type(T) is not impl.c_dtype:
            raise EnforceNotMet(
                f"The tensor holds {impl.c_dtype} and not {as_type(T)}. mutable_data(T) changes "
                "the type.", "Tensor.data", condition="IsType(T)")
        return flat_view(impl, not storage_flags(impl) & READONLY, "Tensor.data")

    def raw_mutable_data(self, T: TypeLike | None = None) -> int:
        """Return the address of the first element, allocated as by `mutable_data`; 0 if empty.

        Raises EnforceNotMet: an undefined tensor, read-only memory, or no type. MemoryError.
        Follows TensorImpl::raw_mutable_data.
        """
        return mutable_view(self.impl, T, True, "Tensor.raw_mutable_data")

    def raw_data(self) -> int:
        """Return the address of the first element; 0 if there are none.

        Raises EnforceNotMet: an undefined tensor, no type, or nothing allocated.
        Follows TensorImpl::raw_data.
        """
        cdef char* address = self.impl.data("Tensor.raw_data")
        return <uintptr_t>address if word64(&self.impl.c_numel) else 0

    def __copy__(self) -> NoReturn:
        raise EnforceTypeError(_NO_COPY, "copy.copy")

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if is_undefined(self.impl):
            return wrap(undefined_impl)
        return self.Clone()

cdef str _NO_COPY = (
    "A caffe2.Tensor is not copied implicitly: UnsafeSharedInstance() shares data and metadata, "
    "Alias() shares data, Clone() copies.")


cdef Tensor wrap(TensorImpl impl):
    """Return a caffe2.Tensor of `impl`, which is contiguous."""
    cdef Tensor tensor = Tensor.__new__(Tensor)
    tensor.impl = impl
    return tensor


cdef int _refuse_strided(TensorImpl impl) except -1:
    raise EnforceNotMet(
        f"Caffe2-style tensors are contiguous, and this one has sizes {impl.sizes().vec()} with "
        f"strides {impl.strides().vec()}. Call contiguous() first.",
        "caffe2.Tensor", condition="is_contiguous()")


cdef TensorImpl _impl_for_caffe2(object source):
    """Return the TensorImpl of an at.Tensor, to share; None if `source` is not a Wrapper."""
    cdef TensorImpl impl
    if isinstance(source, Wrapper):
        if isinstance(source, Tensor):
            raise EnforceTypeError(_NO_COPY, "caffe2.Tensor")
        impl = (<Wrapper>source).impl
        if not is_contiguous_now(impl) and not is_undefined(impl):
            _refuse_strided(impl)
        if unlikely(is_observed()):
            report_shared("caffe2.Tensor", source, "caffe2.Tensor", nbytes_now(impl))
        return impl
    return None


cdef TensorImpl _tensor(object source, str caller):
    """Return the TensorImpl of a caffe2.Tensor or at.Tensor. Raises EnforceNotMet: neither."""
    if not isinstance(source, Wrapper):
        raise EnforceTypeError(
            f"A caffe2.Tensor or at.Tensor is required, not {type(source).__name__}. "
            "bridge.from_dlpack(x) makes an at.Tensor of any framework's tensor.", caller)
    return (<Wrapper>source).impl


cdef double _percent(object value, str caller) except? -1:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        try:
            # float() also accepts text and, before NumPy 2.4, arrays of one element.
            if not hasattr(type(value), "__float__") or getattr(value, "ndim", 0) != 0:
                raise TypeError("not a number")
            value = float(value)
        except (TypeError, ValueError) as error:
            raise EnforceTypeError(
                f"Growth is a number of percent, not {value!r}.", caller) from error
    try:
        percent = float(value)
    except OverflowError as error:
        raise EnforceValueError(f"Growth of {value} percent overflows.", caller) from error
    if percent != percent:
        raise EnforceValueError("Growth is a number of percent, not NaN.", caller)
    return percent


def _copy_element(item):
    """Return a copy of a tensor that is an element of a tensor, in whichever state it is."""
    if not item.defined():
        return type(item)()
    if item.storage_initialized():
        return deepcopy(item)
    return type(item)._wrap(sized(item.sizes(), item.dtype(), item.GetDevice()))


cdef PyObject* _construct(
    PyObject* cls, PyObject** args, size_t nargsf, PyObject* names,
) except NULL:
    cdef Tensor tensor = Tensor.__new__(Tensor)
    cdef TensorImpl impl
    if names == NULL and (nargsf & <size_t>0xFFFF) == 1 and isinstance(<object>args[0], Wrapper):
        impl = _impl_for_caffe2(<object>args[0])
        tensor.impl = impl
    else:
        call_init(tensor, args, nargsf, names)
    Py_INCREF(tensor)
    return <PyObject*>tensor


set_constructor(Tensor, _construct)
set_dealloc(Tensor, dealloc_of(Handle))
inherit_metadata(Tensor)
own_methods(Tensor, TensorMetadata, (
    "dim", "size", "IsType", "GetDevice", "is_contiguous", "storage_initialized"))
set_element_class(tensor_type, Tensor, _copy_element, aliases=(AtTensor,))
