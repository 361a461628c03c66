# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""What at.Tensor does with its elements: read, write, convert, move, resize."""

from libc.stdint cimport (
    int8_t,
    int16_t,
    int32_t,
    int64_t,
    uint8_t,
    uint16_t,
    uint32_t,
    uint64_t,
)
from libc.string cimport memset

from bridge.c10.array_ref cimport Dims, parse_dims
from bridge.c10.copy cimport asked_copy, contiguous_copy, copy_elements
from bridge.c10.device cimport host_accessible
from bridge.c10.layout cimport checked_mul, contiguous_strides
from bridge.c10.observe cimport copying, observed, outermost, unlikely, watched
from bridge.c10.storage cimport EXTERNAL, Elements, Storage, install, new_storage
from bridge.c10.tensor_impl cimport CONTIGUOUS, LENT, TensorImpl, allocated, require_numel
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.c10 cimport views
from bridge.dlpack.abi cimport DL_BOOL, DL_FLOAT, DL_INT, DL_UINT
from bridge.exchange.ingest cimport ingest
from bridge.exchange.numpy cimport array_out
from bridge.exchange.torch cimport forward_out, operand_out, tensor_out
from bridge.wrapper cimport Wrapper

from bridge.c10.device import Device, as_device
from bridge.c10.errors import EnforceNotMet, EnforceTypeError, EnforceValueError
from bridge.c10.options import TensorOptions
from bridge.exchange.transfer import to_device

cdef object _wrap = None


cdef int require_pod(TensorImpl impl, str caller) except -1:
    """Only bridge.asarray makes at.Tensors of strings, to be read and no more."""
    if not impl.c_dtype.c_is_pod and impl.storage is not None:
        raise EnforceNotMet(
            f"{caller.rpartition('.')[2]} is for plain memory, and the elements are of "
            f"{impl.c_dtype}. Use tolist(), or caffe2.Tensor.", "dtype().is_pod", caller)
    return 0


def set_wrap(wrap):
    """Hand over how an at.Tensor is made of a TensorImpl (at.tensor calls it)."""
    global _wrap
    _wrap = wrap


cdef TensorImpl _impl(object x):
    return (<Wrapper?>x).impl


cdef TensorImpl scalar(object value, TypeMeta dtype, str caller):
    """A 0-d tensor in host memory with a Python number, converted as torch converts it."""
    import torch
    target = dtype.torch
    try:
        if target is not None:
            return ingest(torch.full((), value, dtype=target, device="cpu"))
    except NotImplementedError:
        pass                    # a type that torch cannot fill; NumPy can
    except (TypeError, ValueError, RuntimeError) as error:
        raise EnforceTypeError(
            f"{value!r} is no element of {dtype}: {error}", "", caller) from error
    import numpy
    return ingest(numpy.full((), value, dtype=dtype.numpy))


cdef TensorImpl converted(TensorImpl src, TypeMeta dtype, str caller):
    """`src` itself if it is of the type, else a row-major copy converted by torch or NumPy."""
    cdef TensorImpl out
    if src.c_dtype is dtype:
        return src
    require_pod(src, caller)
    if not dtype.c_is_pod:
        raise EnforceNotMet(
            f"Plain memory does not become {dtype}.", "T.is_pod", caller)
    target = dtype.torch
    if target is not None and src.c_dtype.torch is not None:
        out = allocated(src.c_sizes, src.ndim, dtype, src.storage.device_type,
                        src.storage.device_index, caller)
        try:
            tensor_out(out).copy_(operand_out(src))
            return out
        except NotImplementedError:
            target = None
    return ingest(array_out(src, caller).astype(dtype.numpy), None, True)


cdef TensorImpl _source(object value, TensorImpl like_this, str caller):
    """What is to be copied into `like_this`: any tensor, a number, or nested lists."""
    if isinstance(value, Wrapper):
        return (<Wrapper>value).impl
    if isinstance(value, (bool, int, float, complex)):
        return scalar(value, like_this.c_dtype, caller)
    try:
        return ingest(value)
    except BufferError:
        raise
    except TypeError as error:
        if isinstance(value, (list, tuple)) or hasattr(value, "__array__"):
            import numpy
            return ingest(numpy.asarray(value))
        raise EnforceTypeError(
            f"An object of type {type(value).__name__} is neither a number, nor a list of numbers, "
            "nor a tensor.", "", caller) from error


cdef int _copy_into(TensorImpl dst, TensorImpl src, str caller) except -1:
    dst.require_defined(caller)
    require_pod(dst, caller)
    require_pod(src, caller)
    dst.writable(caller)
    src.data(caller)
    if src.c_dtype is not dst.c_dtype:
        src = converted(src, dst.c_dtype, caller)
    if src.ndim == 0 and not host_accessible(dst.storage.device_type) \
            and host_accessible(src.storage.device_type) and dst.c_dtype.torch is not None:
        # by its value: no copy to the device, for which the host would wait
        if dst.c_numel:
            forward_out(dst).fill_(operand_out(src))
        return 0
    if src.storage.device_type != dst.storage.device_type and src.c_numel != dst.c_numel:
        src = <TensorImpl>to_device(src, dst.device())
    # leading dimensions of size one may be too many, as NumPy allows in assignments
    while src.ndim > dst.ndim and src.c_sizes[0] == 1:
        src = views.select(src, 0, 0, caller)
    _require_fits(src, dst, caller)
    src = views.expand(src, dst.c_sizes, dst.ndim, caller)
    return copy_elements(dst, src, caller)


cdef int _require_fits(TensorImpl src, TensorImpl dst, str caller) except -1:
    """Each size of `src`, counted from the last, is that of `dst` or one."""
    cdef int lead = dst.ndim - src.ndim
    cdef bint fits = lead >= 0
    cdef int i
    for i in range(src.ndim if fits else 0):
        if src.c_sizes[i] != 1 and src.c_sizes[i] != dst.c_sizes[lead + i]:
            fits = False
    if not fits:
        raise EnforceValueError(
            f"Elements of sizes {src.sizes().vec()} do not fit into sizes {dst.sizes().vec()}: "
            "each size has to be the same, or one.", "", caller)
    return 0


def copy_(tensor, src):
    """See at.Tensor.copy_."""
    cdef TensorImpl dst = _impl(tensor)
    dst.require_defined("Tensor.copy_")
    _copy_into(dst, _source(src, dst, "Tensor.copy_"), "Tensor.copy_")
    return tensor


def assign(view, value):
    """``x[index] = value`` for a basic index, whose view `view` is."""
    cdef TensorImpl dst = _impl(view)
    _copy_into(dst, _source(value, dst, "Tensor.__setitem__"), "Tensor.__setitem__")


def advanced_index(tensor, key):
    """``x[index]`` for an index that torch has and basic indexing has not; a copy."""
    import torch
    cdef TensorImpl impl = _impl(tensor)
    if isinstance(key, str) or isinstance(key, (float, complex, dict, bytes)):
        raise EnforceTypeError(
            f"{key!r} is no index. An index is made of ints, slices, None, ..., or tensors of "
            "ints or bools.", "", "Tensor.__getitem__")
    source = operand_out(impl)
    try:
        found = source[_torch_key(key)]
    except IndexError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise EnforceTypeError(f"{key!r} is no index here: {error}", "",
                               "Tensor.__getitem__") from error
    if found.data_ptr() and found.untyped_storage().data_ptr() == \
            source.untyped_storage().data_ptr():
        found = found.clone()
    return _wrap(ingest(found))


def advanced_assign(tensor, key, value):
    """``x[index] = value`` for an index that only torch has."""
    cdef TensorImpl impl = _impl(tensor)
    if not isinstance(value, (bool, int, float, complex)):
        value = operand_out(_source(value, impl, "Tensor.__setitem__"))
    try:
        target = operand_out(impl)
        target[_torch_key(key)] = value
        write_back(impl, target)
    except IndexError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, EnforceNotMet):
            raise
        raise EnforceTypeError(f"{key!r} is no index here: {error}", "",
                               "Tensor.__setitem__") from error


def _torch_key(key):
    if isinstance(key, tuple):
        return tuple([_torch_key(one) for one in key])
    if isinstance(key, (list, int, slice)) or key is None or key is Ellipsis:
        return key
    return operand_out(ingest(key))


def fill_(tensor, value):
    """See at.Tensor.fill_."""
    cdef TensorImpl dst = _impl(tensor)
    cdef TensorImpl src
    dst.require_defined("Tensor.fill_")
    if isinstance(value, (bool, int, float, complex)):
        src = scalar(value, dst.c_dtype, "Tensor.fill_")
    else:
        src = _source(value, dst, "Tensor.fill_")
        if src.c_numel != 1 or src.ndim != 0:
            raise EnforceValueError(
                f"fill_ takes a number or a 0-d tensor, not sizes {src.sizes().vec()}. Use "
                "copy_.", "value.dim() == 0", "Tensor.fill_")
    _copy_into(dst, src, "Tensor.fill_")
    return tensor


def zero_(tensor):
    """See at.Tensor.zero_."""
    zero_elements(_impl(tensor))
    return tensor


cdef int zero_elements(TensorImpl dst) except -1:
    cdef char* to = dst.data("Tensor.zero_")
    cdef TensorImpl src
    require_pod(dst, "Tensor.zero_")
    dst.writable("Tensor.zero_")
    if dst.c_numel == 0:
        return 0
    if host_accessible(dst.storage.device_type) and dst.flags & CONTIGUOUS:
        # every POD type has zero as all bits clear
        memset(to, 0, dst.c_numel * dst.c_dtype.itemsize)
        return 0
    if not host_accessible(dst.storage.device_type):
        forward_out(dst).zero_()
        return 0
    src = allocated(dst.c_sizes, 0, dst.c_dtype, 1, 0, "Tensor.zero_")
    memset(src.data("Tensor.zero_"), 0, dst.c_dtype.itemsize)
    src = views.expand(src, dst.c_sizes, dst.ndim, "Tensor.zero_")
    return copy_elements(dst, src, "Tensor.zero_")


def item(tensor):
    """See at.Tensor.item."""
    cdef TensorImpl impl = _impl(tensor)
    cdef char* at = impl.data("Tensor.item")
    cdef TypeMeta dtype = impl.c_dtype
    if impl.c_numel != 1:
        raise EnforceValueError(
            f"item() reads a tensor of one element, and there are {impl.c_numel}. "
            "Use tolist().", "numel() == 1", "Tensor.item")
    if dtype.c_is_pod and host_accessible(impl.storage.device_type) and dtype.c_dlpack.lanes == 1:
        code, bits = dtype.c_dlpack.code, dtype.c_dlpack.bits
        if code == DL_FLOAT and bits == 64:
            return (<double*>at)[0]
        if code == DL_FLOAT and bits == 32:
            return <double>(<float*>at)[0]
        if code == DL_BOOL:
            return at[0] != 0
        if code == DL_INT and bits == 64:
            return (<int64_t*>at)[0]
        if code == DL_INT and bits == 32:
            return (<int32_t*>at)[0]
        if code == DL_INT and bits == 16:
            return (<int16_t*>at)[0]
        if code == DL_INT and bits == 8:
            return (<int8_t*>at)[0]
        if code == DL_UINT and bits == 64:
            return (<uint64_t*>at)[0]
        if code == DL_UINT and bits == 32:
            return (<uint32_t*>at)[0]
        if code == DL_UINT and bits == 16:
            return (<uint16_t*>at)[0]
        if code == DL_UINT and bits == 8:
            return (<uint8_t*>at)[0]
    listed = _listed(impl, "Tensor.item")
    while isinstance(listed, list):
        listed = listed[0]
    return listed


def tolist(tensor):
    """See at.Tensor.tolist."""
    cdef TensorImpl impl = _impl(tensor)
    impl.data("Tensor.tolist")
    return _listed(impl, "Tensor.tolist")


cdef object _nested(list items, const int64_t* sizes, int ndim):
    cdef int64_t i, step
    if ndim == 0:
        return items[0]
    if ndim == 1:
        return items
    step = len(items) // sizes[0] if sizes[0] else 0
    return [_nested(items[i * step:(i + 1) * step], sizes + 1, ndim - 1) for i in range(sizes[0])]


cdef object _listed(TensorImpl impl, str caller):
    cdef TypeMeta dtype = impl.c_dtype
    if not dtype.c_is_pod:
        if not impl.flags & CONTIGUOUS:
            require_pod(impl, caller)
        items = (<Elements>impl.storage.ctx).items if impl.c_numel else []
        return _nested(items[impl.offset:impl.offset + impl.c_numel], impl.c_sizes, impl.ndim)
    if not host_accessible(impl.storage.device_type):
        impl = <TensorImpl>to_device(impl, Device("cpu"))
    if dtype.name == "complex32" or dtype.name.endswith("_x2") or impl.ndim > 32:
        return operand_out(impl).tolist()
    if impl.storage.flags & 2:
        # borrowed: look, and do not pin what is only read
        array = array_out(contiguous_copy(impl, caller), caller)
    else:
        array = array_out(impl, caller)
    if array.dtype.kind == "V" or array.dtype.name not in _PLAIN:
        # ml_dtypes' scalars are no Python numbers
        import numpy
        with numpy.errstate(all="ignore"):
            array = array.astype("int64" if "int" in dtype.name else "float64")
    return array.tolist()


cdef frozenset _PLAIN = frozenset((
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128"))


def to(tensor, *args, copy=False, non_blocking=False, dtype=None, device=None):
    """See at.Tensor.to."""
    cdef TensorImpl impl = _impl(tensor)
    cdef TensorImpl out
    if unlikely(observed) and outermost():
        return watched(
            "to", tensor, "at.Tensor", to, (tensor, *args),
            {"copy": copy, "non_blocking": non_blocking, "dtype": dtype, "device": device})
    impl.data("Tensor.to")
    for one in args:
        if one is None or isinstance(one, bool):
            continue
        if isinstance(one, Wrapper):
            dtype, device = (<Wrapper>one).impl.c_dtype, (<Wrapper>one).impl.device()
        elif isinstance(one, TensorOptions):
            dtype, device = one.dtype() or dtype, one.device() or device
        else:
            kind = _type_or_device(one)
            if isinstance(kind, Device):
                device = kind
            else:
                dtype = kind
    out = impl
    if device is not None:
        out = <TensorImpl>to_device(out, as_device(device))
    if dtype is not None:
        out = _of_type(out, as_type(dtype))
    if out is not impl:
        return _wrap(out)
    if not copy:
        return tensor
    return _wrap(asked_copy(impl, "Tensor.to"))


cdef TensorImpl _of_type(TensorImpl impl, TypeMeta dtype):
    if unlikely(observed) and impl.c_dtype is not dtype and dtype.c_is_pod:
        copying(impl.c_numel * dtype.itemsize, f"{impl.c_dtype} becomes {dtype}")
    return converted(impl, dtype, "Tensor.to")


def _type_or_device(spec):
    from bridge.c10.options import as_options
    options = as_options(spec)
    return options.dtype() if options.has_dtype() else options.device()


def as_other_type(tensor, spec):
    """The same bytes as another element type, or None if `spec` names no type."""
    cdef TensorImpl impl = _impl(tensor)
    cdef TensorImpl out
    cdef TypeMeta dtype
    cdef int64_t ratio, i
    cdef int last
    try:
        dtype = as_type(spec)
    except TypeError:
        return None
    impl.data("Tensor.view")
    require_pod(impl, "Tensor.view")
    if not dtype.c_is_pod:
        raise EnforceNotMet(
            f"Plain memory is not viewed as {dtype}.", "T.is_pod", "Tensor.view")
    out = views.alias(impl, "Tensor.view")
    out.c_dtype = dtype
    if dtype.itemsize == impl.c_dtype.itemsize:
        return _wrap(out)
    last = impl.ndim - 1
    if impl.ndim == 0 or (impl.c_strides()[last] != 1 and impl.c_sizes[last] != 1):
        raise EnforceNotMet(
            f"{impl.c_dtype} is viewed as {dtype}, of another size, along a contiguous last "
            "dimension only.", "stride(-1) == 1", "Tensor.view")
    if dtype.itemsize < impl.c_dtype.itemsize:
        ratio = impl.c_dtype.itemsize // dtype.itemsize
        if checked_mul(impl.c_numel, ratio) < 0:
            raise EnforceValueError("That many elements do not fit an int64.", "", "Tensor.view")
        for i in range(impl.ndim):
            out.c_strides()[i] *= ratio
        out.c_strides()[last] = 1
        out.c_sizes[last] *= ratio
        out.offset *= ratio
    else:
        ratio = dtype.itemsize // impl.c_dtype.itemsize
        uneven = impl.c_sizes[last] % ratio != 0 or impl.offset % ratio != 0
        for i in range(last):
            if impl.c_strides()[i] % ratio != 0 and impl.c_sizes[i] > 1:
                uneven = True
        if uneven:
            raise EnforceNotMet(
                f"Sizes, strides and offset are not multiples of {ratio}, the elements of "
                f"{impl.c_dtype} in one of {dtype}.", "", "Tensor.view")
        for i in range(impl.ndim):
            out.c_strides()[i] //= ratio
        out.c_strides()[last] = 1
        out.c_sizes[last] //= ratio
        out.offset //= ratio
    out.finish()
    return _wrap(out)


def squeeze_all(tensor, dims):
    """A view without those of `dims` that are of size one."""
    cdef TensorImpl impl = _impl(tensor)
    from bridge.c10.tensor_impl import wrapped_dim
    impl.require_defined("Tensor.squeeze")
    for dim in sorted({wrapped_dim(dim, impl.ndim, "Tensor.squeeze") for dim in dims},
                      reverse=True):
        impl = views.squeeze(impl, dim, False, "Tensor.squeeze")
    return _wrap(impl if impl is not _impl(tensor) else views.alias(impl, "Tensor.squeeze"))


def resize_(tensor, sizes):
    """See at.Tensor.resize_."""
    cdef TensorImpl impl = _impl(tensor)
    cdef Dims dims = parse_dims(sizes, "Tensor.resize_")
    cdef Storage storage
    cdef TensorImpl bigger
    cdef int64_t numel, needed
    impl.require_defined("Tensor.resize_")
    require_pod(impl, "Tensor.resize_")
    numel = require_numel(dims.data, dims.n, "Tensor.resize_")
    storage = impl.storage
    needed = checked_mul(impl.offset + numel, impl.c_dtype.itemsize)
    if needed < 0:
        raise EnforceValueError(
            f"{numel} elements of {impl.c_dtype} are more bytes than an int64 counts.", "",
            "Tensor.resize_")
    if needed > storage.c_nbytes:
        if storage.flags & EXTERNAL:
            raise EnforceNotMet(
                f"The memory came from outside and has {storage.c_nbytes} bytes; {needed} would "
                "be needed. Use clone() first.", "nbytes() <= storage().nbytes()",
                "Tensor.resize_")
        bigger = _grown(storage, impl.c_dtype, needed)
        install(storage, bigger.storage.ctx, bigger.storage.data, impl.c_dtype, needed, 0)
    impl.set_contiguous(dims.data, dims.n, numel)


cdef TensorImpl _grown(Storage storage, TypeMeta dtype, int64_t nbytes):
    """A buffer of `nbytes` that begins with the bytes of `storage`."""
    cdef int64_t n = nbytes
    cdef int64_t old = storage.c_nbytes
    cdef TypeMeta byte = as_type("uint8")
    cdef TensorImpl out = allocated(
        &n, 1, byte, storage.device_type, storage.device_index, "Tensor.resize_")
    cdef TensorImpl head = views.slice_dim(out, 0, 0, old, 1, "Tensor.resize_")
    cdef TensorImpl whole = like_storage(storage, byte, old)
    if old:
        copy_elements(head, whole, "Tensor.resize_")
    return out


cdef TensorImpl like_storage(Storage storage, TypeMeta dtype, int64_t n):
    from bridge.c10.tensor_impl import over_storage
    return over_storage(storage, dtype, n)


def set_(tensor, source, storage_offset, size, stride):
    """See at.Tensor.set_."""
    cdef TensorImpl impl = _impl(tensor)
    cdef TensorImpl src
    cdef Dims sizes, strides
    cdef Storage storage
    impl.require_defined("Tensor.set_")
    require_pod(impl, "Tensor.set_")
    if source is None:
        sizes = parse_dims((0,), "Tensor.set_")
        impl.set_storage(new_storage(impl.storage.device_type, impl.storage.device_index))
        impl.offset = 0
        impl.set_contiguous(sizes.data, 1, 0)
        return
    if isinstance(source, Storage):
        storage = <Storage>source
        if storage.c_dtype and not storage.c_dtype.c_is_pod:
            raise EnforceNotMet(
                f"A Storage of {storage.c_dtype} is no plain memory.", "", "Tensor.set_")
        src = like_storage(storage, impl.c_dtype, storage.c_nbytes // impl.c_dtype.itemsize)
    else:
        src = (<Wrapper>source).impl if isinstance(source, Wrapper) else ingest(source)
        if src.c_dtype is not impl.c_dtype:
            raise EnforceTypeError(
                f"The source is of {src.c_dtype} and the tensor of {impl.c_dtype}.",
                "source.dtype() == dtype()", "Tensor.set_")
        src.data("Tensor.set_")
    if size is not None:
        sizes = parse_dims(size, "Tensor.set_")
        if stride is None:
            strides = parse_dims(size, "Tensor.set_")
            contiguous_strides(sizes.data, strides.data, sizes.n)
        else:
            strides = parse_dims(stride, "Tensor.set_")
        if strides.n != sizes.n:
            raise EnforceValueError("There are as many strides as sizes.", "", "Tensor.set_")
        src = views.as_strided(
            src, sizes.data, strides.data, sizes.n, storage_offset, "Tensor.set_")
    impl.set_strided(src.c_sizes, src.c_strides(), src.ndim, src.c_numel)
    impl.offset = src.offset
    impl.set_storage(src.storage)
    if not src.flags & LENT:
        impl.flags &= ~LENT
        impl.origin = src.origin


def equal(tensor, other):
    """See at.Tensor.equal."""
    cdef TensorImpl a = _impl(tensor)
    cdef TensorImpl b = _source(other, a, "Tensor.equal")
    cdef int i
    a.data("Tensor.equal")
    b.data("Tensor.equal")
    if not a.c_dtype.c_is_pod or not b.c_dtype.c_is_pod:
        return a.c_dtype is b.c_dtype and a.sizes() == b.sizes() and _listed(
            a, "Tensor.equal") == _listed(b, "Tensor.equal")
    if a.ndim != b.ndim:
        return False
    for i in range(a.ndim):
        if a.c_sizes[i] != b.c_sizes[i]:
            return False
    if a.c_numel == 0:
        return True
    if a.c_dtype.torch is None or b.c_dtype.torch is None:
        return bool((array_out(a, "Tensor.equal") == array_out(b, "Tensor.equal")).all())
    mine, theirs = operand_out(a), operand_out(b)
    return bool((mine == theirs).all())


def shown(tensor):
    """The repr of an at.Tensor: elements as torch prints them, with the bridge's names."""
    cdef TensorImpl impl = _impl(tensor)
    if impl.storage is None:
        return "at.Tensor()"
    try:
        impl.data("Tensor.__repr__")
    except EnforceNotMet as error:
        return (f"at.Tensor(<{error.message}>, sizes={impl.sizes().vec()}, "
                f"dtype={impl.c_dtype})")
    if impl.c_numel > 1000 or impl.ndim > 64:
        values = "..."
    else:
        try:
            values = repr(tolist(tensor))
        except (ImportError, TypeError, BufferError):
            values = "..."      # neither NumPy nor torch has the type
    where = "" if impl.device() == "cpu" else f", device='{impl.device()}'"
    sizes = "" if impl.c_numel <= 1000 and impl.c_numel else f", sizes={impl.sizes().vec()}"
    only = ", readonly" if tensor.readonly else ""
    return f"at.Tensor({values}{sizes}, dtype={impl.c_dtype}{where}{only})"


def write_back(TensorImpl impl, tensor):
    """Copy what torch wrote into a copy of `impl`; nothing where it shared the memory."""
    cdef TensorImpl back
    if impl.c_numel == 0 or impl.origin is tensor:
        return
    if tensor.data_ptr() == <size_t>impl.data("Tensor"):
        return
    back = ingest(tensor)
    if back.c_dtype is impl.c_dtype:
        copy_elements(impl, views.expand(back, impl.c_sizes, impl.ndim, "Tensor"), "Tensor")


def mark_readonly(TensorImpl impl):
    """Have the memory of `impl` read as read-only by all that share its Storage."""
    impl.storage.flags |= 1


def mark_owned(TensorImpl impl):
    """Say that nobody but the bridge has the memory of `impl`, an operation's new result."""
    impl.storage.flags &= ~EXTERNAL


def take_metadata(TensorImpl impl, TensorImpl view):
    """Have `impl` look at its Storage as `view` does."""
    impl.set_strided(view.c_sizes, view.c_strides(), view.ndim, view.c_numel)
    impl.offset = view.offset
