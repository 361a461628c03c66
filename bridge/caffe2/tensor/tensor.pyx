# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""caffe2.Tensor, the Caffe2-style wrapper: sized first, allocated at `mutable_data`."""

import warnings

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uintptr_t

from bridge.c10 cimport memory, views
from bridge.c10.array_ref cimport Dims, array_ref_of, parse_dims_args, to_int64
from bridge.c10.device cimport device_of
from bridge.c10.handle cimport Handle
from bridge.c10.observe cimport observed, shared, unlikely
from bridge.c10.slots cimport call_init, dealloc_of, set_constructor, set_dealloc
from bridge.c10.storage cimport READONLY, Elements
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, undefined_impl
from bridge.c10.type_meta cimport as_type, undefined_type
from bridge.caffe2.tensor.construct cimport from_arguments, unallocated
from bridge.dlpack.abi cimport DL_CPU, DLManagedTensorVersioned, DLPackExchangeAPI
from bridge.exchange.numpy cimport flat_array
from bridge.exchange_table cimport exchange_table, import_object
from bridge.wrapper cimport Wrapper, inherit_metadata

from bridge.c10.elements import ElementView
from bridge.c10.errors import (
    EnforceIndexError,
    EnforceNotMet,
    EnforceTypeError,
    EnforceValueError,
)
from bridge.c10.tensor_impl import detached
from bridge.caffe2.tensor.external_pointer import share_external_pointer


cdef object _DEFAULT_GROWTH = 40.0     # percent

cdef DLPackExchangeAPI _table


cdef int _import(DLManagedTensorVersioned* managed, void** out) noexcept:
    return import_object(managed, out, Tensor, "caffe2.Tensor")


cdef class Tensor(Wrapper):
    """A tensor that manages its memory as Caffe2's does: sized first, then allocated.

    ``Tensor()`` is undefined; ``Tensor(D)`` of sizes (0,) on a device; ``Tensor(dims,
    D)`` sized and not allocated; ``Tensor(dims, values, T=None)`` a copy of a list;
    ``Tensor(at_tensor)`` shares the TensorImpl of a contiguous at.Tensor;
    ``Tensor(caffe2_tensor, D)`` copies to a device.

    Raises EnforceNotMet: the arguments are none of these (also a TypeError), or the
    at.Tensor is not contiguous.

    Follows caffe2::Tensor, caffe2/core/tensor.h, PyTorch 1.8.1.

    >>> from bridge import caffe2
    >>> t = caffe2.Tensor([2, 3], "cpu")
    >>> t.numel(), t.storage_initialized()
    (6, False)
    >>> t.mutable_data("float32")[:] = range(6)
    >>> t.Resize(3, 2)
    >>> t.numpy().tolist()
    [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    """

    __dlpack_c_exchange_api__ = exchange_table(&_table, _import)

    def __init__(self, *args, T=None):
        cdef TensorImpl impl
        if not args and T is None:
            return
        impl = _impl_for_caffe2(args[0]) if len(args) == 1 and T is None else None
        self.impl = from_arguments(args, T) if impl is None else impl

    @staticmethod
    def _wrap(TensorImpl impl not None):
        """A caffe2.Tensor of `impl`, which must be contiguous."""
        if impl.storage is not None and not impl.flags & CONTIGUOUS:
            _refuse_strided(impl)
        return wrap(impl)

    # Sharing and copying.

    def UnsafeSharedInstance(self):
        """Another wrapper of the same TensorImpl: data and metadata are shared."""
        return wrap(self.impl)

    def Alias(self):
        """A tensor with metadata of its own over the same storage.

        Raises EnforceNotMet: nothing is allocated. Follows caffe2::Tensor::Alias.
        """
        cdef TensorImpl impl = self.impl
        impl.require_defined("Tensor.Alias")
        if not impl.storage_initialized():
            raise EnforceNotMet(
                "The tensor has no content: call mutable_data(T) first.", "Tensor.Alias",
                condition="storage_initialized()")
        return wrap(views.alias(impl, "Tensor.Alias"))

    def Clone(self):
        """A copy with memory of its own, on the same device.

        Raises EnforceNotMet: nothing is allocated. MemoryError.
        """
        cdef TensorImpl impl = self.impl
        cdef TensorImpl out
        impl.require_defined("Tensor.Clone")
        out = unallocated(impl.storage.device_type, impl.storage.device_index)
        memory.copy_from(out, impl, "Tensor.Clone")
        return wrap(out)

    def CopyFrom(self, src, async_=False):
        """Become a copy of `src`, a caffe2.Tensor or at.Tensor: sizes, type and elements.

        Stays on its device. Keeps the buffer where type and size allow, under the
        shrink flags; tensors that share it see the elements then. `async_` changes nothing:
        a copy within CUDA memory is queued on torch's current stream, and one from or to
        the host is done when this returns.

        Raises EnforceNotMet: `src` is no tensor, not contiguous, or without content.
        Follows caffe2::Tensor::CopyFrom, caffe2/core/tensor.cc.
        """
        memory.copy_from(self.impl, _tensor(src, "Tensor.CopyFrom"), "Tensor.CopyFrom")

    def ShareData(self, src):
        """Share the storage of `src`: its type, offset and elements; sizes stay.

        Raises EnforceNotMet: numbers of elements differ, or `src` has no content.
        Follows TensorImpl::ShareData.
        """
        memory.share_data(self.impl, _tensor(src, "Tensor.ShareData"), "Tensor.ShareData")

    def ShareExternalPointer(self, src, T=None, nbytes=0, deleter=None):
        """Look at memory from outside: an address (int), a buffer, or a DLPack producer.

        `T`: the element type; None is the buffer's own. `nbytes`: capacity in bytes; 0
        is what the sizes take. `deleter(address)` is called once, when neither a tensor
        nor a view needs the memory; a buffer is kept alive as long.

        Raises EnforceNotMet: no type for an address, a non-POD type, a buffer that is
        too small, read-only or not contiguous.
        Follows caffe2::Tensor::ShareExternalPointer.
        """
        share_external_pointer(self.impl, src, T, nbytes, deleter)

    def is_same(self, other):
        """Whether `other`, of either kind of wrapper, holds the same TensorImpl."""
        return self.impl is _tensor(other, "Tensor.is_same")

    def swap(self, other):
        """Exchange the TensorImpls of two caffe2.Tensors. Raises EnforceNotMet otherwise."""
        cdef Tensor that
        if not isinstance(other, Tensor):
            raise EnforceTypeError(
                f"A caffe2.Tensor is swapped with another, not with {type(other).__name__}.", "Tensor.swap")
        that = <Tensor>other
        self.impl, that.impl = that.impl, self.impl

    # Shape.

    def Resize(self, *dims):
        """New sizes, ``Resize(2, 3)`` or ``Resize([2, 3])``.

        The buffer stays if it is large enough, unless the shrink flags want it freed;
        otherwise the tensor is not allocated until `mutable_data`, and tensors that
        share the storage keep it.

        Raises EnforceNotMet: undefined, negative sizes, or too many elements.
        Follows TensorImpl::Resize.
        """
        cdef Dims sizes = parse_dims_args(dims, "Tensor.Resize")
        memory.resize(self.impl, sizes.data, sizes.n, "Tensor.Resize")

    def ResizeLike(self, src):
        """`Resize` to the sizes of `src`, a contiguous tensor of either kind."""
        cdef TensorImpl other = _tensor(src, "Tensor.ResizeLike")
        other.require_defined("Tensor.ResizeLike")
        if not other.flags & CONTIGUOUS:
            raise EnforceNotMet(
                "ResizeLike takes a contiguous tensor.",
                "Tensor.ResizeLike", condition="src.is_contiguous()")
        if other is not self.impl:
            memory.resize(self.impl, other.c_sizes, other.ndim, "Tensor.ResizeLike")

    def Reshape(self, *dims):
        """Other sizes of the same number of elements; data and buffer stay.

        Raises EnforceNotMet: the numbers of elements differ, or sizes are negative.
        Follows TensorImpl::Reshape.
        """
        cdef Dims sizes = parse_dims_args(dims, "Tensor.Reshape")
        memory.reshape(self.impl, sizes.data, sizes.n, "Tensor.Reshape")

    def Extend(self, num, growthPct=_DEFAULT_GROWTH):
        """Grow the outer dimension by `num`, keeping the data. (d0, …) -> (d0 + num, …).

        `growthPct`: percent of d0, spare room if it must reallocate; then the storage is
        the tensor's own, and those that shared the old one keep it. Many small steps
        take amortised O(1) each.

        Raises EnforceNotMet: no dimension, num < 0, not contiguous. MemoryError.
        Follows TensorImpl::Extend, c10/core/TensorImpl.h, PyTorch 1.8.1.
        """
        cdef int64_t rows = to_int64(num, "Tensor.Extend")
        if growthPct is _DEFAULT_GROWTH and memory.extend_in_place(self.impl, rows):
            return
        memory.extend(self.impl, rows, _percent(growthPct, "Tensor.Extend"), "Tensor.Extend")

    def ExtendTo(self, num, growthPct=40.0):
        """Grow the outer dimension to `num`, keeping the data; otherwise as `Extend`.

        Raises EnforceNotMet: besides what Extend refuses, num < size(0), growthPct < 0.
        """
        cdef int64_t rows = to_int64(num, "Tensor.ExtendTo")
        cdef double percent = _percent(growthPct, "Tensor.ExtendTo")
        cdef TensorImpl impl = self.impl
        impl.require_defined("Tensor.ExtendTo")
        if impl.ndim < 1:
            raise EnforceNotMet(
                "A tensor without dimensions has no outer one to extend.",
                "Tensor.ExtendTo", condition="dim() >= 1")
        if percent < 0:
            raise EnforceNotMet(
                f"Growth is not negative, as {percent} percent is.",
                "Tensor.ExtendTo", condition="growthPct >= 0")
        if rows < impl.c_sizes[0]:
            raise EnforceNotMet(
                f"ExtendTo adds rows, and {rows} are fewer than {impl.c_sizes[0]}. ShrinkTo "
                "takes rows away.", "Tensor.ExtendTo", condition="num >= size(0)")
        memory.extend(impl, rows - impl.c_sizes[0], percent, "Tensor.ExtendTo")

    def ShrinkTo(self, outer_dim):
        """Shrink the outer dimension, keeping data and buffer. (d0, …) -> (outer_dim, …).

        Raises EnforceNotMet: the storage is shared (call Resize instead), no
        dimension, outer_dim > size(0) or negative, not contiguous.
        Follows caffe2::Tensor::ShrinkTo.
        """
        memory.shrink_to(self.impl, to_int64(outer_dim, "Tensor.ShrinkTo"), "Tensor.ShrinkTo")

    def Shrink(self, outer_dim):
        """The same as `ShrinkTo`."""
        memory.shrink_to(self.impl, to_int64(outer_dim, "Tensor.Shrink"), "Tensor.Shrink")

    def ReserveSpace(self, outer_dim):
        """Have a buffer for `outer_dim` rows; sizes stay, data goes if the buffer is new.

        Resize within it keeps it from then on, whatever the shrink flags say.
        Raises EnforceNotMet: the storage is shared, no dimension, not contiguous.
        Follows TensorImpl::ReserveSpace.
        """
        memory.reserve_space(
            self.impl, to_int64(outer_dim, "Tensor.ReserveSpace"), "Tensor.ReserveSpace")

    def FreeMemory(self):
        """Let the buffer go; sizes and type stay. Who shares the storage keeps it.

        Follows TensorImpl::FreeMemory.
        """
        memory.free_memory(self.impl, "Tensor.FreeMemory")

    # Data.

    def mutable_data(self, T=None):
        """The elements as a flat view to write: `numel()` of them, of type `T`; zero-copy.

        Allocates where there is no buffer, or none that fits; new POD elements are not
        set. On the CPU a NumPy array, elsewhere a flat at.Tensor, for non-POD types a
        mutable sequence. It stays valid whatever the tensor does next.

        Raises EnforceNotMet: undefined, read-only memory, no type. MemoryError.
        Follows TensorImpl::mutable_data.
        """
        cdef TensorImpl impl = self.impl
        memory.mutable_data(
            impl, impl.c_dtype if T is None else as_type(T), "Tensor.mutable_data")
        return _flat(impl, True, "Tensor.mutable_data")

    def data(self, T=None):
        """The elements as a flat view, as `mutable_data` gives; allocates nothing.

        Not writable where the memory is read-only.
        Raises EnforceNotMet: another type than `T`, none yet, or nothing allocated.
        """
        cdef TensorImpl impl = self.impl
        impl.require_defined("Tensor.data")
        if impl.c_dtype is undefined_type:
            raise EnforceNotMet(
                "The tensor has no element type yet; call mutable_data(T) first.", "Tensor.data",
                condition="dtype_initialized()")
        if T is not None and as_type(T) is not impl.c_dtype:
            raise EnforceNotMet(
                f"The tensor holds {impl.c_dtype} and not {as_type(T)}. mutable_data(T) changes "
                "the type.", "Tensor.data", condition="IsType(T)")
        return _flat(impl, not impl.storage.flags & READONLY, "Tensor.data")

    def raw_mutable_data(self, T=None):
        """The address of the first element, allocated as by `mutable_data`; 0 for no elements.

        Raises EnforceNotMet: undefined, or no type. MemoryError.
        """
        cdef TensorImpl impl = self.impl
        memory.mutable_data(
            impl, impl.c_dtype if T is None else as_type(T), "Tensor.raw_mutable_data")
        return <uintptr_t>impl.data("Tensor.raw_mutable_data") if impl.c_numel else 0

    def raw_data(self):
        """The address of the first element; 0 for no elements.

        Raises EnforceNotMet: undefined, no type yet, or nothing allocated.
        """
        cdef char* address = self.impl.data("Tensor.raw_data")
        return <uintptr_t>address if self.impl.c_numel else 0

    # Metadata.

    def dim(self, i=None):
        """Number of dimensions. (With `i`, the old name of `size(i)`.)"""
        self.impl.require_defined("Tensor.dim")
        if i is not None:
            _renamed("dim(i)", "size(i)")
            return self.size(i)
        return self.impl.ndim

    def size(self, i=None):
        """The size of dimension `i`, negative from the end. (Without, the old name of numel.)

        Raises EnforceNotMet, also an IndexError: there is no such dimension.
        """
        self.impl.require_defined("Tensor.size")
        if i is None:
            _renamed("size()", "numel()")
            return self.impl.c_numel
        return self.impl.c_sizes[_dim(self.impl, i, "Tensor.size")]

    def stride(self, i):
        """The stride of dimension `i`, in elements, negative from the end."""
        self.impl.require_defined("Tensor.stride")
        return self.impl.c_strides()[_dim(self.impl, i, "Tensor.stride")]

    def capacity_nbytes(self):
        """Bytes that the storage has."""
        self.impl.require_defined("Tensor.capacity_nbytes")
        return self.impl.storage.c_nbytes

    def is_contiguous(self):
        """Whether the elements lie row-major without gaps."""
        self.impl.require_defined("Tensor.is_contiguous")
        return (self.impl.flags & CONTIGUOUS) != 0

    def IsType(self, T):
        """Whether the elements are of the type that `T` names."""
        return as_type(T) is self.impl.c_dtype

    def GetDevice(self):
        """The Device that the memory is or will be on."""
        self.impl.require_defined("Tensor.GetDevice")
        return device_of(self.impl.storage.device_type, self.impl.storage.device_index)

    def GetDeviceType(self):
        """The DeviceType of the same."""
        return self.GetDevice().type

    def storage_initialized(self):
        """Whether there is memory for the elements, or none is needed."""
        self.impl.require_defined("Tensor.storage_initialized")
        return self.impl.storage_initialized()

    def dtype_initialized(self):
        """Whether there is an element type."""
        return self.impl.c_dtype is not undefined_type

    def dim32(self, i):
        """`size(i)`, which must fit an int32. Raises EnforceNotMet otherwise."""
        cdef int64_t size
        self.impl.require_defined("Tensor.dim32")
        size = self.impl.c_sizes[_dim(self.impl, i, "Tensor.dim32", False)]
        if size >= 0x7FFFFFFF:
            raise EnforceNotMet(
                f"Size {size} does not fit an int32; use size(i).",
                "Tensor.dim32", condition="size(i) < 2**31 - 1")
        return size

    def size_from_dim(self, k):
        """The product of the sizes from dimension `k` on."""
        return _product(self.impl, k, self.impl.ndim, "Tensor.size_from_dim")

    def size_to_dim(self, k):
        """The product of the sizes before dimension `k`."""
        return _product(self.impl, 0, k, "Tensor.size_to_dim")

    def size_between_dim(self, k, l):  # no-cython-lint
        """The product of the sizes between dimensions `k` and `l`, both left out."""
        cdef int64_t a = to_int64(k, "Tensor.size_between_dim")
        cdef int64_t b = to_int64(l, "Tensor.size_between_dim")
        cdef int n = self.impl.ndim
        if a < 0 or b < 0 or a >= n or b >= n:
            self.impl.require_defined("Tensor.size_between_dim")
            raise EnforceIndexError(
                f"Dimensions {k} and {l} are not both among the {n}.",
                "Tensor.size_between_dim", condition="k < dim(), l < dim()")
        if a < b:
            return _product(self.impl, a + 1, b, "Tensor.size_between_dim")
        return _product(self.impl, b + 1, a, "Tensor.size_between_dim") if a > b else 1

    def canonical_axis_index(self, i):
        """Dimension `i` counted from the front; `i` may be negative.

        Raises EnforceNotMet, also an IndexError: there is no such dimension.
        """
        return _dim(self.impl, i, "Tensor.canonical_axis_index")

    def DebugString(self):
        """Item size, type and sizes in a sentence, as caffe2::Tensor::DebugString has it."""
        impl = self.impl
        impl.require_defined("Tensor.DebugString")
        dims = "".join(f"{size}," for size in impl.sizes())
        return (f"A Tensor of item size {impl.c_dtype.itemsize} and type {impl.c_dtype.name} and "
                f"dimension ({dims}).")

    # Old names.

    def ndim(self):
        """The old name of `dim()`; works, with a DeprecationWarning."""
        _renamed("ndim()", "dim()")
        return self.dim()

    def dims(self):
        """The old name of `sizes()`; works, with a DeprecationWarning."""
        _renamed("dims()", "sizes()")
        return self.sizes()

    def meta(self):
        """The old name of `dtype()`; works, with a DeprecationWarning."""
        _renamed("meta()", "dtype()")
        return self.dtype()

    def __bool__(self):
        return self.impl.storage is not None

    def __copy__(self):
        raise EnforceTypeError(_NO_COPY, "copy.copy")

    def __deepcopy__(self, memo):
        if self.impl.storage is None:
            return wrap(undefined_impl)
        return self.Clone()

    def __repr__(self):
        return _shown(self.impl)


cdef str _NO_COPY = (
    "A caffe2.Tensor is not copied without saying how: UnsafeSharedInstance() shares data and "
    "metadata, Alias() shares data, Clone() copies.")


cdef Tensor wrap(TensorImpl impl):
    """A caffe2.Tensor of `impl`, which is contiguous; every new one comes from here."""
    cdef Tensor tensor = Tensor.__new__(Tensor)
    tensor.impl = impl
    return tensor


cdef int _refuse_strided(TensorImpl impl) except -1:
    raise EnforceNotMet(
        f"Caffe2-style tensors are contiguous, and this one has sizes {impl.sizes().vec()} with "
        f"strides {impl.strides().vec()}. Call contiguous() first.",
        "caffe2.Tensor", condition="is_contiguous()")


cdef TensorImpl _impl_for_caffe2(object source):
    """The TensorImpl of an at.Tensor, to share; None where `source` is no tensor of ours."""
    cdef TensorImpl impl
    if isinstance(source, Wrapper):
        if isinstance(source, Tensor):
            raise EnforceTypeError(_NO_COPY, "caffe2.Tensor")
        impl = (<Wrapper>source).impl
        if not impl.flags & CONTIGUOUS and impl.storage is not None:
            _refuse_strided(impl)
        if unlikely(observed):
            shared("caffe2.Tensor", source, "caffe2.Tensor",
                   impl.c_numel * impl.c_dtype.itemsize)
        return impl
    return None


cdef TensorImpl _tensor(object source, str caller):
    """The TensorImpl of a tensor of either kind."""
    if not isinstance(source, Wrapper):
        raise EnforceTypeError(
            f"A caffe2.Tensor or at.Tensor is needed, not {type(source).__name__}. "
            "bridge.from_dlpack(x) makes an at.Tensor of any framework's tensor.", caller)
    return (<Wrapper>source).impl


cdef double _percent(object value, str caller) except? -1:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        try:
            # float() takes texts, too, and, before NumPy 2.4, arrays of one element.
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


cdef int64_t _dim(TensorImpl impl, object i, str caller, bint negative=True) except -1:
    cdef int64_t dim = to_int64(i, caller)
    impl.require_defined(caller)
    if dim >= impl.ndim or dim < (-impl.ndim if negative else 0):
        raise EnforceIndexError(
            f"Dimension {i} is out of range for {impl.ndim} dimensions.", caller, condition="i < dim()")
    return dim + impl.ndim if dim < 0 else dim


cdef object _product(TensorImpl impl, object first, object end, str caller):
    cdef int64_t a = to_int64(first, caller)
    cdef int64_t b = to_int64(end, caller)
    cdef int64_t i
    impl.require_defined(caller)
    if a < 0 or b > impl.ndim or a > impl.ndim or b < 0:
        raise EnforceIndexError(
            f"Dimension {b if a == 0 else a} is out of range for {impl.ndim} dimensions.", caller,
            condition="k <= dim()")
    product = 1
    for i in range(a, b):
        product *= impl.c_sizes[i]
    return product


def _renamed(old, new):
    # compiled code has no frames, so the first is the caller's
    warnings.warn(
        f"caffe2.Tensor.{old} is the old name of {new}.", DeprecationWarning, stacklevel=1)


cdef object _flat(TensorImpl impl, bint writable, str caller):
    """The flat view of the elements that `data` and `mutable_data` give."""
    if not impl.c_dtype.c_is_pod:
        impl.data(caller)
        if impl.c_numel == 0:
            return ElementView([], impl.c_dtype, 0, 0)
        return ElementView(
            (<Elements>impl.storage.ctx).items, impl.c_dtype, impl.offset, impl.c_numel)
    if impl.storage.device_type == DL_CPU:
        if impl.c_dtype.numpy is not None:
            return flat_array(impl, writable, caller)
    return _flat_tensor(impl)


def _flat_tensor(TensorImpl impl):
    from bridge.at.tensor import Tensor as AtTensor
    cdef int64_t n = impl.c_numel
    cdef TensorImpl flat = views.view(impl, &n, 1, "Tensor.data")
    # through a Storage apart, which is no share of the tensor's
    return AtTensor._wrap(detached(flat))


def _shown(TensorImpl impl):
    if impl.storage is None:
        return "caffe2.Tensor()"
    state = "" if impl.storage_initialized() else ", not allocated"
    dtype = impl.c_dtype if impl.c_dtype else "no type yet"
    return (f"caffe2.Tensor(sizes={impl.sizes().vec()}, dtype={dtype}, "
            f"device='{impl.device()}'{state})")


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
