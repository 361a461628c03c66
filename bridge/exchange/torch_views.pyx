# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""To torch, a Storage is one torch storage: every tensor of it that goes out is a view of that.

So torch sees where its operands overlap, `as_strided` counts from one begin, and `torch.save` and
`deepcopy` find out what is shared.

The torch storage of a Storage is that of its *base*:

    the memory is                       the base is
    an imported torch tensor's          that tensor (`ctx`)
    the same, retained                  a tensor of all of its storage, made here
    of torch's allocator (CUDA)         the tensor that the DataPtr owns
    anything else                       a tensor of all of the buffer, made here by DLPack

A base that is made here is kept in `Storage.base` until the Storage gets another buffer. It stays
inside: aliases of it go out.

A view is an alias of the base that ``as_strided_`` gives its sizes (together 1.1 of what
``as_strided`` takes) where the base has its type, else it is made by ``set_``. torch dispatches
both, so a mode or a transform that is active may turn the view into something else, and an
operation that ran on the base may have changed it. The view is therefore compared with `impl`, and
made once more where it differs: without modes, and then from a new base.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memcmp

from bridge.c10.allocator cimport DataPtr
from bridge.c10.layout cimport extent
from bridge.c10.python_api cimport Py_TYPE, owned, pointer, take_pending
from bridge.c10.storage cimport (
    BORROWED,
    Storage,
    begin_of,
    nbytes_of,
    owner_of,
    set_flags,
)
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, new_impl, seen
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.dlpack.abi cimport (
    DL_COMPLEX,
    DL_CPU,
    DL_CUDA,
    DL_CUDA_HOST,
    DL_CUDA_MANAGED,
    DL_ROCM_HOST,
    DLDataType,
    DLManagedTensor,
    DLManagedTensorVersioned,
    DLTensor,
)
from bridge.dlpack.capsule cimport call_deleter, new_capsule
from bridge.exchange.dlpack_export cimport (
    HELD,
    export_legacy,
    export_versioned,
    release_versioned,
)
from bridge.exchange.torch_api cimport (
    address_of,
    is_plain,
    is_tensor,
    torch,
    torch_c,
    torch_type,
    untyped_storage,
    without_modes,
)
from bridge.exchange.torch_layout cimport described, has_lazy_bit, reads_offset
from bridge.exchange.torch_storage cimport torch_owner

from bridge.exchange.torch_devices import lacks_memory, require_torch_device

cdef TypeMeta _byte = as_type("uint8")


cdef bint is_same_by_torch(TensorImpl impl, object tensor) except -1:
    """Do as `is_same_tensor`, by torch's description of the tensor."""
    cdef object _kept
    cdef DLTensor now
    cdef int i
    impl = seen(impl)
    if Py_TYPE(tensor) != torch_type() and hasattr(tensor, "_is_read_only"):
        tensor = getattr(tensor, "_plain")      # see bridge.readonly_torch
    if (_kept := described(tensor, &now)) is None:
        return False            # whatever it is, that tensor has no memory now
    if now.ndim != impl.ndim or memcmp(
            &now.dtype, &impl.c_dtype.c_dlpack, sizeof(DLDataType)) != 0:
        return False
    for i in range(now.ndim):
        if now.shape[i] != impl.c_sizes[i] or (
                now.strides[i] != impl.c_strides()[i] and now.shape[i] > 1):
            return False
    if impl.c_numel and <char*>now.data != \
            <char*>pointer(<void**>&impl.storage.data) + impl.offset * impl.c_dtype.itemsize:
        return False
    return not has_lazy_bit(tensor, now.dtype.code == DL_COMPLEX)


cdef object torch_view(TensorImpl impl, bint inside):
    """Return a torch.Tensor of the memory of `impl`, a view of the torch storage it lies in.

    torch can hold its sizes, strides and elements. `inside`: the base itself may be returned, which
    must not get out; else it is a new tensor. Raises BufferError: torch lacks the type or device.
    """
    cdef Storage storage
    cdef uintptr_t address
    cdef object dtype
    cdef int attempt = 0
    impl = seen(impl)
    address = <uintptr_t>impl.data("to_torch")
    storage = impl.storage
    dtype = impl.c_dtype.torch
    if storage.device_type != DL_CPU and torch_owner(storage) is None:
        require_torch_device(storage.device_type, storage.device_index)
    if impl.c_numel == 0 or dtype is None:
        return taken_by_torch(impl)
    while True:
        base = _base(storage, impl)
        if base is None:            # the memory cannot be a part of that torch storage
            return taken_by_torch(impl)
        if attempt == 0 and base is storage.base and _is_whole(impl, storage) \
                and is_same_tensor(impl, base):
            return base if inside else outgoing_alias(impl, base)
        try:
            tensor = _without_modes(impl, base, dtype, address) if attempt \
                else _expected_view(impl, base, dtype, address)
        except _NotAView:
            return taken_by_torch(impl)
        except MemoryError:
            raise
        except Exception as error:      # FakeTensorMode raises AssertionError
            if attempt == 2:
                raise BufferError(
                    f"torch makes no view of this memory; another thread may change it: {error}"
                ) from error
            tensor = None
        if tensor is not None and Py_TYPE(tensor) == torch_type() and is_same_tensor(impl, tensor):
            return tensor
        if attempt == 2:
            raise BufferError(
                "torch gives a view of other memory here. Convert outside of torch's modes and "
                "transforms.")
        if attempt == 1:
            with cython.critical_section(storage):
                if storage.base is base:
                    storage.base = None
        attempt += 1


cdef object view_of(TensorImpl impl, object base=None):
    """Return a new torch.Tensor of the memory of `impl`, in the torch storage of `base`.

    None: one of its own. None is returned if its elements are not at multiples of their size there.
    """
    if base is None:
        return taken_by_torch(impl)
    impl = seen(impl)
    try:
        return _view(impl, base, impl.c_dtype.torch, <uintptr_t>impl.data("to_torch"))
    except _NotAView:
        return None


class _NotAView(Exception):
    """The elements do not lie at a multiple of their size in torch's storage."""


cdef bint _is_whole(TensorImpl impl, Storage storage) noexcept:
    """Return whether `impl` has all of the memory, in row-major order."""
    return impl.flags & CONTIGUOUS and impl.offset == 0 \
        and impl.c_numel * impl.c_dtype.itemsize == nbytes_of(storage)


cdef object _expected_view(TensorImpl impl, object base, object dtype, uintptr_t address):
    """Do as `_view` for the base of its Storage, which is taken to be as the Storage has it."""
    cdef Storage storage = impl.storage
    cdef int64_t offset = <int64_t>(address - <uintptr_t>begin_of(storage))
    cdef int64_t begin = reads_offset(<PyObject*>base, impl.c_dtype)
    if begin < 0:
        return _view(impl, base, dtype, address)
    if offset % impl.c_dtype.itemsize:
        raise _NotAView
    offset = begin + offset // impl.c_dtype.itemsize
    # The alias is not a view to autograd: nothing that happens to it reaches the base.
    return alias_of(base).as_strided_(
        _tuple(impl.c_sizes, impl.ndim), _torch_strides(impl), offset)


cdef object _view(TensorImpl impl, object base, object dtype, uintptr_t address):
    """Return a plain torch.Tensor of sizes, strides and type of `impl` at `address`."""
    cdef object _kept
    cdef int64_t itemsize = impl.c_dtype.itemsize
    cdef int64_t offset
    cdef DLTensor now
    sizes, strides = _tuple(impl.c_sizes, impl.ndim), _torch_strides(impl)
    if is_plain(base) and (_kept := described(base, &now)) is not None and memcmp(
            &now.dtype, &impl.c_dtype.c_dlpack, sizeof(DLDataType)) == 0 \
            and not has_lazy_bit(base, now.dtype.code == DL_COMPLEX) and not base.is_inference():
        offset = <int64_t>(address - <uintptr_t>now.data)
        if offset % itemsize:
            raise _NotAView
        offset = <int64_t>base.storage_offset() + offset // itemsize
        return alias_of(base).as_strided_(sizes, strides, offset)   # as in `_expected_view`
    untyped = untyped_storage(base)
    offset = <int64_t>(address - address_of(untyped))
    if offset % itemsize:
        raise _NotAView
    if torch.is_inference_mode_enabled():
        # what is made in inference mode cannot be written outside of it
        with torch.inference_mode(False):
            return _set(untyped, dtype, offset // itemsize, sizes, strides)
    return _set(untyped, dtype, offset // itemsize, sizes, strides)


cdef object _set(object untyped, object dtype, int64_t offset, tuple sizes, tuple strides):
    return torch.empty(0, dtype=dtype, device=untyped.device).set_(untyped, offset, sizes, strides)


cdef object _without_modes(TensorImpl impl, object base, object dtype, uintptr_t address):
    with without_modes():
        return _view(impl, base, dtype, address)


cdef tuple _tuple(const int64_t* values, int n):
    cdef tuple found = PyTuple_New(n)
    cdef object value
    cdef int i
    for i in range(n):
        value = values[i]
        Py_INCREF(value)
        PyTuple_SET_ITEM(found, i, value)
    return found


cdef tuple _torch_strides(TensorImpl impl):
    """Return the strides, none of them negative: those left lie in dimensions of one element."""
    cdef tuple strides = _tuple(impl.c_strides(), impl.ndim)
    cdef int i
    for i in range(impl.ndim):
        if impl.c_strides()[i] < 0:
            return tuple([abs(stride) for stride in strides])
    return strides


cdef object outgoing_alias(TensorImpl impl, object tensor):
    """Return another torch.Tensor over the memory of `tensor`, which `impl` has, to give out.

    As for a view, modes and transforms have no say in it.
    """
    try:
        made = alias_of(tensor)
    except MemoryError:
        raise
    except Exception:       # FakeTensorMode raises AssertionError
        made = None
    if made is not None and Py_TYPE(made) == torch_type() and is_same_tensor(impl, made):
        return made
    with without_modes():
        return alias_of(tensor)


cdef object alias_of(object tensor):
    """Return another torch.Tensor over the same memory: ``tensor.data``.

    torch's dispatcher does not see that, so it takes two thirds of the time of ``detach()``.
    """
    cdef PyObject* made
    if torch_c.data == NULL:
        return tensor.data
    made = torch_c.data(<PyObject*>tensor, torch_c.data_closure)
    if made == NULL:
        error = take_pending()
        if lacks_memory(error):
            raise MemoryError(f"torch has no memory for a tensor: {error}") from error
        raise error
    return owned(made)


cdef object _base(Storage storage, TensorImpl impl):
    """Return a torch.Tensor whose storage has the memory of `storage`.

    `impl`: a tensor of that Storage, which is checked.
    """
    cdef object owner, base
    owner = owner_of(storage)
    if is_tensor(owner):
        return owner
    base = storage.base
    if base is not None:
        if base.requires_grad:      # after an operation in place with such an operand
            base = base.detach()
            _keep(storage, owner, base)
        return base
    if type(owner) is DataPtr and (<DataPtr>owner).memory is not None:
        return _lent_out(storage, (<DataPtr>owner).memory)
    if torch.is_inference_mode_enabled():
        with torch.inference_mode(False):       # as in `_view`
            base = _made(storage, owner, impl)
    else:
        base = _made(storage, owner, impl)
    _keep(storage, owner, base)
    return base


cdef object _lent_out(Storage storage, object memory):
    """Return `memory`, the bridge's tensor of torch's allocator, from which views go out now."""
    if not is_tensor(memory):
        return None
    if untyped_storage(memory).resizable():
        with cython.critical_section(storage):
            set_flags(storage, storage.flags | BORROWED)    # the receiver can resize it from now on
    return memory


cdef int _keep(Storage storage, object owner, object base) except -1:
    with cython.critical_section(storage):
        if storage.ctx is owner:        # another thread may have given it another buffer
            storage.base = base
    return 0


cdef object _made(Storage storage, object owner, TensorImpl impl):
    """Return a new base for memory that no torch.Tensor owns."""
    cdef TensorImpl whole
    cdef int64_t itemsize = impl.c_dtype.itemsize
    cdef int64_t nbytes = nbytes_of(storage)
    cdef int64_t n
    cdef TypeMeta dtype
    if isinstance(owner, torch.UntypedStorage):
        dtype = _byte if len(owner) % itemsize else impl.c_dtype
        with without_modes():
            return torch.empty(0, dtype=dtype.torch, device=owner.device).set_(owner)
    if _is_whole(impl, storage):
        return taken_by_torch(impl)
    dtype = _byte if nbytes % itemsize else impl.c_dtype
    n = nbytes // dtype.itemsize
    whole = new_impl(storage, dtype)
    whole.set_contiguous(&n, 1, n)
    return taken_by_torch(whole)


cdef object taken_by_torch(TensorImpl impl):
    """Return a new torch.Tensor of the memory of `impl`, in a torch storage of its own."""
    cdef DLManagedTensorVersioned* managed
    cdef bint accepted
    cdef void* out = NULL
    if torch_c.dlpack == NULL:
        return _taken_as_bytes(impl)
    managed = export_versioned(impl, 0, HELD)
    managed.dl_tensor.device.device_type = _torch_device_type(
        managed.dl_tensor.device.device_type)
    accepted = torch_c.dlpack.managed_tensor_to_py_object_no_sync(managed, &out) == 0 \
        and out != NULL
    if not release_versioned(managed, accepted) and not accepted:
        call_deleter(managed, True)
    if not accepted:
        _raise_refused(impl, take_pending())
    return owned(<PyObject*>out)


cdef int _raise_refused(TensorImpl impl, object error) except -1:
    if lacks_memory(error):
        raise MemoryError(f"torch has no memory for a tensor: {error}") from error
    reason = str(error).partition("\n")[0]      # the others are frames of C++
    raise BufferError(
        f"torch does not take a tensor of {impl.dtype()} on {impl.device()}: {reason}. "
        "Convert it first, as with bridge.asarray(x, dtype='float32').") from error


cdef object _taken_as_bytes(TensorImpl impl):
    """Do as `taken_by_torch` before torch 2.10, whose capsules carry fewer types than it has."""
    cdef DLManagedTensor* managed
    cdef TensorImpl whole
    cdef int64_t itemsize, n, low = 0, high
    impl = seen(impl)
    itemsize = impl.c_dtype.itemsize
    if impl.c_dtype.torch is None or (impl.c_dtype.c_dlpack.bits < 8
                                      and impl.c_dtype.c_dlpack.lanes == 1):
        from bridge.exchange.torch_versions import lacking

        since = lacking(torch.__version__).get(impl.c_dtype.name)
        _raise_refused(impl, TypeError(
            f"torch {torch.__version__} has no such type"
            + (f"; torch {since} has it" if since else "")))
    high = impl.c_numel - 1
    if impl.c_numel:
        extent(impl.c_sizes, impl.c_strides(), impl.ndim, &low, &high)
    n = (high + 1) * itemsize
    whole = new_impl(impl.storage, _byte)
    whole.set_contiguous(&n, 1, n)
    whole.offset = impl.offset * itemsize
    # Read-only memory gets here only if the caller said writable=True.
    managed = export_legacy(whole, True)
    managed.dl_tensor.device.device_type = _torch_device_type(
        managed.dl_tensor.device.device_type)
    capsule = new_capsule(managed, False)
    try:
        base = torch.utils.dlpack.from_dlpack(capsule)
    except Exception as error:
        _raise_refused(impl, error)
    untyped = untyped_storage(base)
    sizes, strides = _tuple(impl.c_sizes, impl.ndim), _torch_strides(impl)
    if not torch.is_inference_mode_enabled():
        try:
            tensor = _set(untyped, impl.c_dtype.torch, 0, sizes, strides)
        except MemoryError:
            raise
        except Exception:       # FakeTensorMode's AssertionError
            tensor = None
        if tensor is not None and Py_TYPE(tensor) == torch_type() \
                and is_same_tensor(impl, tensor):
            return tensor
    # A mode or a transform is active. torch's guards end the process where they find no memory.
    with without_modes(), torch.inference_mode(False):
        return _set(untyped, impl.c_dtype.torch, 0, sizes, strides)


cdef int _torch_device_type(int device_type) noexcept:
    """Return the device type that torch knows the memory by: page-locked memory is the CPU's."""
    if device_type == DL_CUDA_HOST or device_type == DL_ROCM_HOST:
        return DL_CPU
    return DL_CUDA if device_type == DL_CUDA_MANAGED else device_type
