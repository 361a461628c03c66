# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""at.Tensor, the ATen-style wrapper: strided views here, every other operation by torch."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uintptr_t

from bridge.at.indexing cimport index as view_of_index
from bridge.at.indexing cimport require_dim, sliced
from bridge.at.memory cimport as_other_type, look_at, resize
from bridge.c10.array_ref cimport Dims, array_ref_of, parse_dims, parse_dims_args, to_int64
from bridge.c10.copy cimport contiguous_copy
from bridge.c10.device cimport device_of
from bridge.c10.observe cimport observed, shared, unlikely
from bridge.c10.storage cimport READONLY
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, wrap_dim
from bridge.c10 cimport views
from bridge.dlpack.abi cimport DLManagedTensorVersioned, DLPackExchangeAPI
from bridge.exchange_table cimport exchange_table, import_object
from bridge.wrapper cimport (
    Wrapper,
    add_to_class,
    inherit_metadata,
    keep_the_dead_of,
    new_at,
    set_construct,
    slow_construct,
)

from bridge.at import data, torch_ops, values
from bridge.c10.errors import (
    EnforceBufferError,
    EnforceNotMet,
    EnforceTypeError,
    EnforceValueError,
)

cdef DLPackExchangeAPI _table


cdef int _import(DLManagedTensorVersioned* managed, void** out) noexcept:
    return import_object(managed, out, Tensor, "at.Tensor")


cdef class Tensor(Wrapper):
    """A strided tensor over the memory of anybody; the ATen-style API.

    ``at.Tensor(t)`` of either kind of wrapper shares the TensorImpl: data and
    metadata. bridge.from_dlpack and the factories make new ones.

    Besides the methods below, every tensor method of torch runs torch's operation
    on the same memory and gives back an at.Tensor.

    Raises EnforceNotMet: a caffe2.Tensor without memory or type, or of a non-POD
    type; also a TypeError, for anything but a wrapper.

    Follows at::Tensor, aten/src/ATen/core/TensorBody.h, PyTorch 1.8.1.

    >>> import bridge
    >>> x = bridge.at.zeros(2, 3)
    >>> y = x.transpose(0, 1)
    >>> y[0, 1] = 7.0
    >>> x.tolist(), y.sizes(), y.strides()
    ([[0.0, 0.0, 0.0], [7.0, 0.0, 0.0]], ArrayRef([3, 2]), ArrayRef([1, 3]))
    """

    __dlpack_c_exchange_api__ = exchange_table(&_table, _import)

    def __init__(self, source=None, /):
        if source is None:
            return
        self.impl = _impl_for_at(source)

    @staticmethod
    def _wrap(TensorImpl impl not None):
        """An at.Tensor of `impl`."""
        return wrap(impl)

    # Metadata.

    def size(self, dim=None):
        """The size of dimension `dim`, negative from the end; without `dim` all sizes."""
        self.impl.require_defined("Tensor.size")
        if dim is None:
            return self.impl.sizes_view()
        return self.impl.c_sizes[_dim(dim, self.impl, "Tensor.size")]

    def stride(self, dim=None):
        """The stride of dimension `dim`, in elements; without `dim` all strides."""
        self.impl.require_defined("Tensor.stride")
        if dim is None:
            return array_ref_of(self.impl.c_strides(), self.impl.ndim)
        return self.impl.c_strides()[_dim(dim, self.impl, "Tensor.stride")]

    @property
    def ndim(self):
        """Number of dimensions."""
        self.impl.require_defined("Tensor.ndim")
        return self.impl.ndim

    def dim(self):
        """Number of dimensions."""
        self.impl.require_defined("Tensor.dim")
        return self.impl.ndim

    def device(self):
        """The Device that the memory is on."""
        self.impl.require_defined("Tensor.device")
        return device_of(self.impl.storage.device_type, self.impl.storage.device_index)

    def storage_offset(self):
        """Elements from the beginning of the storage to the first element."""
        self.impl.require_defined("Tensor.storage_offset")
        return self.impl.offset

    def is_contiguous(self, memory_format=None):
        """Whether the elements lie row-major without gaps, or as torch's `memory_format` has it."""
        self.impl.require_defined("Tensor.is_contiguous")
        if memory_format is not None:
            return torch_ops.call_method("is_contiguous", self, memory_format=memory_format)
        return (self.impl.flags & CONTIGUOUS) != 0

    def data_ptr(self):
        """The address of the first element; 0 where there are none."""
        cdef char* address = self.impl.data("Tensor.data_ptr")
        return <uintptr_t>address if self.impl.c_numel else 0

    @property
    def readonly(self):
        """Whether the memory must not be written."""
        return self.impl.storage is not None and (self.impl.storage.flags & READONLY) != 0

    # Views: all share the memory, none copies.

    def view(self, *sizes):
        """The same elements in other sizes, one of which may be -1; or, with one element
        type, the same bytes as that type.

        Raises EnforceNotMet: the number of elements differs, or the strides do not
        allow it without a copy.
        """
        cdef Dims dims
        cdef TensorImpl retyped
        if len(sizes) == 1 and not isinstance(sizes[0], (int, tuple, list)):
            retyped = as_other_type(self.impl, sizes[0])
            if retyped is not None:
                return wrap(retyped)
        dims = parse_dims_args(sizes, "Tensor.view")
        return wrap(views.view(self.impl, dims.data, dims.n, "Tensor.view"))

    def reshape(self, *sizes):
        """The same elements in other sizes; a view if the strides allow it, else a copy."""
        cdef Dims dims = parse_dims_args(sizes, "Tensor.reshape")
        cdef TensorImpl impl = self.impl
        try:
            return wrap(views.view(impl, dims.data, dims.n, "Tensor.reshape"))
        except ValueError:
            raise
        except EnforceNotMet:
            impl = contiguous_copy(impl, "Tensor.reshape")
        return wrap(views.view(impl, dims.data, dims.n, "Tensor.reshape"))

    def as_strided(self, size, stride, storage_offset=None):
        """A view of any sizes and strides (elements) within the storage.

        Raises EnforceNotMet: it reaches outside.
        """
        cdef Dims sizes = parse_dims(size, "Tensor.as_strided")
        cdef Dims strides = parse_dims(stride, "Tensor.as_strided")
        cdef int64_t offset
        self.impl.require_defined("Tensor.as_strided")
        if sizes.n != strides.n:
            raise EnforceNotMet(
                f"There are {sizes.n} sizes and {strides.n} strides.", "Tensor.as_strided",
                condition="len(size) == len(stride)")
        offset = self.impl.offset if storage_offset is None else \
            to_int64(storage_offset, "Tensor.as_strided")
        return wrap(views.as_strided(
            self.impl, sizes.data, strides.data, sizes.n, offset, "Tensor.as_strided"))

    def transpose(self, dim0, dim1):
        """A view with two dimensions swapped."""
        return wrap(views.transpose(
            self.impl, to_int64(dim0, "Tensor.transpose"), to_int64(dim1, "Tensor.transpose"),
            "Tensor.transpose"))

    def permute(self, *dims):
        """A view with the dimensions in another order."""
        cdef Dims order = parse_dims_args(dims, "Tensor.permute")
        return wrap(views.permute(self.impl, order.data, order.n, "Tensor.permute"))

    def t(self):
        """The transpose of a tensor of at most two dimensions."""
        self.impl.require_defined("Tensor.t")
        if self.impl.ndim > 2:
            raise EnforceNotMet(
                f"t() is for at most two dimensions, and there are {self.impl.ndim}. "
                "Use transpose(a, b) or permute().", "Tensor.t", condition="dim() <= 2")
        if self.impl.ndim < 2:
            return wrap(views.alias(self.impl, "Tensor.t"))
        return wrap(views.transpose(self.impl, 0, 1, "Tensor.t"))

    def select(self, dim, index):
        """A view of one index of a dimension, which goes."""
        return wrap(views.select(
            self.impl, to_int64(dim, "Tensor.select"), to_int64(index, "Tensor.select"),
            "Tensor.select"))

    def slice(self, dim=0, start=None, end=None, step=1):
        """A view of every `step`-th index of a dimension from `start` to before `end`."""
        return wrap(sliced(self.impl, to_int64(dim, "Tensor.slice"), start, end,
                           to_int64(step, "Tensor.slice"), "Tensor.slice"))

    def narrow(self, dim, start, length):
        """A view of `length` indices of a dimension from `start` on."""
        cdef TensorImpl impl = self.impl
        cdef int64_t d, n = to_int64(length, "Tensor.narrow")
        cdef int64_t first = to_int64(start, "Tensor.narrow")
        d = _dim(dim, impl, "Tensor.narrow")
        if first < 0:
            first += impl.c_sizes[d]
        if first < 0 or n < 0 or first > impl.c_sizes[d] - n:
            raise EnforceNotMet(
                f"{length} indices from {start} on are not in dimension {d} of size "
                f"{impl.c_sizes[d]}.", "Tensor.narrow", condition="start + length <= size(dim)")
        return wrap(views.slice_dim(impl, d, first, n, 1, "Tensor.narrow"))

    def squeeze(self, dim=None):
        """A view without the dimensions of size one, or without dimension `dim` if of size one."""
        if isinstance(dim, (tuple, list)):
            return wrap(_squeezed(self.impl, dim))
        return wrap(views.squeeze(
            self.impl, 0 if dim is None else to_int64(dim, "Tensor.squeeze"), dim is None,
            "Tensor.squeeze"))

    def unsqueeze(self, dim):
        """A view with a new dimension of size one."""
        return wrap(views.unsqueeze(
            self.impl, to_int64(dim, "Tensor.unsqueeze"), "Tensor.unsqueeze"))

    def expand(self, *sizes):
        """A view with dimensions of size one repeated; -1 keeps a size."""
        cdef Dims dims = parse_dims_args(sizes, "Tensor.expand")
        return wrap(views.expand(self.impl, dims.data, dims.n, "Tensor.expand"))

    def flatten(self, start_dim=0, end_dim=-1):
        """The dimensions from one to another as one; a view if strides allow it, else a copy."""
        cdef int64_t first = to_int64(start_dim, "Tensor.flatten")
        cdef int64_t last = to_int64(end_dim, "Tensor.flatten")
        try:
            return wrap(views.flatten(self.impl, first, last, "Tensor.flatten"))
        except (ValueError, IndexError):
            raise
        except EnforceNotMet:
            self.impl.require_defined("Tensor.flatten")
        return wrap(views.flatten(
            contiguous_copy(self.impl, "Tensor.flatten"), first, last, "Tensor.flatten"))

    def diagonal(self, offset=0, dim1=0, dim2=1):
        """A view of a diagonal, as a new last dimension."""
        return wrap(views.diagonal(
            self.impl, to_int64(offset, "Tensor.diagonal"), to_int64(dim1, "Tensor.diagonal"),
            to_int64(dim2, "Tensor.diagonal"), "Tensor.diagonal"))

    def unfold(self, dimension, size, step):
        """A view of windows of `size` along a dimension, `step` apart, as a new last dimension."""
        return wrap(views.unfold(
            self.impl, to_int64(dimension, "Tensor.unfold"), to_int64(size, "Tensor.unfold"),
            to_int64(step, "Tensor.unfold"), "Tensor.unfold"))

    def alias(self):
        """Another tensor of the same memory with metadata of its own."""
        return wrap(views.alias(self.impl, "Tensor.alias"))

    def detach(self):
        """The same as `alias`: nothing here records gradients."""
        return wrap(views.alias(self.impl, "Tensor.detach"))

    def __getitem__(self, key):
        cdef TensorImpl impl
        if type(key) is slice and (<object>key).step is None:
            return wrap(sliced(self.impl, 0, (<object>key).start, (<object>key).stop, 1,
                               "Tensor.__getitem__"))
        impl = view_of_index(self.impl, key)
        if impl is None:
            return data.advanced_index(self, key)
        return wrap(impl)

    def __setitem__(self, key, value):
        cdef TensorImpl impl
        self.impl.writable("Tensor.__setitem__")
        impl = view_of_index(self.impl, key)
        if impl is None:
            data.advanced_assign(self, key, value)
        else:
            data.assign(wrap(impl), value)

    def __delitem__(self, key):
        raise EnforceTypeError(
            "Elements of a tensor are not deleted. Use a view, or index with what stays.",
            "Tensor.__delitem__")

    def __iter__(self):
        cdef int64_t i
        self.impl.require_defined("Tensor.__iter__")
        if self.impl.ndim == 0:
            raise EnforceTypeError(
                "A 0-d tensor has nothing to iterate over; use item().",
                "Tensor.__iter__", condition="dim() > 0")
        return iter([wrap(views.select(self.impl, 0, i, "Tensor.__iter__"))
                     for i in range(self.impl.c_sizes[0])])

    # Data.

    def clone(self, *, memory_format=None):
        """A copy with memory of its own, on the same device.

        Row-major, or as torch's `memory_format` has it.
        """
        if memory_format is not None:
            return torch_ops.call_method("clone", self, memory_format=memory_format)
        return wrap(contiguous_copy(self.impl, "Tensor.clone"))

    def contiguous(self, memory_format=None):
        """This tensor if it is contiguous, else a row-major copy; or as torch's
        `memory_format` has it."""
        self.impl.require_defined("Tensor.contiguous")
        if memory_format is not None:
            return torch_ops.call_method("contiguous", self, memory_format=memory_format)
        if self.impl.flags & CONTIGUOUS:
            return self
        return wrap(contiguous_copy(self.impl, "Tensor.contiguous"))

    def copy_(self, src, non_blocking=False):
        """Copy the elements of `src` here, converted and broadcast; gives this tensor."""
        return data.copy_(self, src)

    def fill_(self, value):
        """Set every element to a number; gives this tensor."""
        return data.fill_(self, value)

    def zero_(self):
        """Set every element to zero; gives this tensor."""
        return data.zero_(self)

    def item(self):
        """The one element as a Python number. EnforceNotMet, also a ValueError: not one."""
        return values.item(self.impl)

    def tolist(self):
        """The elements as nested lists of Python numbers; a number for a 0-d tensor."""
        return values.tolist(self.impl)

    def to(self, *args, **kwargs):
        """This tensor on device `D` and of type `T` (either or both); itself if it is so already.

        ``to(T)``, ``to(D)``, ``to(D, T)``, ``to(options)``, ``to(other)``, each then with
        `non_blocking` and `copy`, by position or name: as ATen's to(). copy=True: never itself.
        Raises EnforceNotMet: what is given names neither, or the device is not here.
        """
        return data.to(self, *args, **kwargs)

    def cpu(self):
        """This tensor in host memory; itself if it is there already."""
        return data.to(self, "cpu")

    def cuda(self, device=None):
        """This tensor on a CUDA device, the current one by default; itself if there already."""
        return data.to(self, "cuda" if device is None else device)

    def pin_memory(self):
        """A copy in page-locked host memory; itself if it is there already."""
        return data.to(self, "cuda_host")

    def resize_(self, *sizes):
        """Other sizes in place, row-major; elements that are there stay, new ones are not set.

        Raises EnforceNotMet: more bytes than memory from outside has.
        """
        resize(self.impl, parse_dims_args(sizes, "Tensor.resize_"))
        return self

    def set_(self, source=None, storage_offset=0, size=None, stride=None):
        """Look at the memory of another tensor or Storage; without one at none.

        `size` and `stride` (elements; row-major by default) choose a view of the source's
        storage from element `storage_offset` on; without them it is seen as the source sees it,
        a Storage from end to end. Gives this tensor.

        Raises EnforceNotMet: a source of another element type, a view that reaches outside, an
        offset or strides without a size.
        """
        look_at(self.impl, source, storage_offset, size, stride)
        return self

    def equal(self, other):
        """Whether `other` has the same sizes and elements."""
        return values.equal(self.impl, other)

    def __bool__(self):
        self.impl.require_defined("Tensor.__bool__")
        if self.impl.c_numel != 1:
            raise EnforceValueError(
                f"{self.impl.c_numel} elements are neither true nor false. Use any() or all().", "Tensor.__bool__",
                condition="numel() == 1")
        return bool(values.item(self.impl))

    def __int__(self):
        return int(values.item(self.impl))

    def __float__(self):
        return float(values.item(self.impl))

    def __complex__(self):
        return complex(values.item(self.impl))

    def __index__(self):
        self.impl.require_defined("Tensor.__index__")
        value = values.item(self.impl) if self.impl.c_numel == 1 else None
        if not isinstance(value, int):
            raise EnforceTypeError(
                f"One integer serves as an index, not {self.impl.c_numel} of "
                f"{self.impl.c_dtype}.", "Tensor.__index__")
        return int(value)

    def __contains__(self, value):
        found = torch_ops.binary("eq", self, value)
        if found is NotImplemented:
            raise EnforceTypeError(
                f"A tensor has numbers in it, and no {type(value).__name__}.",
                "Tensor.__contains__")
        return bool(found.any())

    def __repr__(self):
        return values.shown(self.impl)

    def __format__(self, spec):
        # a format is that of the number, as torch has it
        return format(values.item(self.impl), spec) if spec else values.shown(self.impl)

    def __copy__(self):
        return wrap(views.alias(self.impl, "Tensor.__copy__"))

    def __deepcopy__(self, memo):
        if self.impl.storage is None:
            return wrap(self.impl)
        return wrap(contiguous_copy(self.impl, "Tensor.__deepcopy__"))

    # Every other operation, by torch.

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return torch_ops.torch_function(func, args, kwargs)

    __array_priority__ = 1000

    def __hash__(self):
        return <Py_ssize_t>(<uintptr_t><void*>self >> 4)

    def __eq__(self, other):
        return torch_ops.binary("eq", self, other)

    def __ne__(self, other):
        return torch_ops.binary("ne", self, other)

    def __lt__(self, other):
        return torch_ops.binary("lt", self, other)

    def __le__(self, other):
        return torch_ops.binary("le", self, other)

    def __gt__(self, other):
        return torch_ops.binary("gt", self, other)

    def __ge__(self, other):
        return torch_ops.binary("ge", self, other)

    def __neg__(self):
        return torch_ops.call_method("neg", self)

    def __pos__(self):
        return self

    def __abs__(self):
        return torch_ops.call_method("abs", self)

    def __invert__(self):
        return torch_ops.call_method("bitwise_not", self)

    def __pow__(self, other, modulo):
        return _binary("pow", self, other) if modulo is None else NotImplemented

    def __rpow__(self, other, modulo):
        return _binary("pow", other, self) if modulo is None else NotImplemented

    def __ipow__(self, other):
        return _in_place("pow_", self, other)

    def __matmul__(self, other):
        return _binary("matmul", self, other)

    def __rmatmul__(self, other):
        return _binary("matmul", other, self)

    def __add__(self, other):
        return _binary("add", self, other)

    def __radd__(self, other):
        return _binary("add", other, self)

    def __iadd__(self, other):
        return _in_place("add_", self, other)

    def __sub__(self, other):
        return _binary("sub", self, other)

    def __rsub__(self, other):
        return _binary("sub", other, self)

    def __isub__(self, other):
        return _in_place("sub_", self, other)

    def __mul__(self, other):
        return _binary("mul", self, other)

    def __rmul__(self, other):
        return _binary("mul", other, self)

    def __imul__(self, other):
        return _in_place("mul_", self, other)

    def __truediv__(self, other):
        return _binary("div", self, other)

    def __rtruediv__(self, other):
        return _binary("div", other, self)

    def __itruediv__(self, other):
        return _in_place("div_", self, other)

    def __floordiv__(self, other):
        return _binary("floor_divide", self, other)

    def __rfloordiv__(self, other):
        return _binary("floor_divide", other, self)

    def __ifloordiv__(self, other):
        return _in_place("floor_divide_", self, other)

    def __mod__(self, other):
        return _binary("remainder", self, other)

    def __rmod__(self, other):
        return _binary("remainder", other, self)

    def __imod__(self, other):
        return _in_place("remainder_", self, other)

    def __and__(self, other):
        return _binary("bitwise_and", self, other)

    def __rand__(self, other):
        return _binary("bitwise_and", other, self)

    def __iand__(self, other):
        return _in_place("bitwise_and_", self, other)

    def __or__(self, other):
        return _binary("bitwise_or", self, other)

    def __ror__(self, other):
        return _binary("bitwise_or", other, self)

    def __ior__(self, other):
        return _in_place("bitwise_or_", self, other)

    def __xor__(self, other):
        return _binary("bitwise_xor", self, other)

    def __rxor__(self, other):
        return _binary("bitwise_xor", other, self)

    def __ixor__(self, other):
        return _in_place("bitwise_xor_", self, other)

    def __lshift__(self, other):
        return _binary("bitwise_left_shift", self, other)

    def __rlshift__(self, other):
        return _binary("bitwise_left_shift", other, self)

    def __ilshift__(self, other):
        return _in_place("bitwise_left_shift_", self, other)

    def __rshift__(self, other):
        return _binary("bitwise_right_shift", self, other)

    def __rrshift__(self, other):
        return _binary("bitwise_right_shift", other, self)

    def __irshift__(self, other):
        return _in_place("bitwise_right_shift_", self, other)


cdef object _binary(str name, object a, object b):
    return torch_ops.binary(name, a, b)


cdef object _in_place(str name, object a, object b):
    return torch_ops.call_method(name, a, b)


cdef TensorImpl _squeezed(TensorImpl impl, object dims):
    """A view without those of `dims` that are of size one."""
    cdef TensorImpl out = views.alias(impl, "Tensor.squeeze")
    for dim in sorted(
            {wrap_dim(to_int64(dim, "Tensor.squeeze"), impl.ndim, "Tensor.squeeze")
             for dim in dims}, reverse=True):
        out = views.squeeze(out, dim, False, "Tensor.squeeze")
    return out


cdef int64_t _dim(object dim, TensorImpl impl, str caller) except -1:
    """A dimension of `impl`, which has some, counted from the front."""
    cdef int64_t d = to_int64(dim, caller)
    require_dim(impl, caller)
    return wrap_dim(d, impl.ndim, caller)


cdef TensorImpl _impl_for_at(object source):
    cdef TensorImpl impl
    if not isinstance(source, Wrapper):
        raise EnforceTypeError(
            f"at.Tensor is made of an at.Tensor or a caffe2.Tensor, not of "
            f"{type(source).__name__}. bridge.from_dlpack(x) takes tensors of any framework, "
            "at.tensor(data) takes numbers.", "at.Tensor")
    impl = (<Wrapper>source).impl
    if impl.storage is None or (
            impl.c_dtype.c_is_pod and (impl.storage.data != NULL or impl.c_numel == 0)):
        if unlikely(observed):
            shared("at.Tensor", source, "at.Tensor", impl.c_numel * impl.c_dtype.itemsize)
        return impl
    if not impl.c_dtype:
        raise EnforceNotMet(
            "The caffe2.Tensor has no element type yet. Call mutable_data(T) on it first.", "at.Tensor",
            condition="dtype_initialized()")
    if not impl.c_dtype.c_is_pod:
        raise EnforceBufferError(
            f"Elements of the non-POD type {impl.c_dtype} are for caffe2.Tensor only; ATen "
            "tensors hold plain memory.", "at.Tensor", condition="dtype().is_pod")
    raise EnforceNotMet(
        "The caffe2.Tensor is not allocated. Call mutable_data(T) on it first.", "at.Tensor",
        condition="storage_initialized()")


cdef Tensor wrap(TensorImpl impl):
    """An at.Tensor of `impl`; every new one comes from here."""
    return <Tensor>new_at(impl)


cdef PyObject* _construct(
    PyObject* cls, PyObject** args, size_t nargsf, PyObject* names,
) except NULL:
    cdef Tensor tensor = Tensor.__new__(Tensor)
    if names == NULL and (nargsf & <size_t>0xFFFF) == 1:
        tensor.impl = _impl_for_at(<object>args[0])
    else:
        slow_construct(tensor, args, nargsf, names)
    Py_INCREF(tensor)
    return <PyObject*>tensor


def install(name, operation):
    """Return the class a method or property that it has not of its own (bridge.at calls it)."""
    if not hasattr(Tensor, name):
        add_to_class(Tensor, name, operation)


set_construct(Tensor, _construct)
inherit_metadata(Tensor)
keep_the_dead_of(Tensor)
