# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Factories: at.empty, zeros, ones, full, their variants, and at.from_blob."""

from libc.stdint cimport INT64_MAX, int64_t, uintptr_t

from bridge.at.element_writes cimport fill, zero
from bridge.at.indexing cimport is_integer
from bridge.at.tensor cimport wrap
from bridge.c10.dims cimport Dims, parse_dims, require_nbytes, require_numel
from bridge.c10.device cimport Device, device_of, host_accessible
from bridge.c10.layout cimport checked_mul, contiguous_strides, extent
from bridge.c10.storage cimport (
    EXTERNAL,
    READONLY,
    Storage,
    external_ptr,
    install,
    owner_of,
)
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    TensorImpl,
    allocatable,
    allocated,
    device_index_of,
    device_type_of,
    new_pair,
    seen,
    storage_flags,
    storage_of,
)
from bridge.c10.type_meta cimport TypeMeta, float32_type
from bridge.dlpack.abi cimport DL_CPU, DL_CUDA_HOST
from bridge.exchange.import_tensor cimport import_tensor
from bridge.wrapper cimport Wrapper

from bridge.c10.device import DeviceType
from bridge.c10.errors import EnforceNotMet, EnforceTypeError, EnforceValueError
from bridge.c10.options import as_options
from bridge.c10.storage import as_address, as_deleter
from bridge.exchange.device_memory import current_index


# Of torch's layouts and memory formats, as it prints them.
cdef frozenset _ROW_MAJOR = frozenset(
    {"torch.strided", "torch.contiguous_format", "torch.preserve_format"})

# pyi: from bridge.at.tensor import Tensor


cdef class _Where:
    """The element type and the device that options specify."""

    cdef TypeMeta dtype
    cdef int device_type
    cdef int device_index
    cdef bint placed            # the options specify the device; otherwise it is the default


cdef int _require_host(Device device) except -1:
    """Raise EnforceNotMet: memory on `device` cannot be page-locked."""
    if device.c_type != DL_CPU and device.c_type != DL_CUDA_HOST:
        raise EnforceNotMet(
            f"Memory on {device} cannot be page-locked; only the host's can. Leave out the device, "
            "or pinned_memory.", "TensorOptions",
            condition="!pinned_memory() || device().type() == CPU")
    return 0


cdef _Where _where(object options, object dtype, object device, bint pinned, TensorImpl like):
    cdef _Where where = _Where.__new__(_Where)
    cdef Device found
    options = as_options(options, dtype, device)
    where.dtype = options.dtype()
    if where.dtype is None:
        where.dtype = float32_type if like is None else like.c_dtype
    found = options.device()
    if found is not None:
        where.device_type = found.c_type
        where.device_index = current_index(found)
        where.placed = True
    elif like is not None:
        where.device_type = allocatable(device_type_of(like))
        where.device_index = device_index_of(like)
    else:
        where.device_type = DL_CPU
    if pinned or options.pinned_memory():
        _require_host(device_of(where.device_type, where.device_index))
        where.device_type = DL_CUDA_HOST
    if not where.dtype.c_is_pod:
        raise EnforceNotMet(
            f"ATen tensors hold plain memory, not elements of {where.dtype}. Use "
            "caffe2.empty.", "at.empty", condition="dtype.is_pod")
    return where


cpdef bint page_locked(
    dict keywords: dict[str, Any], bint pinned, str caller
) except -1:
    """Return `pinned`, or what ``pin_memory`` says of keywords that torch's factories take.

    Raises EnforceNotMet: they ask for what a new at.Tensor is not. TypeError: an unknown keyword.
    """
    for name, value in keywords.items():
        if name == "pin_memory":
            pinned = pinned or bool(value)
        elif name == "requires_grad":
            if value:
                raise EnforceNotMet(
                    "An at.Tensor records no gradients; to_torch().requires_grad_() is a "
                    "torch.Tensor of the same memory that does.", caller,
                    condition="requires_grad == False")
        elif name == "layout" or name == "memory_format":
            if value is not None and str(value) not in _ROW_MAJOR:
                raise EnforceNotMet(
                    f"A new tensor is dense and row-major, not {value}. Create it by torch, or "
                    "use x.to(memory_format=...).", caller, condition=f"{name} is row-major")
        else:
            raise TypeError(f"{caller}() got an unexpected keyword argument {name!r}")
    return pinned


cpdef tuple split(tuple args, str caller):  # pyi: tuple[Any, Any]
    """Return (sizes, options) of ``*args``: ints or one sequence, then options; None if none."""
    cdef Py_ssize_t n = len(args)
    if n == 0:
        raise EnforceTypeError(f"{caller} requires sizes.", caller)
    if n == 1 and type(args[0]) is tuple:
        return args[0], None
    if not isinstance(args[0], int) and not hasattr(args[0], "__index__") \
            or hasattr(args[0], "__len__"):
        if n > 2:
            raise EnforceTypeError(f"{caller} takes sizes followed by options.", caller)
        return args[0], args[1] if n == 2 else None
    if isinstance(args[n - 1], int) and not isinstance(args[n - 1], (bool, DeviceType)):
        return args, None
    if hasattr(args[n - 1], "__index__") and not isinstance(args[n - 1], (type, DeviceType)):
        return args, None
    return args[:n - 1], args[n - 1]


def sizes_of(sizes: Dims | int, caller: str) -> list[int]:
    """Return `sizes` as a list of ints. Raises EnforceNotMet: they are not valid sizes."""
    cdef Dims dims = parse_dims(sizes, caller)
    cdef int i
    require_numel(dims.data, dims.n, caller)
    return [dims.data[i] for i in range(dims.n)]


cdef TensorImpl _empty(tuple args, object dtype, object device, bint pinned, str caller):
    cdef Dims dims
    cdef _Where where
    sizes, options = split(args, caller)
    if options is None and dtype is None and device is None and not pinned:
        dims = parse_dims(sizes, caller)
        return allocated(dims.data, dims.n, float32_type, DL_CPU, 0, caller)
    where = _where(options, dtype, device, pinned, None)
    dims = parse_dims(sizes, caller)
    return allocated(
        dims.data, dims.n, where.dtype, where.device_type, where.device_index, caller)


cdef object _filled(TensorImpl impl, object value):
    fill(impl, value)
    return wrap(impl)


def empty(
    *dims: int | Dims | OptionsLike | None,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    pinned_memory: bool = False,
    **keywords: Any,
) -> Tensor:
    """Return a new tensor with uninitialized elements. ``empty(2, 3)``, ``empty((2, 3), options)``.

    Sizes are ints or one sequence. Options are a TensorOptions, an element type or a device; also
    as keywords. By default float32 on the CPU. CPU memory is 64-byte aligned. Keywords of torch's
    factories are taken where they ask for what the tensor is: ``layout``, ``memory_format``,
    ``requires_grad=False``; ``pin_memory`` is ``pinned_memory``.

    Raises EnforceNotMet: a non-POD element type. Also a TypeError: no sizes, or options that are
    not recognized. Also a ValueError: negative sizes. MemoryError: not enough memory.

    >>> from bridge import at
    >>> at.empty((2, 3), "int64").sizes(), at.empty(4, dtype="bool").dtype()
    (ArrayRef([2, 3]), TypeMeta('bool'))
    """
    return wrap(_empty(
        dims, dtype, device, page_locked(keywords, pinned_memory, "at.empty"), "at.empty"))


def zeros(
    *dims: int | Dims | OptionsLike | None,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    pinned_memory: bool = False,
    **keywords: Any,
) -> Tensor:
    """Return a new tensor of zeros; arguments and errors as in `empty`.

    >>> from bridge import at
    >>> at.zeros(2, 2, "int32").tolist()
    [[0, 0], [0, 0]]
    """
    cdef TensorImpl impl = _empty(
        dims, dtype, device, page_locked(keywords, pinned_memory, "at.zeros"), "at.zeros")
    zero(impl)
    return wrap(impl)


def ones(
    *dims: int | Dims | OptionsLike | None,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    pinned_memory: bool = False,
    **keywords: Any,
) -> Tensor:
    """Return a new tensor of ones; arguments and errors as in `empty`.

    >>> from bridge import at
    >>> at.ones([3]).tolist()
    [1.0, 1.0, 1.0]
    """
    return _filled(_empty(
        dims, dtype, device, page_locked(keywords, pinned_memory, "at.ones"), "at.ones"), 1)


def full(
    size: int | Dims,
    fill_value: complex,
    options: OptionsLike | None = None,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    pinned_memory: bool = False,
    **keywords: Any,
) -> Tensor:
    """Return a new tensor with every element set to `fill_value`.

    `size` is an int or a sequence. By default the element type is bool, int64, float32 or
    complex64, by the kind of the value. Errors as in `empty`.

    >>> from bridge import at
    >>> at.full([2], 7), at.full(2, 7, "float16").dtype()
    (at.Tensor([7, 7], dtype=int64), TypeMeta('float16'))
    """
    cdef Dims dims = parse_dims(size, "at.full")
    options = as_options(options, dtype, device)
    if not options.has_dtype():
        options = options.dtype(_type_of_number(fill_value))
    sizes = tuple([dims.data[i] for i in range(dims.n)])
    pinned = page_locked(keywords, pinned_memory, "at.full")
    return _filled(_empty((sizes, options), None, None, pinned, "at.full"), fill_value)


def _type_of_number(value):
    """Return the type that torch.full infers for a number of Python or NumPy, or a 0-d tensor."""
    if isinstance(value, Wrapper):
        value = wrap((<Wrapper>value).impl)
    if hasattr(value, "numel") and value.numel() == 1:
        value = value.item()
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if isinstance(value, bool) or kind == "b":
        return "bool"
    if isinstance(value, int) or kind in ("i", "u"):
        return "int64"
    if isinstance(value, complex) or kind == "c":
        return "complex64"
    return "float32"


cdef TensorImpl _like(
    object source, object options, object dtype, object device, dict keywords, str caller,
):
    cdef TensorImpl impl
    cdef _Where where
    impl = (<Wrapper>source).impl if isinstance(source, Wrapper) else import_tensor(source)
    impl.require_defined(caller)
    impl = seen(impl)
    where = _where(options, dtype, device, page_locked(keywords, False, caller), impl)
    return allocated(impl.c_sizes, impl.ndim, where.dtype, where.device_type,
                     where.device_index, caller)


def empty_like(
    source: TensorLike,
    options: OptionsLike | None = None,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    **keywords: Any,
) -> Tensor:
    """Return a new, uninitialized, row-major tensor with the sizes, type and device of `source`.

    `source` is any tensor that the bridge can import. Options override the type and the device.
    Errors as in `empty`.

    >>> from bridge import at
    >>> at.empty_like(at.zeros(2, 3).t(), "int8").strides()
    ArrayRef([2, 1])
    """
    return wrap(_like(source, options, dtype, device, keywords, "at.empty_like"))


def zeros_like(
    source: TensorLike,
    options: OptionsLike | None = None,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    **keywords: Any,
) -> Tensor:
    """Return new zeros with the sizes, type and device of `source`; arguments as in `empty_like`.

    >>> from bridge import at
    >>> at.zeros_like(at.arange(2))
    at.Tensor([0, 0], dtype=int64)
    """
    cdef TensorImpl impl = _like(source, options, dtype, device, keywords, "at.zeros_like")
    zero(impl)
    return wrap(impl)


def ones_like(
    source: TensorLike,
    options: OptionsLike | None = None,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    **keywords: Any,
) -> Tensor:
    """Return new ones with the sizes, type and device of `source`; arguments as in `empty_like`.

    >>> from bridge import at
    >>> at.ones_like(at.arange(2), "bool").tolist()
    [True, True]
    """
    return _filled(_like(source, options, dtype, device, keywords, "at.ones_like"), 1)


def full_like(
    source: TensorLike,
    fill_value: complex,
    options: OptionsLike | None = None,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    **keywords: Any,
) -> Tensor:
    """Return a new tensor like `source` with every element set to `fill_value`.

    Sizes, type and device are those of `source`; other arguments as in `empty_like`.

    >>> from bridge import at
    >>> at.full_like(at.arange(2), 5).tolist()
    [5, 5]
    """
    impl = _like(source, options, dtype, device, keywords, "at.full_like")
    return _filled(impl, fill_value)


cdef int64_t _reach(
    Dims sizes, Dims strides, int64_t numel, TypeMeta dtype, str whose, str caller,
) except -1:
    """Return the number of elements from the first to the last in memory.

    Raises EnforceValueError: strides that are negative, too few, or reach beyond an int64.
    """
    cdef int64_t low = 0, high = -1
    cdef int i
    if sizes.n != strides.n:
        raise EnforceValueError(
            f"There are {sizes.n} sizes, but {strides.n} strides.", caller,
            condition="len(sizes) == len(strides)")
    for i in range(strides.n):
        if strides.data[i] < 0:
            raise EnforceValueError(
                f"Strides {whose} must not be negative: {strides.data[i]}.", caller,
                condition="stride >= 0")
    if numel and extent(sizes.data, strides.data, sizes.n, &low, &high) != 0 or high == INT64_MAX:
        raise EnforceValueError("The strides reach beyond an int64.", caller)
    require_nbytes(numel, dtype.itemsize, caller)
    return high + 1


def empty_strided(
    size: Dims,
    stride: Dims,
    options: OptionsLike | None = None,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    pinned_memory: bool = False,
    **keywords: Any,
) -> Tensor:
    """Return a new, uninitialized tensor with the given sizes and strides, both in elements.

    Raises EnforceNotMet, also a ValueError: different numbers of sizes and strides, or a negative
    one. Other errors as in `empty`.

    >>> from bridge import at
    >>> x = at.empty_strided([2, 2], [1, 4])
    >>> x.strides(), x.storage().nbytes()
    (ArrayRef([1, 4]), 24)
    """
    cdef Dims sizes = parse_dims(size, "at.empty_strided")
    cdef Dims strides = parse_dims(stride, "at.empty_strided")
    cdef _Where where = _where(
        options, dtype, device, page_locked(keywords, pinned_memory, "at.empty_strided"), None)
    cdef int64_t numel = require_numel(sizes.data, sizes.n, "at.empty_strided")
    cdef int64_t n = _reach(
        sizes, strides, numel, where.dtype, "of new memory", "at.empty_strided")
    cdef TensorImpl impl
    impl = allocated(&n, 1, where.dtype, where.device_type, where.device_index,
                     "at.empty_strided")
    impl.set_strided(sizes.data, strides.data, sizes.n, numel)
    return wrap(impl)


def from_blob(
    source: int | TensorLike,
    sizes: Dims,
    strides: Dims | OptionsLike | None = None,
    options: OptionsLike | None = None,
    deleter: Deleter | None = None,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Return a tensor over external memory: an address (int), or a buffer, which is kept alive.

    The memory is shared. `sizes` and `strides` are in elements; strides must not be negative and
    are row-major by default. The default is float32 on the CPU, or on the device of the buffer.
    `deleter(address)` is called once, when no tensor or view uses the memory any more. Over a
    read-only buffer the tensor is read-only. The memory at an address cannot be checked.

    Raises EnforceNotMet: the buffer is not contiguous. Also a ValueError: the buffer is too small
    or on another device than the options specify, the address is not aligned for the element type,
    a stride is negative. Also a TypeError: `source` is neither an address nor a buffer.

    Follows at::from_blob, aten/src/ATen/templates/Functions.h, PyTorch 1.8.1.

    >>> from bridge import at
    >>> memory = bytearray(8)
    >>> x = at.from_blob(memory, [2, 2], [1, 2], "int16")
    >>> x[0, 1] = 3
    >>> memory.hex(), at.from_blob(x.data_ptr(), [4], dtype="int16").tolist()
    ('0000000003000000', [0, 0, 3, 0])
    """
    cdef Dims dims, steps
    cdef _Where where
    cdef int64_t numel, nbytes
    cdef uintptr_t address = 0
    cdef TensorImpl impl, lender = None
    cdef Storage lent
    cdef int flags = EXTERNAL, i
    caller = "at.from_blob"
    if strides is not None and not isinstance(strides, (tuple, list)) \
            and not hasattr(strides, "__len__"):
        # from_blob(ptr, sizes, options)
        if options is not None:
            raise EnforceTypeError("strides must be a sequence of ints.", caller)
        strides, options = None, strides
    dims = parse_dims(sizes, caller)
    where = _where(options, dtype, device, False, None)
    deleter = as_deleter(deleter, caller)
    numel = require_numel(dims.data, dims.n, caller)
    steps = parse_dims(tuple([0] * dims.n) if strides is None else strides, caller)
    if strides is None:
        contiguous_strides(dims.data, steps.data, dims.n)
    nbytes = checked_mul(
        _reach(dims, steps, numel, where.dtype, "over external memory", caller),
        where.dtype.itemsize)
    if nbytes < 0:
        raise EnforceValueError("The number of bytes does not fit an int64.", caller)
    if is_integer(source):
        source = source.__index__()
        if numel or source != 0:
            address = as_address(source, caller)
        keep = None
    else:
        lender = _lender(source, caller)
        lent = storage_of(lender)
        _settle(where, lent, caller)
        address = <uintptr_t>lender.data(caller)
        lent.retain()
        if lender.c_numel * lender.c_dtype.itemsize < nbytes:
            raise EnforceValueError(
                f"The buffer has {lender.c_numel * lender.c_dtype.itemsize} bytes, but sizes "
                f"{[dims.data[i] for i in range(dims.n)]} of {where.dtype} take {nbytes}.", caller,
                condition="nbytes <= len(buffer)")
        flags |= storage_flags(lender) & READONLY
        keep = owner_of(lent)
    if address % <uintptr_t>min(where.dtype.itemsize, 8) != 0:
        raise EnforceValueError(
            f"The address {address:#x} is not aligned for {where.dtype}.", caller)
    impl = new_pair(where.device_type, where.device_index, where.dtype)
    impl.set_strided(dims.data, steps.data, dims.n, numel)
    install(impl.storage, external_ptr(<void*>address, keep, deleter), <char*>address, where.dtype,
            nbytes, flags)
    return wrap(impl)


cdef TensorImpl _lender(object source, str caller):
    """Return the TensorImpl of a contiguous buffer, shared."""
    cdef TensorImpl lender
    try:
        lender = import_tensor(source, None, False)
    except BufferError as error:
        raise EnforceTypeError(f"The buffer cannot be shared: {error}", caller) from error
    except TypeError as error:
        raise EnforceTypeError(
            f"{type(source).__name__} is neither an address nor a buffer.",
            caller) from error
    if not lender.flags & CONTIGUOUS:
        raise EnforceNotMet(
            "The buffer is not contiguous; pass contiguous memory, with sizes and strides.", caller)
    return lender


cdef int _settle(_Where where, Storage lender, str caller) except -1:
    """Set the device to that of the buffer if options specify none; raise if they contradict it."""
    if not where.placed:
        where.device_type, where.device_index = lender.device_type, max(lender.device_index, 0)
    elif (where.device_type != lender.device_type
            or where.device_index != max(lender.device_index, 0)) and not (
                host_accessible(where.device_type) and host_accessible(lender.device_type)):
        raise EnforceValueError(
            f"The buffer is on {lender.device()}, but the options specify another device.", caller,
            condition="device() == options.device()")
    return 0


def resolved(
    options: OptionsLike | None = None,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
) -> TensorOptions:
    """Return TensorOptions with an element type and a device, by default float32 on the CPU."""
    options = as_options(options, dtype, device)
    if not options.has_dtype():
        options = options.dtype(float32_type)
    found = options.device()
    if options.pinned_memory():
        if found is not None:
            _require_host(found)
        found = "cuda_host"
    elif found is None:
        found = "cpu"
    elif found.index < 0:
        found = (int(found.type), current_index(found))
    return options.device(found)
