# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""at.Tensor, the ATen-style wrapper: views implemented here, all other operations run by torch."""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uintptr_t

from bridge.at.conversion cimport convert_to, view_as_dtype
from bridge.at.element_writes cimport copy_into, fill, zero
from bridge.at.indexing cimport advanced_assign, advanced_index, basic_index, require_dim, sliced
from bridge.at.storage_ops cimport (
    deep_copied,
    resize,
    restrided,
    set_source,
    storage_offset_of,
)
from bridge.c10.array_ref cimport to_int64
from bridge.c10.dims cimport Dims, parse_dims, parse_dims_args, wrap_dim
from bridge.c10.copy cimport contiguous_copy
from bridge.c10.handle cimport Handle
from bridge.c10.python_api cimport word8, word32, word64
from bridge.c10.reports cimport is_observed, outermost, report_shared, run_observed, unlikely
from bridge.c10.slots cimport (
    MAX_CACHED,
    add_to_class,
    call_init,
    clear_weakrefs,
    dealloc_function,
    dealloc_of,
    revive,
    set_constructor,
    set_dealloc,
    type_of,
    untrack,
)
from bridge.c10.storage cimport READONLY
from bridge.c10.type_meta cimport as_type
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    TensorImpl,
    is_pod_now,
    is_undefined,
    nbytes_now,
    seen,
    storage_flags,
)
from bridge.c10 cimport views
from bridge.dlpack.abi cimport DLManagedTensorVersioned, DLPackExchangeAPI
from bridge.exchange_table cimport exchange_table, import_object
from bridge.wrapper cimport Wrapper, inherit_metadata

from bridge.at import python_values
from bridge.at.torch_call import TorchRunner
from bridge.c10.array_ref import Shape
from bridge.c10.device import DeviceType, as_device
from bridge.c10.errors import (
    EnforceBufferError,
    EnforceIndexError,
    EnforceNotMet,
    EnforceTypeError,
    EnforceValueError,
)
from bridge.exchange.array_function import REFLECTED as _REFLECTED
from bridge.exchange.array_function import call_ufunc

cdef DLPackExchangeAPI _table


cdef int _import(DLManagedTensorVersioned* managed, void** out) noexcept:
    return import_object(managed, out, Tensor, "at.Tensor")


# pyi: class Tensor(Wrapper, TorchMethods):
cdef class Tensor(Wrapper):
    """A strided tensor over memory of any origin, with the API of ATen.

    ``at.Tensor(t)``, of an at.Tensor or a caffe2.Tensor, shares the TensorImpl: data and metadata.
    ``at.Tensor()`` is undefined. New tensors come from bridge.from_dlpack and the factories.

    Every method of torch.Tensor that is not listed below runs torch's operation on the same memory
    and returns an at.Tensor; a method whose name ends in an underscore changes this tensor.

    Raises EnforceNotMet: a caffe2.Tensor without memory, without an element type, or of a non-POD
    type. Also a TypeError: the source is neither kind of tensor.

    Every method raises EnforceNotMet on an undefined tensor, except `defined`, `dtype`, `itemsize`,
    `is_same`, `readonly` and `unsafeGetTensorImpl`. Every method that writes raises EnforceNotMet
    if the memory is read-only. A dimension counts from the end if negative; EnforceNotMet, also an
    IndexError, if the dimension does not exist. An argument of the wrong kind raises EnforceNotMet,
    also a TypeError.

    Follows at::Tensor, aten/src/ATen/core/TensorBody.h, PyTorch 1.8.1.

    Examples
    --------
    Metadata; sizes, strides and offsets are counted in elements:

    >>> from bridge import at, caffe2
    >>> x = at.arange(6).reshape(2, 3)
    >>> x.sizes(), x.size(), x.size(-1), x.shape
    (ArrayRef([2, 3]), (2, 3), 3, (2, 3))
    >>> x.strides(), x.stride(), x.stride(0), x[1, 1:].storage_offset()
    (ArrayRef([3, 1]), (3, 1), 3, 4)
    >>> x.dim(), x.ndim, x.numel(), x.itemsize(), x.nbytes()
    (2, 2, 6, 8, 48)
    >>> x.dtype(), x.device(), x.readonly, x.is_contiguous(), x.t().is_contiguous()
    (TypeMeta('int64'), Device('cpu'), False, True, False)
    >>> x.dtype is x.dtype(), x.dtype == "int64", x.device == "cpu"
    (True, True, True)
    >>> x.storage().nbytes(), x[1].data_ptr() - x.data_ptr()
    (48, 24)
    >>> same = at.Tensor(x)
    >>> x.defined(), at.Tensor().defined(), x.is_same(same), x.is_same(x.alias())
    (True, False, True, False)
    >>> same.unsafeGetTensorImpl() is x.unsafeGetTensorImpl()
    True

    Views share the memory:

    >>> x.view(3, 2).tolist(), x.view("uint8").sizes()
    ([[0, 1], [2, 3], [4, 5]], ArrayRef([2, 24]))
    >>> x.reshape(-1).tolist(), x.flatten().sizes()
    ([0, 1, 2, 3, 4, 5], ArrayRef([6]))
    >>> x.as_strided([2, 2], [1, 2], 1).tolist()
    [[1, 3], [2, 4]]
    >>> x.t().sizes(), x.transpose(0, 1).strides(), x.permute(1, 0).sizes()
    (ArrayRef([3, 2]), ArrayRef([1, 3]), ArrayRef([3, 2]))
    >>> x.select(0, 1).tolist(), x.slice(1, 0, 3, 2).tolist(), x.narrow(1, 1, 2).tolist()
    ([3, 4, 5], [[0, 2], [3, 5]], [[1, 2], [4, 5]])
    >>> x[1].tolist(), x[:, 0].tolist(), x[0, ::-1].tolist()
    ([3, 4, 5], [0, 3], [2, 1, 0])
    >>> x.unsqueeze(0).sizes(), x.unsqueeze(0).squeeze().sizes(), x[:1].expand(4, 3).sizes()
    (ArrayRef([1, 2, 3]), ArrayRef([2, 3]), ArrayRef([4, 3]))
    >>> x.diagonal().tolist(), x[0].unfold(0, 2, 1).tolist()
    ([0, 4], [[0, 1], [1, 2]])
    >>> x.alias().is_same(x), x.detach().data_ptr() == x.data_ptr()
    (False, True)

    Data:

    >>> y = x.clone()
    >>> y.fill_(7).tolist(), y.zero_().tolist(), x[0, 1].item()
    ([[7, 7, 7], [7, 7, 7]], [[0, 0, 0], [0, 0, 0]], 1)
    >>> y.copy_(x).equal(x), y.copy_(x[0]).tolist()
    (True, [[0, 1, 2], [0, 1, 2]])
    >>> x.contiguous() is x, x.t().contiguous().strides()
    (True, ArrayRef([2, 1]))
    >>> x.to("float32").dtype(), x.to("int64") is x, x.cpu() is x
    (TypeMeta('float32'), True, True)
    >>> y.resize_(3, 1).sizes(), y.set_(x).is_same(x), y.data_ptr() == x.data_ptr()
    (ArrayRef([3, 1]), False, True)
    >>> x.cuda(), x.pin_memory()  # doctest: +SKIP

    Other frameworks, zero-copy, and torch's operations:

    >>> x.to_torch().data_ptr() == x.numpy().ctypes.data == x.data_ptr()
    True
    >>> x.mul_(2).tolist(), x.sum().item(), (x + 1).tolist()
    ([[0, 2, 4], [6, 8, 10]], 30, [[1, 3, 5], [7, 9, 11]])
    >>> c = caffe2.Tensor([2], "cpu")
    >>> c.mutable_data("float32")[:] = [1.0, 2.0]
    >>> a = at.Tensor(c)
    >>> c.Resize(2, 1)
    >>> a
    at.Tensor([[1.],
               [2.]], dtype=float32)
    """

    # pyi: __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    # pyi: __array_priority__: ClassVar[int]
    # pyi: def __dir__(self) -> list[str]: ...
    # pyi: def __array_namespace__(self, /, *, api_version: str | None = None) -> Any: ...
    __dlpack_c_exchange_api__ = exchange_table(&_table, _import)

    def __init__(self, source: Wrapper | None = None, /) -> None:
        if source is None:
            return
        self.impl = _impl_for_at(source)

    @staticmethod
    def _wrap(TensorImpl impl not None) -> Tensor:
        """Return a new at.Tensor that shares `impl`."""
        return wrap(impl)

    # Metadata.

    # pyi: overload (dim: None = None) -> Shape
    # pyi: overload (dim: int) -> int
    def size(self, dim=None):
        """Return the size of dimension `dim`; without `dim`, all sizes, as ``x.shape``.

        They are a tuple, which torch's functions take: ``torch.zeros(x.size())``.

        Raises EnforceNotMet, also an IndexError: the dimension does not exist.
        """
        self.impl.require_defined("Tensor.size")
        if dim is None:
            return Shape(self.impl.sizes_view())
        with cython.critical_section(self.impl):
            return self.impl.c_sizes[_dim(dim, self.impl, "Tensor.size")]

    # pyi: overload (dim: None = None) -> tuple[int, ...]
    # pyi: overload (dim: int) -> int
    def stride(self, dim=None):
        """Return the stride of dimension `dim`, in elements; without `dim`, all as a tuple.

        Raises EnforceNotMet, also an IndexError: the dimension does not exist.
        """
        self.impl.require_defined("Tensor.stride")
        if dim is None:
            return tuple(self.impl.strides_view())
        with cython.critical_section(self.impl):
            return self.impl.c_strides()[_dim(dim, self.impl, "Tensor.stride")]

    @property
    def ndim(self) -> int:
        """The number of dimensions; the same as `dim()`."""
        self.impl.require_defined("Tensor.ndim")
        return word32(&self.impl.ndim)

    def dim(self) -> int:
        """Return the number of dimensions."""
        self.impl.require_defined("Tensor.dim")
        return word32(&self.impl.ndim)

    def storage_offset(self) -> int:
        """Return the position of the first element in the storage, in elements.

        An imported torch tensor has the offset that it has in torch. Raises EnforceNotMet: its
        memory is gone.
        """
        self.impl.require_defined("Tensor.storage_offset")
        return storage_offset_of(self.impl)

    def is_contiguous(self, memory_format: torch.memory_format | None = None) -> bool:
        """Return whether the elements are stored row-major without gaps.

        With a `memory_format` of torch, return whether they are stored in that order.
        """
        self.impl.require_defined("Tensor.is_contiguous")
        if memory_format is not None:
            return torch_runner.method("is_contiguous", self, memory_format=memory_format)
        return (word8(&self.impl.flags) & CONTIGUOUS) != 0

    def data_ptr(self) -> int:
        """Return the address of the first element; 0 if there are no elements.

        Raises EnforceNotMet: the memory is gone, as after torch resized a storage that it lent.
        """
        cdef char* address = self.impl.data("Tensor.data_ptr")
        return <uintptr_t>address if word64(&self.impl.c_numel) else 0

    @property
    def readonly(self) -> bool:
        """Whether the memory is read-only; False for an undefined tensor."""
        return not is_undefined(self.impl) and (storage_flags(self.impl) & READONLY) != 0

    # Views: all share the memory and are writable if it is.

    def view(self, *sizes: int | Dims | TypeLike, dtype: TypeLike | None = None) -> Tensor:
        """Return a view with other sizes, or of another element type; never a copy.

        ``view(sizes)``: the same elements in row-major order; one size may be -1, to be inferred.
        ``view(dtype)``, also ``view(dtype=dtype)``: the same bytes as elements of `dtype`; the last
        dimension changes its size by the ratio of the item sizes.

        Raises EnforceNotMet: the strides require a copy (use `reshape`), or bytes do not divide
        into elements of `dtype`. Also a ValueError: the number of elements differs.
        """
        cdef Dims dims
        cdef TensorImpl retyped
        if dtype is not None:
            if sizes:
                raise EnforceTypeError(
                    "view() takes sizes or an element type, not both.", "Tensor.view")
            sizes = (as_type(dtype),)
        if len(sizes) == 1 and not isinstance(sizes[0], (int, tuple, list)):
            retyped = view_as_dtype(self.impl, sizes[0])
            if retyped is not None:
                return wrap(retyped)
        dims = parse_dims_args(sizes, "Tensor.view")
        return wrap(views.view(self.impl, dims.data, dims.n, "Tensor.view"))

    def reshape(self, *sizes: int | Dims) -> Tensor:
        """Return the same elements with other sizes: a view if the strides allow it, else a copy.

        One size may be -1, to be inferred. The copy is row-major, on the same device.

        Raises EnforceNotMet, also a ValueError: the number of elements differs.
        """
        cdef Dims dims = parse_dims_args(sizes, "Tensor.reshape")
        cdef TensorImpl impl = self.impl
        try:
            return wrap(views.view(impl, dims.data, dims.n, "Tensor.reshape"))
        except ValueError:
            raise
        except EnforceNotMet:
            impl = contiguous_copy(impl, "Tensor.reshape")
        return wrap(views.view(impl, dims.data, dims.n, "Tensor.reshape"))

    def as_strided(self, size: Dims, stride: Dims, storage_offset: int | None = None) -> Tensor:
        """Return a view of the storage with any sizes and strides; all in elements.

        `storage_offset` is the position of the first element in the storage, by default that of
        this tensor. Strides may be negative.

        Raises EnforceNotMet: the numbers of sizes and strides differ. Also a ValueError: the view
        reaches outside the storage.
        """
        cdef Dims sizes = parse_dims(size, "Tensor.as_strided")
        cdef Dims strides = parse_dims(stride, "Tensor.as_strided")
        self.impl.require_defined("Tensor.as_strided")
        if sizes.n != strides.n:
            raise EnforceNotMet(
                f"There are {sizes.n} sizes, but {strides.n} strides.", "Tensor.as_strided",
                condition="len(size) == len(stride)")
        return wrap(restrided(self.impl, sizes, strides, storage_offset, "Tensor.as_strided"))

    def transpose(self, dim0: int, dim1: int) -> Tensor:
        """Return a view with two dimensions swapped. (…, a, …, b, …) → (…, b, …, a, …).

        Raises EnforceNotMet, also an IndexError: the dimension does not exist.
        """
        return wrap(views.transpose(
            self.impl, to_int64(dim0, "Tensor.transpose"), to_int64(dim1, "Tensor.transpose"),
            "Tensor.transpose"))

    def permute(self, *dims: int | Dims) -> Tensor:
        """Return a view whose dimension i is dimension ``dims[i]`` of this tensor.

        Raises EnforceNotMet, also a ValueError: `dims` does not name each dimension once.
        """
        cdef Dims order = parse_dims_args(dims, "Tensor.permute")
        return wrap(views.permute(self.impl, order.data, order.n, "Tensor.permute"))

    def t(self) -> Tensor:
        """Return a view with the two dimensions swapped; of fewer dimensions, an alias.

        Raises EnforceNotMet: there are more than two dimensions.
        """
        cdef TensorImpl impl
        self.impl.require_defined("Tensor.t")
        impl = seen(self.impl)
        if impl.ndim > 2:
            raise EnforceNotMet(
                f"t() takes at most two dimensions, and there are {impl.ndim}. "
                "Use transpose(a, b) or permute().", "Tensor.t", condition="dim() <= 2")
        if impl.ndim < 2:
            return wrap(views.alias(impl, "Tensor.t"))
        return wrap(views.transpose(impl, 0, 1, "Tensor.t"))

    def select(self, dim: int, index: int) -> Tensor:
        """Return a view at `index` of dimension `dim`, without that dimension.

        A negative `index` counts from the end.

        Raises EnforceNotMet, also an IndexError: the dimension or index does not exist.
        """
        return wrap(views.select(
            self.impl, to_int64(dim, "Tensor.select"), to_int64(index, "Tensor.select"),
            "Tensor.select"))

    def slice(
        self, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
    ) -> Tensor:
        """Return a view of every `step`-th index of dimension `dim`, from `start` to before `end`.

        `start` and `end` are as in a Python slice: negative from the end, None for no limit, and
        limited to the size.

        Raises EnforceNotMet: `step` is not positive. Also an IndexError: no such dimension.
        """
        return wrap(sliced(self.impl, to_int64(dim, "Tensor.slice"), start, end,
                           to_int64(step, "Tensor.slice"), "Tensor.slice"))

    def narrow(self, dim: int, start: int, length: int) -> Tensor:
        """Return a view of the `length` indices of dimension `dim` from `start` on.

        A negative `start` counts from the end.

        Raises EnforceNotMet: the indices are not all inside. Also an IndexError: no such dimension,
        or `start` is not in it.
        """
        cdef TensorImpl impl
        cdef int64_t d, n = to_int64(length, "Tensor.narrow")
        cdef int64_t first = to_int64(start, "Tensor.narrow")
        impl = seen(self.impl)
        d = _dim(dim, impl, "Tensor.narrow")
        if first < 0:
            first += impl.c_sizes[d]
        if first < 0 or first > impl.c_sizes[d]:
            raise EnforceIndexError(
                f"The start {start} is not in dimension {d} of size {impl.c_sizes[d]}.",
                "Tensor.narrow", condition="start <= size(dim)")
        if n < 0 or first > impl.c_sizes[d] - n:
            raise EnforceNotMet(
                f"{length} indices from {start} on are not all in dimension {d} of size "
                f"{impl.c_sizes[d]}.", "Tensor.narrow", condition="start + length <= size(dim)")
        return wrap(views.slice_dim(impl, d, first, n, 1, "Tensor.narrow"))

    def squeeze(self, dim: int | tuple[int, ...] | list[int] | None = None) -> Tensor:
        """Return a view without dimensions of size one: all, or those among `dim`.

        `dim` is a dimension, or a list or tuple of them; those of another size are kept.

        Raises EnforceNotMet, also an IndexError: the dimension does not exist.
        """
        if isinstance(dim, (tuple, list)):
            return wrap(_squeezed(self.impl, dim))
        return wrap(views.squeeze(
            self.impl, 0 if dim is None else to_int64(dim, "Tensor.squeeze"), dim is None,
            "Tensor.squeeze"))

    def unsqueeze(self, dim: int) -> Tensor:
        """Return a view with a new dimension of size one at position `dim`.

        Raises EnforceNotMet, also an IndexError: `dim` is not from -dim() - 1 to dim().
        """
        return wrap(views.unsqueeze(
            self.impl, to_int64(dim, "Tensor.unsqueeze"), "Tensor.unsqueeze"))

    def expand(self, *sizes: int | Dims) -> Tensor:
        """Return a view with dimensions of size one repeated to `sizes`, with a stride of zero.

        -1 keeps a size. New dimensions come first.

        Raises EnforceNotMet, also a ValueError: a dimension of another size would change.
        """
        cdef Dims dims = parse_dims_args(sizes, "Tensor.expand")
        return wrap(views.expand(self.impl, dims.data, dims.n, "Tensor.expand"))

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        """Return the tensor with dimensions `start_dim` to `end_dim`, inclusive, as one.

        A view if the strides allow it, else a row-major copy.

        Raises EnforceNotMet, also a ValueError: `end_dim` is before `start_dim`. Also an
        IndexError: no such dimension.
        """
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

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        """Return a view of the diagonal of dimensions `dim1` and `dim2`, as a new last dimension.

        The diagonal is `offset` above the main one, or below it if negative.

        Raises EnforceNotMet, also a ValueError: `dim1` and `dim2` are the same. Also an IndexError:
        no such dimension.
        """
        return wrap(views.diagonal(
            self.impl, to_int64(offset, "Tensor.diagonal"), to_int64(dim1, "Tensor.diagonal"),
            to_int64(dim2, "Tensor.diagonal"), "Tensor.diagonal"))

    def unfold(self, dimension: int, size: int, step: int) -> Tensor:
        """Return a view of all windows of `size` along `dimension`, `step` apart.

        The windows may overlap. (…, n, …) → (…, (n - size) // step + 1, …, size).

        Raises EnforceNotMet, also a ValueError: `size` does not fit, or `step` is not positive.
        """
        return wrap(views.unfold(
            self.impl, to_int64(dimension, "Tensor.unfold"), to_int64(size, "Tensor.unfold"),
            to_int64(step, "Tensor.unfold"), "Tensor.unfold"))

    def alias(self) -> Tensor:
        """Return a new tensor over the same memory, with its own metadata."""
        return wrap(views.alias(self.impl, "Tensor.alias"))

    def detach(self) -> Tensor:
        """Return a new tensor over the same memory; the same as `alias`.

        An at.Tensor does not record gradients.
        """
        return wrap(views.alias(self.impl, "Tensor.detach"))

    def __getitem__(self, key: IndexLike) -> Tensor:
        cdef TensorImpl impl
        if type(key) is slice and (<object>key).step is None:
            return wrap(sliced(self.impl, 0, (<object>key).start, (<object>key).stop, 1,
                               "Tensor.__getitem__"))
        impl = basic_index(self.impl, key)
        return wrap(advanced_index(self.impl, key) if impl is None else impl)

    def __setitem__(self, key: IndexLike, value: Any) -> None:
        cdef TensorImpl impl
        self.impl.writable("Tensor.__setitem__")
        impl = basic_index(self.impl, key)
        if impl is None:
            advanced_assign(self.impl, key, value)
        else:
            copy_into(impl, value, "Tensor.__setitem__")

    def __delitem__(self, key: Any) -> NoReturn:
        raise EnforceTypeError(
            "Elements of a tensor cannot be deleted. Use a view, or index with what to keep.",
            "Tensor.__delitem__")

    def __iter__(self) -> Iterator[Tensor]:
        cdef int64_t i
        cdef TensorImpl impl
        self.impl.require_defined("Tensor.__iter__")
        impl = seen(self.impl)
        if impl.ndim == 0:
            raise EnforceTypeError(
                "A 0-d tensor cannot be iterated over; use item().",
                "Tensor.__iter__", condition="dim() > 0")
        return iter([wrap(views.select(impl, 0, i, "Tensor.__iter__"))
                     for i in range(impl.c_sizes[0])])

    # Data.

    def clone(self, *, memory_format: torch.memory_format | None = None) -> Tensor:
        """Return a copy in new memory on the same device, writable.

        It is row-major, or in the order of torch's `memory_format`.
        """
        if memory_format is not None:
            return torch_runner.method("clone", self, memory_format=memory_format)
        return wrap(contiguous_copy(self.impl, "Tensor.clone"))

    def contiguous(self, memory_format: torch.memory_format | None = None) -> Tensor:
        """Return this tensor if it is contiguous, else a row-major copy.

        With a `memory_format` of torch, the same for that order.
        """
        self.impl.require_defined("Tensor.contiguous")
        if memory_format is not None:
            return torch_runner.method("contiguous", self, memory_format=memory_format)
        if word8(&self.impl.flags) & CONTIGUOUS:
            return self
        return wrap(contiguous_copy(self.impl, "Tensor.contiguous"))

    def copy_(self, src: Any, non_blocking: bool = False) -> Self:
        """Copy the elements of `src` into this tensor, converted and broadcast; return this tensor.

        `src` is any tensor that the bridge can import, a number or a nested list. `non_blocking` is
        accepted for torch's signature and has no effect.

        Raises EnforceNotMet, also a ValueError: the sizes do not broadcast. Also a TypeError: `src`
        is not one of these.
        """
        copy_into(self.impl, src, "Tensor.copy_")
        return self

    def fill_(self, value: Any) -> Self:
        """Set every element to `value`, a number or a 0-d tensor; return this tensor.

        Raises EnforceNotMet, also a TypeError: the element type cannot hold the value. Also a
        ValueError: a tensor with dimensions.
        """
        fill(self.impl, value)
        return self

    def zero_(self) -> Self:
        """Set every element to zero; return this tensor."""
        zero(self.impl)
        return self

    def item(self) -> Any:
        """Return the only element as a Python number, ``str`` or ``bytes``.

        Raises EnforceNotMet, also a ValueError: there is not exactly one element.
        """
        return python_values.item(self.impl)

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers; for a 0-d tensor, the number."""
        return python_values.tolist(self.impl)

    def to(
        self,
        *args: Wrapper | torch.Tensor | TensorOptions | TypeLike | DeviceLike | bool | None,
        copy: bool = False,
        non_blocking: bool = False,
        dtype: TypeLike | None = None,
        device: DeviceLike | None = None,
        other: Wrapper | torch.Tensor | None = None,
        memory_format: torch.memory_format | None = None,
    ) -> Tensor:
        """Return the tensor with an element type, on a device; this tensor if it has both already.

        ``to(dtype)``, ``to(device)``, ``to(device, dtype)``, ``to(options)``, or ``to(other)`` for
        the type and device of another tensor; each followed by `non_blocking` and `copy`, by
        position or by name, as in ATen. Anything but this tensor is a row-major copy, or one in the
        order of torch's `memory_format`; ``copy=True`` always copies.

        Raises EnforceNotMet: an argument names neither a type nor a device, or the device is not
        available.
        """
        cdef TensorImpl impl
        if unlikely(is_observed()) and outermost():
            return run_observed("to", self, "at.Tensor", Tensor.to, (self, *args), {
                "copy": copy, "non_blocking": non_blocking, "dtype": dtype, "device": device,
                "other": other, "memory_format": memory_format})
        impl = convert_to(self.impl, args, copy, dtype, device, other)
        converted = self if impl is self.impl else wrap(impl)
        if memory_format is None:
            return converted
        return torch_runner.method("to", converted, memory_format=memory_format)

    def to_device(self, device: DeviceLike, /, *, stream: None = None) -> Tensor:
        """Return the tensor on a device; this tensor if it is there (Python array API standard).

        `stream`: None; the work on torch's current stream is waited for.

        Raises EnforceNotMet: the device is not available. Also a ValueError: a `stream` is given.

        >>> from bridge import at
        >>> at.ones(2).to_device("cpu").device
        Device('cpu')
        """
        if stream is not None:
            raise EnforceValueError(
                f"to_device() orders the work by torch's current stream; stream={stream!r} is not "
                "supported.", "Tensor.to_device", condition="stream is None")
        return self.to(as_device(device))

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Return this tensor if `requires_grad` is false: an at.Tensor records no gradients.

        Raises EnforceNotMet: `requires_grad` is true.

        >>> from bridge import at
        >>> at.ones(2).requires_grad_(False).requires_grad
        False
        """
        self.impl.require_defined("Tensor.requires_grad_")
        if requires_grad:
            raise EnforceNotMet(
                "An at.Tensor records no gradients; to_torch().requires_grad_() is a torch.Tensor "
                "of the same memory that does.", "Tensor.requires_grad_",
                condition="requires_grad == False")
        return self

    def cpu(self) -> Tensor:
        """Return a copy in host memory; this tensor if it is there already."""
        return self.to("cpu")

    def cuda(self, device: DeviceLike | None = None) -> Tensor:
        """Return a copy on a CUDA device, by default the current one; this tensor if it is there.

        `device`: a CUDA device or its number. Raises EnforceNotMet: the device is not available.
        Also a ValueError: it is not a CUDA device.
        """
        if device is None:
            return self.to("cuda")
        if isinstance(device, int) and not isinstance(device, (bool, DeviceType)):
            device = f"cuda:{device}"
        place = as_device(device)
        if place.type != DeviceType.CUDA:
            raise EnforceValueError(
                f"cuda() takes a CUDA device, and not {place}. Use to().", "Tensor.cuda",
                condition="device.type() == CUDA")
        return self.to(place)

    def pin_memory(self) -> Tensor:
        """Return a copy in page-locked host memory; this tensor if it is there already.

        Raises EnforceNotMet: CUDA is not available.
        """
        return self.to("cuda_host")

    def resize_(self, *sizes: int | Dims) -> Self:
        """Change the sizes in place and return this tensor; it becomes row-major.

        Elements keep their position in memory. If the storage is too small it is reallocated, for
        all tensors that share it; existing bytes are copied and new elements are uninitialized.

        Raises EnforceNotMet: external memory would have to grow. Also a ValueError: negative sizes,
        or more bytes than an int64 can count.
        """
        resize(self.impl, parse_dims_args(sizes, "Tensor.resize_"))
        return self

    def set_(
        self,
        source: Storage | TensorLike | None = None,
        storage_offset: int = 0,
        size: Dims | None = None,
        stride: Dims | None = None,
    ) -> Self:
        """Make this tensor share the memory of another tensor or Storage; return this tensor.

        With `size`, it is the view of the source's storage with these sizes, with `stride` (in
        elements; by default row-major), from element `storage_offset` on. Without `size`, it has
        the sizes and strides of the source, or is all of a Storage. Without `source`, it has no
        elements and new, empty storage.

        Raises EnforceNotMet, also a TypeError: the source has another element type, or an offset or
        strides are given without sizes. Also a ValueError: the view reaches outside the storage.
        """
        set_source(self.impl, source, storage_offset, size, stride)
        return self

    def equal(self, other: Any) -> bool:
        """Return whether `other` has the same sizes and equal elements; NaN is unequal to itself.

        `other` is anything that `copy_` takes.
        """
        return python_values.equal(self.impl, other)

    def __bool__(self) -> bool:
        cdef int64_t n
        self.impl.require_defined("Tensor.__bool__")
        n = word64(&self.impl.c_numel)
        if n != 1:
            raise EnforceValueError(
                f"The truth value of {n} elements is ambiguous. Use any() or "
                "all().", "Tensor.__bool__", condition="numel() == 1")
        return bool(python_values.item(self.impl))

    def __int__(self) -> int:
        return int(python_values.item(self.impl))

    def __float__(self) -> float:
        return float(python_values.item(self.impl))

    def __complex__(self) -> complex:
        return complex(python_values.item(self.impl))

    def __index__(self) -> int:
        cdef TensorImpl impl
        self.impl.require_defined("Tensor.__index__")
        impl = seen(self.impl)
        value = python_values.item(impl) if impl.c_numel == 1 else None
        if not isinstance(value, int):
            raise EnforceTypeError(
                "Only a tensor of one integer is an index; this one has "
                f"{impl.c_numel} elements of {impl.c_dtype}.", "Tensor.__index__")
        return int(value)

    def __contains__(self, value: Operand) -> bool:
        found = torch_runner.binary("eq", self, value)
        if found is NotImplemented:
            raise EnforceTypeError(
                f"A tensor contains numbers, not {type(value).__name__}.",
                "Tensor.__contains__")
        return bool(found.any())

    def __repr__(self):
        return python_values.to_repr(self.impl)

    def __format__(self, spec: str) -> str:
        # A format specification applies to the number, as in torch.
        if spec:
            return format(python_values.item(self.impl), spec)
        return python_values.to_repr(self.impl)

    def __copy__(self) -> Tensor:
        return wrap(views.alias(self.impl, "Tensor.__copy__"))

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if is_undefined(self.impl):
            return wrap(self.impl)
        return wrap(deep_copied(self.impl, memo))

    # All other operations are run by torch.

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Iterable[type[Any]],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        return torch_runner.function(func, args, kwargs)

    __array_priority__ = 1000

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Run a ufunc of NumPy on the same memory, which ``out=`` and ``array += x`` write.

        It gives arrays, as all functions of NumPy do. ``array + x`` and the other binary operators
        with an array on the left, which to NumPy are the ufunc with these arguments, are torch's
        operations and give an at.Tensor.

        Raises EnforceNotMet: what is written is read-only.

        Follows NEP 13.
        """
        if method == "__call__" and not kwargs and len(inputs) == 2 and inputs[1] is self \
                and not isinstance(inputs[0], Wrapper):
            operator = _REFLECTED.get(ufunc.__name__)
            if operator is not None:
                result = getattr(self, operator)(inputs[0])
                if result is not NotImplemented:
                    return result
        return call_ufunc(ufunc, method, inputs, kwargs)

    def __hash__(self) -> int:
        return <Py_ssize_t>(<uintptr_t><void*>self >> 4)

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return torch_runner.binary("eq", self, other)

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return torch_runner.binary("ne", self, other)

    def __lt__(self, other: Operand) -> Tensor:
        return torch_runner.binary("lt", self, other)

    def __le__(self, other: Operand) -> Tensor:
        return torch_runner.binary("le", self, other)

    def __gt__(self, other: Operand) -> Tensor:
        return torch_runner.binary("gt", self, other)

    def __ge__(self, other: Operand) -> Tensor:
        return torch_runner.binary("ge", self, other)

    def __neg__(self) -> Tensor:
        return torch_runner.method("neg", self)

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Tensor:
        return torch_runner.method("abs", self)

    def __round__(self, ndigits: SupportsIndex | None = None) -> Tensor:
        from bridge.at.torch_ops import rounded

        return torch_runner.run("round", rounded, (self, ndigits), {})

    def __divmod__(self, other: Operand) -> tuple[Tensor, Tensor]:
        return _divided(self, other)

    def __rdivmod__(self, other: Operand) -> tuple[Tensor, Tensor]:
        return _divided(other, self)

    def __invert__(self) -> Tensor:
        return torch_runner.method("bitwise_not", self)

    # pyi: def __pow__(self, other: Operand, modulo: None = None, /) -> Tensor: ...
    def __pow__(self, other, modulo):
        return torch_runner.binary("pow", self, other) if modulo is None else NotImplemented

    # pyi: def __rpow__(self, other: Operand, modulo: None = None, /) -> Tensor: ...
    def __rpow__(self, other, modulo):
        return torch_runner.binary("pow", other, self) if modulo is None else NotImplemented

    def __ipow__(self, other: Operand) -> Self:  # type: ignore[misc]
        return torch_runner.method("pow_", self, other)

    def __matmul__(self, other: Operand) -> Tensor:
        return torch_runner.binary("matmul", self, other)

    def __rmatmul__(self, other: Operand) -> Tensor:
        return torch_runner.binary("matmul", other, self)

    def __add__(self, other: Operand) -> Tensor:
        return torch_runner.binary("add", self, other)

    def __radd__(self, other: Operand) -> Tensor:
        return torch_runner.binary("add", other, self)

    def __iadd__(self, other: Operand) -> Self:
        return torch_runner.method("add_", self, other)

    def __sub__(self, other: Operand) -> Tensor:
        return torch_runner.binary("sub", self, other)

    def __rsub__(self, other: Operand) -> Tensor:
        return torch_runner.binary("sub", other, self)

    def __isub__(self, other: Operand) -> Self:
        return torch_runner.method("sub_", self, other)

    def __mul__(self, other: Operand) -> Tensor:
        return torch_runner.binary("mul", self, other)

    def __rmul__(self, other: Operand) -> Tensor:
        return torch_runner.binary("mul", other, self)

    def __imul__(self, other: Operand) -> Self:
        return torch_runner.method("mul_", self, other)

    def __truediv__(self, other: Operand) -> Tensor:
        return torch_runner.binary("div", self, other)

    def __rtruediv__(self, other: Operand) -> Tensor:
        return torch_runner.binary("div", other, self)

    def __itruediv__(self, other: Operand) -> Self:
        return torch_runner.method("div_", self, other)

    def __floordiv__(self, other: Operand) -> Tensor:
        return torch_runner.binary("floor_divide", self, other)

    def __rfloordiv__(self, other: Operand) -> Tensor:
        return torch_runner.binary("floor_divide", other, self)

    def __ifloordiv__(self, other: Operand) -> Self:
        return torch_runner.method("floor_divide_", self, other)

    def __mod__(self, other: Operand) -> Tensor:
        return torch_runner.binary("remainder", self, other)

    def __rmod__(self, other: Operand) -> Tensor:
        return torch_runner.binary("remainder", other, self)

    def __imod__(self, other: Operand) -> Self:
        return torch_runner.method("remainder_", self, other)

    def __and__(self, other: Operand) -> Tensor:
        return torch_runner.binary("bitwise_and", self, other)

    def __rand__(self, other: Operand) -> Tensor:
        return torch_runner.binary("bitwise_and", other, self)

    def __iand__(self, other: Operand) -> Self:
        return torch_runner.method("bitwise_and_", self, other)

    def __or__(self, other: Operand) -> Tensor:
        return torch_runner.binary("bitwise_or", self, other)

    def __ror__(self, other: Operand) -> Tensor:
        return torch_runner.binary("bitwise_or", other, self)

    def __ior__(self, other: Operand) -> Self:
        return torch_runner.method("bitwise_or_", self, other)

    def __xor__(self, other: Operand) -> Tensor:
        return torch_runner.binary("bitwise_xor", self, other)

    def __rxor__(self, other: Operand) -> Tensor:
        return torch_runner.binary("bitwise_xor", other, self)

    def __ixor__(self, other: Operand) -> Self:
        return torch_runner.method("bitwise_xor_", self, other)

    def __lshift__(self, other: Operand) -> Tensor:
        return torch_runner.binary("bitwise_left_shift", self, other)

    def __rlshift__(self, other: Operand) -> Tensor:
        return torch_runner.binary("bitwise_left_shift", other, self)

    def __ilshift__(self, other: Operand) -> Self:
        return torch_runner.method("bitwise_left_shift_", self, other)

    def __rshift__(self, other: Operand) -> Tensor:
        return torch_runner.binary("bitwise_right_shift", self, other)

    def __rrshift__(self, other: Operand) -> Tensor:
        return torch_runner.binary("bitwise_right_shift", other, self)

    def __irshift__(self, other: Operand) -> Self:
        return torch_runner.method("bitwise_right_shift_", self, other)


cdef object _divided(object a, object b):
    """Return ``(a // b, a % b)``."""
    quotient = torch_runner.binary("floor_divide", a, b)
    return quotient if quotient is NotImplemented else (
        quotient, torch_runner.binary("remainder", a, b))


cdef TensorImpl _squeezed(TensorImpl impl, object dims):
    """Return a view without those of `dims` that have size one."""
    cdef TensorImpl out = views.alias(impl, "Tensor.squeeze")
    for dim in sorted(
            {wrap_dim(to_int64(dim, "Tensor.squeeze"), out.ndim, "Tensor.squeeze")
             for dim in dims}, reverse=True):
        out = views.squeeze(out, dim, False, "Tensor.squeeze")
    return out


cdef int64_t _dim(object dim, TensorImpl impl, str caller) except -1:
    """Return a dimension as a non-negative index; IndexError if there are no dimensions."""
    cdef int64_t d = to_int64(dim, caller)
    require_dim(impl, caller)
    return wrap_dim(d, impl.ndim, caller)


cdef TensorImpl _impl_for_at(object source):
    cdef TensorImpl impl
    if not isinstance(source, Wrapper):
        raise EnforceTypeError(
            f"at.Tensor takes an at.Tensor or a caffe2.Tensor, not "
            f"{type(source).__name__}. bridge.from_dlpack(x) takes tensors of any framework, "
            "at.tensor(data) takes numbers.", "at.Tensor")
    impl = (<Wrapper>source).impl
    if is_undefined(impl) or (is_pod_now(impl) and impl.storage_initialized()):
        if unlikely(is_observed()):
            report_shared("at.Tensor", source, "at.Tensor", nbytes_now(impl))
        return impl
    if not impl.dtype():
        raise EnforceNotMet(
            "The caffe2.Tensor has no element type yet. Call mutable_data(T) on it first.",
            "at.Tensor", condition="dtype_initialized()")
    if not is_pod_now(impl):
        raise EnforceBufferError(
            f"Only caffe2.Tensor holds elements of the non-POD type {impl.dtype()}; ATen "
            "tensors hold plain memory.", "at.Tensor", condition="dtype().is_pod")
    raise EnforceNotMet(
        "The caffe2.Tensor is not allocated. Call mutable_data(T) on it first.", "at.Tensor",
        condition="storage_initialized()")


# tp_dealloc of at.Tensor, which keeps freed objects for `wrap` (see slots.pxd).

cdef dealloc_function _handle_dealloc = dealloc_of(Handle)
cdef (PyObject*)[64] _cached            # MAX_CACHED of them
cdef int _n_cached = 0


cdef void _dealloc(PyObject* dying) noexcept:
    global _n_cached
    if type_of(dying) != <PyTypeObject*><PyObject*>Tensor:      # a subclass
        _handle_dealloc(dying)
        return
    # Before the cache is looked at: a weak reference may run Python that frees other tensors.
    untrack(dying)
    clear_weakrefs(dying)
    if _n_cached >= MAX_CACHED:
        _handle_dealloc(dying)
        return
    # The TensorImpl is released last: that may run Python that creates tensors.
    _impl = (<Tensor>dying).impl
    (<Tensor>dying).impl = None
    _cached[_n_cached] = dying
    _n_cached += 1


cdef Tensor wrap(TensorImpl impl):
    """Return a new at.Tensor that shares `impl`; every new one is created here."""
    global _n_cached
    cdef Tensor tensor
    if _n_cached == 0:
        tensor = Tensor.__new__(Tensor)
    else:
        _n_cached -= 1
        tensor = <Tensor>revive(_cached[_n_cached])
    tensor.impl = impl
    return tensor


cdef PyObject* _construct(
    PyObject* cls, PyObject** args, size_t nargsf, PyObject* names,
) except NULL:
    cdef Tensor tensor = Tensor.__new__(Tensor)
    if names == NULL and (nargsf & <size_t>0xFFFF) == 1:
        tensor.impl = _impl_for_at(<object>args[0])
    else:
        call_init(tensor, args, nargsf, names)
    Py_INCREF(tensor)
    return <PyObject*>tensor


# Runs all operations that the class does not define.
torch_runner = TorchRunner(Tensor._wrap)  # pyi: TorchRunner


def install(name: str, operation: object) -> None:
    """Add a method or property to the class, unless it defines one of that name."""
    if not hasattr(Tensor, name):
        add_to_class(Tensor, name, operation)


set_constructor(Tensor, _construct)
set_dealloc(Tensor, _dealloc)
inherit_metadata(Tensor)
