# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""at.empty and its kin: new tensors, and at.from_blob."""

from libc.stdint cimport int64_t, uintptr_t

from bridge.at.data cimport zero_elements
from bridge.at.indexing cimport is_integer
from bridge.at.tensor cimport wrap
from bridge.c10.array_ref cimport Dims, parse_dims
from bridge.c10.device cimport Device, host_accessible
from bridge.c10.layout cimport checked_mul, contiguous_strides, extent
from bridge.c10.storage cimport EXTERNAL, READONLY, Storage, external_ptr, install
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, allocated, new_pair, require_numel
from bridge.c10.type_meta cimport TypeMeta, float32_type
from bridge.dlpack.abi cimport DL_CPU, DL_CUDA_HOST
from bridge.exchange.import_tensor cimport import_tensor
from bridge.wrapper cimport Wrapper

from bridge.at import data
from bridge.c10.device import DeviceType
from bridge.c10.errors import EnforceNotMet, EnforceTypeError, EnforceValueError
from bridge.c10.options import as_options
from bridge.c10.storage import as_address, as_deleter
from bridge.exchange.device_memory import current_index


cdef class _Where:
    """What options say: an element type and a device."""

    cdef TypeMeta dtype
    cdef int device_type
    cdef int device_index
    cdef bint placed            # options name the device; otherwise it is the default


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
        where.device_type = like.storage.device_type
        where.device_index = like.storage.device_index
    else:
        where.device_type = DL_CPU
    if (pinned or options.pinned_memory()) and where.device_type == DL_CPU:
        where.device_type = DL_CUDA_HOST
    if not where.dtype.c_is_pod:
        raise EnforceNotMet(
            f"ATen tensors hold plain memory, not elements of {where.dtype}. Use "
            "caffe2.empty.", "at.empty", condition="dtype.is_pod")
    return where


cdef tuple _split(tuple args, str caller):
    """(sizes, options) of ``*args``: sizes one by one or as one sequence, then options."""
    cdef Py_ssize_t n = len(args)
    if n == 0:
        raise EnforceTypeError(f"{caller} takes sizes.", caller)
    if not isinstance(args[0], int) and not hasattr(args[0], "__index__") \
            or hasattr(args[0], "__len__"):
        if n > 2:
            raise EnforceTypeError(f"{caller} takes sizes, then options.", caller)
        return args[0], args[1] if n == 2 else None
    if isinstance(args[n - 1], int) and not isinstance(args[n - 1], (bool, DeviceType)):
        return args, None
    if hasattr(args[n - 1], "__index__") and not isinstance(args[n - 1], (type, DeviceType)):
        return args, None
    return args[:n - 1], args[n - 1]


def split(args, caller):
    """(sizes, options) of ``*args``, for the factories of torch_factories."""
    return _split(tuple(args), caller)


def sizes_of(sizes, caller):
    """Sizes as a list of ints, with the errors of every factory."""
    cdef Dims dims = parse_dims(sizes, caller)
    cdef int i
    require_numel(dims.data, dims.n, caller)
    return [dims.data[i] for i in range(dims.n)]


cdef TensorImpl _empty(tuple args, object dtype, object device, bint pinned, str caller):
    cdef Dims dims
    cdef _Where where
    if len(args) == 1 and dtype is None and device is None and not pinned \
            and type(args[0]) is tuple:
        dims = parse_dims(args[0], caller)
        return allocated(dims.data, dims.n, float32_type, DL_CPU, 0, caller)
    sizes, options = _split(args, caller)
    where = _where(options, dtype, device, pinned, None)
    dims = parse_dims(sizes, caller)
    return allocated(
        dims.data, dims.n, where.dtype, where.device_type, where.device_index, caller)


def empty(*dims, dtype=None, device=None, pinned_memory=False):
    """A new tensor whose elements are not set. ``empty(2, 3)``, ``empty((2, 3), options)``.

    float32 on the CPU, 64-byte aligned, unless options say otherwise.
    Raises EnforceNotMet: no sizes, or options that name nothing. MemoryError.

    >>> from bridge import at
    >>> at.empty((2, 3), "int64").sizes()
    ArrayRef([2, 3])
    """
    return wrap(_empty(dims, dtype, device, pinned_memory, "at.empty"))


def zeros(*dims, dtype=None, device=None, pinned_memory=False):
    """A new tensor of zeros; arguments as in `empty`."""
    cdef TensorImpl impl = _empty(dims, dtype, device, pinned_memory, "at.zeros")
    zero_elements(impl)
    return wrap(impl)


def ones(*dims, dtype=None, device=None, pinned_memory=False):
    """A new tensor of ones; arguments as in `empty`."""
    return data.fill_(wrap(_empty(dims, dtype, device, pinned_memory, "at.ones")), 1)


def full(size, fill_value, options=None, *, dtype=None, device=None, pinned_memory=False):
    """A new tensor of one value, of whose kind it is (bool, int64, float32, complex64)
    unless options name a type. `size`: one or a sequence."""
    cdef Dims dims = parse_dims(size, "at.full")
    options = as_options(options, dtype, device)
    if not options.has_dtype():
        options = options.dtype(_type_of_number(fill_value))
    sizes = tuple([dims.data[i] for i in range(dims.n)])
    return data.fill_(wrap(_empty(
        (sizes, options), None, None, pinned_memory, "at.full")), fill_value)


def _type_of_number(value):
    """The type that torch.full infers for a number: Python's, NumPy's or a 0-d tensor's alike."""
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


cdef TensorImpl _like(object source, object options, object dtype, object device, str caller):
    cdef TensorImpl impl
    cdef _Where where
    impl = (<Wrapper>source).impl if isinstance(source, Wrapper) else import_tensor(source)
    impl.require_defined(caller)
    where = _where(options, dtype, device, False, impl)
    return allocated(impl.c_sizes, impl.ndim, where.dtype, where.device_type,
                     where.device_index, caller)


def empty_like(source, options=None, *, dtype=None, device=None):
    """A new row-major tensor of the sizes, type and device of `source`, unless options say
    otherwise; elements not set."""
    return wrap(_like(source, options, dtype, device, "at.empty_like"))


def zeros_like(source, options=None, *, dtype=None, device=None):
    """Zeros of the sizes, type and device of `source`, unless options say otherwise."""
    cdef TensorImpl impl = _like(source, options, dtype, device, "at.zeros_like")
    zero_elements(impl)
    return wrap(impl)


def ones_like(source, options=None, *, dtype=None, device=None):
    """Ones of the sizes, type and device of `source`, unless options say otherwise."""
    return data.fill_(wrap(_like(source, options, dtype, device, "at.ones_like")), 1)


def full_like(source, fill_value, options=None, *, dtype=None, device=None):
    """One value in the sizes, type and device of `source`, unless options say otherwise."""
    return data.fill_(wrap(_like(source, options, dtype, device, "at.full_like")), fill_value)


def empty_strided(size, stride, options=None, *, dtype=None, device=None, pinned_memory=False):
    """A new tensor of given sizes and strides (elements, not negative), elements not set."""
    cdef Dims sizes = parse_dims(size, "at.empty_strided")
    cdef Dims strides = parse_dims(stride, "at.empty_strided")
    cdef _Where where = _where(options, dtype, device, pinned_memory, None)
    cdef int64_t numel = require_numel(sizes.data, sizes.n, "at.empty_strided")
    cdef int64_t low = 0, high = -1, n
    cdef TensorImpl impl
    cdef int i
    if sizes.n != strides.n:
        raise EnforceValueError(
            f"There are {sizes.n} sizes and {strides.n} strides.",
            "at.empty_strided", condition="len(size) == len(stride)")
    for i in range(strides.n):
        if strides.data[i] < 0:
            raise EnforceValueError(
                f"Strides of new memory are not negative, as {strides.data[i]} is.", "at.empty_strided",
                condition="stride >= 0")
    if numel and extent(sizes.data, strides.data, sizes.n, &low, &high) != 0:
        raise EnforceValueError("The strides overflow.", "at.empty_strided")
    n = high + 1
    impl = allocated(&n, 1, where.dtype, where.device_type, where.device_index,
                     "at.empty_strided")
    impl.set_strided(sizes.data, strides.data, sizes.n, numel)
    return wrap(impl)


def from_blob(source, sizes, strides=None, options=None, deleter=None, *, dtype=None, device=None):
    """A tensor over memory from outside: an address (int), or a buffer, which is kept alive.

    `sizes` and `strides` in elements, strides not negative; float32, and on the CPU or where
    the buffer is, unless options say otherwise. `deleter(address)` is called once, when neither a
    tensor nor a view needs the memory. Over a read-only buffer the tensor is read-only.
    What there is at an address nobody can check.

    Raises EnforceNotMet: no address, a buffer that is too small, not contiguous or on another
    device than the options say, an address that is not aligned for the type, negative strides.

    Follows at::from_blob, aten/src/ATen/templates/Functions.h, PyTorch 1.8.1.
    """
    cdef Dims dims, steps
    cdef _Where where
    cdef int64_t numel, nbytes, low = 0, high = -1
    cdef uintptr_t address = 0
    cdef TensorImpl impl, lender = None
    cdef int flags = EXTERNAL, i
    caller = "at.from_blob"
    if strides is not None and not isinstance(strides, (tuple, list)) \
            and not hasattr(strides, "__len__"):
        # from_blob(ptr, sizes, options)
        if options is not None:
            raise EnforceTypeError("strides are a sequence of ints.", caller)
        strides, options = None, strides
    dims = parse_dims(sizes, caller)
    where = _where(options, dtype, device, False, None)
    deleter = as_deleter(deleter, caller)
    numel = require_numel(dims.data, dims.n, caller)
    steps = parse_dims(tuple([0] * dims.n) if strides is None else strides, caller)
    if steps.n != dims.n:
        raise EnforceValueError(
            f"There are {dims.n} sizes and {steps.n} strides.",
            caller, condition="len(sizes) == len(strides)")
    if strides is None:
        contiguous_strides(dims.data, steps.data, dims.n)
    for i in range(steps.n):
        if steps.data[i] < 0:
            raise EnforceValueError(
                f"Strides over memory from outside are not negative, as {steps.data[i]} is.", caller,
                condition="stride >= 0")
    if numel and extent(dims.data, steps.data, dims.n, &low, &high) != 0:
        raise EnforceValueError("The strides overflow.", caller)
    nbytes = checked_mul(high + 1, where.dtype.itemsize)
    if nbytes < 0:
        raise EnforceValueError("That many bytes do not fit an int64.", caller)
    if is_integer(source):
        source = source.__index__()
        if numel or source != 0:
            address = as_address(source, caller)
        keep = None
    else:
        lender = _lender(source, caller)
        _settle(where, lender.storage, caller)
        address = <uintptr_t>lender.data(caller)
        lender.storage.pin()
        if lender.c_numel * lender.c_dtype.itemsize < nbytes:
            raise EnforceValueError(
                f"The buffer has {lender.c_numel * lender.c_dtype.itemsize} bytes, and sizes "
                f"{[dims.data[i] for i in range(dims.n)]} of {where.dtype} take {nbytes}.", caller,
                condition="nbytes <= len(buffer)")
        flags |= lender.storage.flags & READONLY
        keep = lender.storage.ctx
    if address % <uintptr_t>min(where.dtype.itemsize, 8) != 0:
        raise EnforceValueError(
            f"The address {address:#x} is not aligned for {where.dtype}.", caller)
    impl = new_pair(where.device_type, where.device_index, where.dtype)
    impl.set_strided(dims.data, steps.data, dims.n, numel)
    install(impl.storage, external_ptr(<void*>address, keep, deleter), <char*>address, where.dtype,
            nbytes, flags)
    return wrap(impl)


cdef TensorImpl _lender(object source, str caller):
    """The TensorImpl of a contiguous buffer, shared."""
    cdef TensorImpl lender
    try:
        lender = import_tensor(source, None, False)
    except BufferError as error:
        raise EnforceTypeError(f"The buffer is not shared: {error}", caller) from error
    except TypeError as error:
        raise EnforceTypeError(
            f"{type(source).__name__} is neither an address nor a buffer.",
            caller) from error
    if not lender.flags & CONTIGUOUS:
        raise EnforceNotMet(
            "The buffer is not contiguous; give sizes and strides over contiguous memory.", caller)
    return lender


cdef int _settle(_Where where, Storage lender, str caller) except -1:
    """Take the device of a buffer where options name none; refuse one that contradicts it."""
    if not where.placed:
        where.device_type, where.device_index = lender.device_type, max(lender.device_index, 0)
    elif (where.device_type != lender.device_type
            or where.device_index != max(lender.device_index, 0)) and not (
                host_accessible(where.device_type) and host_accessible(lender.device_type)):
        raise EnforceValueError(
            f"The buffer is on {lender.device()}, and the options name another device.", caller,
            condition="device() == options.device()")
    return 0


def resolved(options=None, dtype=None, device=None):
    """TensorOptions with everything said: float32 on the CPU where nothing was."""
    options = as_options(options, dtype, device)
    if not options.has_dtype():
        options = options.dtype(float32_type)
    found = options.device()
    if found is None:
        found = "cuda_host" if options.pinned_memory() else "cpu"
    elif found.index < 0:
        found = (int(found.type), current_index(found))
    return options.device(found)
