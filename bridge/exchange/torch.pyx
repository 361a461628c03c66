# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""torch, through its DLPack exchange table and public methods.

In. The table's DLTensor is read while the call lasts, and the Python tensor is
kept instead of a DLPack one: half the time of an owning import, and the same
object can go out again. The table does not look at what `__dlpack__` looks at
(requires_grad, the lazy conjugate and negative bits), so this module does, by
torch's own methods.

What a kept tensor does not promise is that its memory stays: `resize_`, `set_`
and an assignment to `.data` let go of it, and a storage may have been shrunk
under it before. Asking torch for the storage costs 2 us for a tensor whose
storage Python has not seen yet, ten times the import itself (measured with torch
2.13), so it is asked at the first access to the data and not at import: the
Storage is BORROWED, and checked before every read (`_check`). Only what lies at
NULL or a little above, as in a freed storage, is refused at once. Where memory is
handed out for good, it is pinned (`_pin`): a tensor of torch's over the same
storage is kept, and the storage made unresizable, as torch's own `numpy()` does. For
CUDA memory torch has no way to do that, so it is checked before reads from then on, too.

Out. The tensor that came in, while the metadata agree; otherwise a new one made
by the table from a DLPack tensor that holds the buffer. Memory that is torch's own and
not the CPU's goes out as a tensor of torch's storage: `record_stream` and `is_pinned` know
no other.
"""

import sys

from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memcmp

from bridge.c10.allocator cimport DataPtr
from bridge.c10.array_ref cimport Dims, new_dims
from bridge.c10.copy cimport asked_copy, copied_since
from bridge.c10.layout cimport extent
from bridge.c10.observe cimport copying
from bridge.c10.slots cimport c_getter, c_method, getter_function, noargs_function
from bridge.c10.storage cimport (
    BORROWED,
    EXTERNAL,
    HELD,
    READONLY,
    UNVERIFIED,
    Storage,
    set_borrow_hooks,
)
from bridge.c10.tensor_impl cimport CONTIGUOUS, LENT, TensorImpl, new_pair
from bridge.c10.type_meta cimport TypeMeta, as_type, from_dlpack_type
from bridge.c10.views cimport alias
from bridge.dlpack.abi cimport (
    DL_BOOL,
    DL_COMPLEX,
    DL_CPU,
    DL_CUDA,
    DL_CUDA_HOST,
    DL_CUDA_MANAGED,
    DL_INT,
    DL_ROCM_HOST,
    DL_UINT,
    DLPACK_MAJOR,
    DLDataType,
    DLManagedTensorVersioned,
    DLPackExchangeAPI,
    DLTensor,
)
from bridge.exchange.export cimport export_legacy, export_versioned
from bridge.exchange.incoming cimport adopt, adopt_managed
from bridge.dlpack.capsule cimport make, take

from bridge.c10.copy import set_device_copier
from bridge.c10.errors import EnforceBufferError
from bridge.c10.observe import ASKED as _ASKED

cdef extern from "Python.h":
    PyTypeObject* Py_TYPE(object)
    PyObject* Py_True
    PyObject* PyErr_Occurred()
    PyObject* current_frame "(PyObject*)PyEval_GetFrame"()
    Py_ssize_t PyObject_Size(object) except -1
    object PyObject_CallMethodNoArgs(object, object)
    object PyObject_GetAttr(object, object)
    void _drop_one "Py_DECREF"(PyObject*)

cdef enum:
    NO_MEMORY = 1 << 16     # no system has memory below; a view of a freed storage is there

cdef PyTypeObject* torch_tensor_type = NULL
cdef PyTypeObject* torch_parameter_type = NULL
cdef DLPackExchangeAPI* _api = NULL
# torch's own methods, called without Python's method lookup: a third of their time
cdef c_method _is_neg = NULL
cdef c_method _is_conj = NULL
cdef c_getter _requires_grad = NULL
cdef void* _requires_grad_closure = NULL
cdef c_getter _data = NULL
cdef void* _data_closure = NULL
cdef object _torch = None
cdef TypeMeta _last_type = as_type("float32")   # of the last import: mostly that of the next
cdef list _waiting = []         # what when_met was given
cdef list _kept = []            # descriptors whose functions are called


cdef bint meet_torch() except -1:
    """Fetch torch's exchange table if torch is imported; whether it is there."""
    if torch_tensor_type != NULL:
        return True
    # None: marked as absent; without Tensor: in the middle of being imported
    if getattr(sys.modules.get("torch"), "Tensor", None) is None:
        return False
    _fetch()
    return True


cdef int _fetch() except -1:
    global _api, _is_neg, _is_conj, _requires_grad, _data, _torch
    global torch_tensor_type, torch_parameter_type
    cdef DLPackExchangeAPI* api = NULL
    try:
        import torch
        base = torch._C.TensorBase
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"torch is needed here and cannot be imported: {error}. "
            "Install it with: pip install torch") from error
    capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is not None and PyCapsule_IsValid(capsule, "dlpack_exchange_api"):
        api = <DLPackExchangeAPI*>PyCapsule_GetPointer(capsule, "dlpack_exchange_api")
        while api != NULL and api.header.version.major != DLPACK_MAJOR:
            api = <DLPackExchangeAPI*>api.header.prev_api
        if api != NULL and api.dltensor_from_py_object_no_sync == NULL:
            api = NULL
    is_neg, is_conj, requires_grad = base.is_neg, base.is_conj, base.requires_grad
    data = base.data
    _kept[:] = [capsule, is_neg, is_conj, requires_grad, data]
    _data = getter_function(<PyObject*>data, &_data_closure)
    _is_neg = noargs_function(<PyObject*>is_neg)
    _is_conj = noargs_function(<PyObject*>is_conj)
    _requires_grad = getter_function(<PyObject*>requires_grad, &_requires_grad_closure)
    if _is_neg == NULL or _is_conj == NULL or _requires_grad == NULL:
        api = NULL              # another torch than the fast path knows: ask in Python
    _api = api
    _torch = torch
    torch_parameter_type = <PyTypeObject*>torch.nn.Parameter
    torch_tensor_type = <PyTypeObject*>torch.Tensor
    waiting, _waiting[:] = list(_waiting), ()
    for callback in waiting:
        callback()
    return 0


def when_met(callback):
    """Have `callback()` called when torch's first tensor is met; at once if that was."""
    if torch_tensor_type != NULL:
        callback()
    else:
        _waiting.append(callback)


cdef int _raise_pending() except -1:
    return -1                   # with the exception that a C function has set


cpdef bint is_torch_tensor(object x):
    """Whether `x` is a torch.Tensor or of a subclass. Does not import torch."""
    return meet_torch() and isinstance(x, <object>torch_tensor_type)


cdef object _pending():
    """The exception that a C function has set, taken from the thread; None: it has set none."""
    if PyErr_Occurred() == NULL:
        return None
    try:
        _raise_pending()
    except Exception as error:
        return error


cdef bint _asks(PyObject* answer) except -1:
    """The truth of a new reference to a bool."""
    cdef bint yes
    if answer == NULL:
        _raise_pending()
    yes = answer == Py_True
    _drop_one(answer)
    return yes


cdef TensorImpl tensor_in(object tensor, object copy):
    """The TensorImpl of a plain torch.Tensor or Parameter, its memory shared.

    What needs a second look goes to `any_tensor_in`, which copies or, where `copy` is
    False and not None, refuses.
    """
    cdef DLTensor described
    cdef TensorImpl impl
    cdef Storage storage
    cdef TypeMeta dtype
    cdef PyObject* t = <PyObject*>tensor
    cdef int64_t low, high
    global _last_type
    if _api == NULL:
        return any_tensor_in(tensor, copy)
    if _api.dltensor_from_py_object_no_sync(t, &described) != 0:
        _refuse(tensor, _pending())
    if _asks(_is_neg(t, NULL)):
        return any_tensor_in(tensor, copy)
    if described.dtype.code != DL_INT and described.dtype.code != DL_UINT \
            and described.dtype.code != DL_BOOL:
        if _asks(_requires_grad(t, _requires_grad_closure)):
            _refuse_grad()
        if described.dtype.code == DL_COMPLEX and _asks(_is_conj(t, NULL)):
            return any_tensor_in(tensor, copy)
    elif described.dtype.bits == 8 and described.dtype.code != DL_BOOL \
            and tensor.dtype is not _torch.uint8 and tensor.dtype is not _torch.int8:
        return any_tensor_in(tensor, copy)
    if <uintptr_t>described.data < NO_MEMORY:
        _refuse_empty(tensor, &described)
    if memcmp(&described.dtype, &_last_type.c_dlpack, sizeof(DLDataType)) == 0:
        dtype = _last_type
    else:
        dtype = from_dlpack_type(described.dtype)
        if dtype is not None:
            _last_type = dtype
    if dtype is None or (<uintptr_t>described.data & 15) != 0:
        return _adopted(&described, tensor, copy)
    # What `adopt` would do, less what torch is believed: sizes, strides and their product.
    impl = new_pair(described.device.device_type, described.device.device_id, dtype)
    storage = impl.storage
    impl.set_described(described.shape, described.strides, described.ndim)
    high = impl.c_numel - 1
    if not impl.flags & CONTIGUOUS:
        extent(impl.c_sizes, impl.c_strides(), impl.ndim, &low, &high)
    impl.origin = tensor
    storage.ctx = tensor
    storage.data = <char*>described.data
    storage.c_dtype = dtype
    storage.c_nbytes = (high + 1) * dtype.itemsize
    storage.flags = BORROWED | UNVERIFIED | EXTERNAL
    return impl


cdef TensorImpl _adopted(DLTensor* described, object tensor, object copy):
    cdef TensorImpl impl = adopt(described, tensor, BORROWED | UNVERIFIED, False, copy)
    if impl.storage.ctx is tensor:
        impl.origin = tensor
    return impl


cdef int _refuse_grad() except -1:
    raise BufferError(
        "The tensor requires grad, and what the bridge would do to it autograd would not see. "
        "Use tensor.detach().")


cdef int _refuse_empty(object tensor, DLTensor* described) except -1:
    # torch gives NULL for tensors without elements as well
    cdef int i
    for i in range(described.ndim):
        if described.shape[i] == 0:
            return 0
    _refuse(tensor, None)


cdef int _refuse(object tensor, object error) except -1:
    """BufferError that says why a tensor of torch's has no memory to exchange."""
    from bridge.exchange.torch_state import why_not
    raise BufferError(why_not(tensor, error)) from error


cpdef TensorImpl any_tensor_in(object tensor, object copy=None):
    """The TensorImpl of any torch tensor: shared, or copied where it must be and may.

    Lazy conjugate and negative bits are resolved by a copy. `copy=True` copies
    always, `copy=False` never. BufferError where neither sharing nor copying is
    right.
    """
    cdef TensorImpl impl
    meet_torch()                # nobody may have asked yet whether this is torch's
    from bridge.exchange import torch_state
    with _torch._C.DisableTorchFunctionSubclass():
        if not torch_state.one_block(tensor) or tensor.is_quantized:
            _refuse(tensor, None)
        torch_state.require_initialised(tensor)
        torch_state.require_whole_bytes(tensor)
        try:
            hollow = torch_state.is_hollow(tensor)
        except Exception as error:
            _refuse(tensor, error)
        if hollow:
            _refuse(tensor, None)
        if tensor.requires_grad:
            _refuse_grad()
        if tensor.is_conj() or tensor.is_neg():
            return _resolved(tensor, copy)
        impl = _described(tensor, False if copy is False else None)
    if impl.storage.flags & UNVERIFIED:
        impl.storage.check()
    if copy is True:
        return asked_copy(impl, "from_dlpack")
    return impl


cdef TensorImpl _resolved(object tensor, object copy):
    """A copy of a tensor with a lazy bit, which has the values that it shows."""
    cdef TensorImpl impl
    if copy is False:
        which = "conjugate" if tensor.is_conj() else "negative"
        raise BufferError(
            f"The tensor has torch's lazy {which} bit: its memory holds other values "
            f"than it shows, so it cannot be shared. Use tensor.resolve_conj()"
            ".resolve_neg(), or allow a copy with copy=None.")
    copying(tensor.nbytes, "its memory has torch's lazy conjugate or negative bit")
    # clone resolves both bits, in one copy
    plain = tensor.clone(memory_format=_torch.contiguous_format)
    impl = any_tensor_in(plain.resolve_conj().resolve_neg(), None)
    impl.storage.flags &= ~EXTERNAL     # nobody else has it
    return impl


cdef TensorImpl _described(object tensor, object copy):
    """The TensorImpl of a tensor that has memory: what the table says of it, or __dlpack__."""
    cdef DLTensor described
    if _api == NULL:
        # before torch 2.10: an owning import, by the methods that torch had then
        try:
            capsule = _torch.Tensor.__dlpack__(tensor)
        except Exception as error:
            _refuse(tensor, error)
        return adopt_managed(take(capsule), 0, copy)
    if _api.dltensor_from_py_object_no_sync(<PyObject*>tensor, &described) != 0:
        _refuse(tensor, _pending())
    if <uintptr_t>described.data < NO_MEMORY:
        _refuse_empty(tensor, &described)
    return _adopted(&described, tensor, copy)


cdef object _untyped(object tensor):
    if Py_TYPE(tensor) == torch_tensor_type:
        return _torch.Tensor.untyped_storage(tensor)
    with _torch._C.DisableTorchFunctionSubclass():  # not for a subclass to answer
        return _torch.Tensor.untyped_storage(tensor)


cdef int _check(Storage storage) except -1:
    """Whether the tensor that lends the memory still has it there."""
    cdef DLTensor now
    cdef uintptr_t begin, end
    if storage.c_nbytes == 0:
        return 0
    if type(storage.ctx) is DataPtr:
        if <uintptr_t>_torchs_own(storage).data_ptr() != <uintptr_t>storage.data:
            raise EnforceBufferError(
                "torch has resized the storage that this memory was, through a tensor that "
                "to_torch() gave; the memory is gone.", "Storage", condition="tensor.data_ptr() as allocated")
        return 0
    if _api.dltensor_from_py_object_no_sync(<PyObject*>storage.ctx, &now) != 0:
        raise EnforceBufferError(
            "The torch tensor that this memory came from has none any more.",
            "Storage") from _pending()
    if <char*>now.data != storage.data:
        raise EnforceBufferError(
            "The torch tensor that this memory came from was resized, or given other memory, "
            "after it was imported; the memory is gone. Import it again.", "Storage",
            condition="tensor.data_ptr() as at import")
    if storage.flags & UNVERIFIED:
        untyped = _untyped(storage.ctx)
        begin = untyped.data_ptr()
        end = begin + <uintptr_t>PyObject_Size(untyped)
        if <uintptr_t>storage.data < begin \
                or <uintptr_t>storage.data + <uintptr_t>storage.c_nbytes > end:
            raise EnforceBufferError(
                f"The storage of the torch tensor has {end - begin} bytes, fewer than the "
                "tensor's sizes and strides reach: it was resized under the tensor.", "Storage",
                condition="sizes and strides lie within the storage")
        storage.flags &= ~UNVERIFIED
    return 0


cdef int _pin(Storage storage) except -1:
    """Keep the memory for good: whatever becomes of the tensor, its storage stays."""
    _check(storage)
    if storage.c_nbytes == 0 or storage.flags & HELD or type(storage.ctx) is DataPtr:
        return 0
    torch = _torch
    owner = storage.ctx
    untyped = _untyped(owner)
    holder = torch.empty(0, dtype=torch.uint8, device=untyped.device)
    on_host = untyped.device.type == "cpu"
    if on_host:
        holder.set_(untyped)
        holder.numpy()          # torch marks the storage: resize_ raises from now on
    else:
        # Here torch cannot be kept from resizing it, so it is looked at again each time.
        holder.set_(untyped, <uintptr_t>storage.data - <uintptr_t>untyped.data_ptr(),
                    (storage.c_nbytes,), (1,))
    if storage.ctx is owner:    # another thread may have given the storage other memory
        storage.ctx = holder
        storage.flags &= ~(BORROWED | UNVERIFIED) if on_host else ~UNVERIFIED
        if not on_host:
            storage.flags |= HELD
    return 0


set_borrow_hooks(_check, _pin)


cdef object _torchs_own(Storage storage):
    """A torch.Tensor whose storage the memory is of; None: it is not torch's."""
    owner = storage.ctx
    if type(owner) is DataPtr:
        owner = (<DataPtr>owner).memory
    if torch_tensor_type != NULL and isinstance(owner, <object>torch_tensor_type):
        return owner
    return None


cpdef object tensor_out(TensorImpl impl, object copy=None, bint writable=False):
    """A torch.Tensor of the same memory: the one that came in, or a new one.

    Memory that torch cannot express, read-only or with negative strides, is
    copied unless `copy` is False; `writable` shares read-only memory all the same.
    """
    if copy is not True and impl.origin is not None:
        if impl.flags & LENT:
            if not impl.storage.flags & READONLY and _unchanged(impl):
                return _alias(impl.origin)
        elif torch_tensor_type != NULL and isinstance(impl.origin, <object>torch_tensor_type):
            return impl.origin
    return new_tensor(impl, copy, writable)


cdef object _alias(object tensor):
    """Another torch.Tensor over the same memory: ``tensor.data``, which torch's dispatcher
    does not see and which therefore takes two thirds of the time of ``detach()``."""
    cdef PyObject* made = _data(<PyObject*>tensor, _data_closure)
    if made == NULL:
        _raise_pending()
    other = <object>made
    _drop_one(made)
    return other


cpdef object operand_out(TensorImpl impl):
    """A torch.Tensor for an operation on the memory of `impl`, read-only memory included.

    The one that came in only if it still is what came in: torch may have resized it,
    given it other memory, or made it require grad since.
    """
    if impl.origin is not None and torch_tensor_type != NULL \
            and isinstance(impl.origin, <object>torch_tensor_type) and _unchanged(impl) \
            and not impl.origin.requires_grad:
        impl.storage.check()
        return impl.origin
    impl.require_defined("Tensor")
    return new_tensor(impl, None, (impl.storage.flags & READONLY) != 0)


cdef bint _unchanged(TensorImpl impl) except -1:
    """Whether `origin` still has the sizes, strides and memory of `impl`."""
    cdef DLTensor now
    cdef int i
    if _api == NULL:
        return False
    if _api.dltensor_from_py_object_no_sync(<PyObject*>impl.origin, &now) != 0:
        _pending()              # whatever it is: that tensor has no memory now
        return False
    if now.ndim != impl.ndim:
        return False
    for i in range(now.ndim):
        if now.shape[i] != impl.c_sizes[i] or (
                now.strides[i] != impl.c_strides()[i] and now.shape[i] > 1):
            return False
    return impl.c_numel == 0 or <char*>now.data == \
        impl.storage.data + impl.offset * impl.c_dtype.itemsize


cdef object new_tensor(TensorImpl impl, object copy, bint writable):
    """A torch.Tensor that did not come in: of the memory of `impl`, or of a copy of it."""
    cdef DLManagedTensorVersioned* managed
    cdef TensorImpl fitting
    cdef void* out = NULL
    if torch_tensor_type == NULL:
        _fetch()
    impl.require_defined("to_torch")
    if copy is True:
        return tensor_out(asked_copy(impl, "to_torch"))
    fitting = _fitting(impl, copy, writable)
    if fitting is not impl:
        return tensor_out(fitting)
    if impl.storage.device_type != DL_CPU:
        tensor = _over_its_storage(impl)
        if tensor is not None:
            return _lent(impl, tensor, writable)
    if _api == NULL:
        return _out_by_capsule(impl)
    managed = export_versioned(impl, 0)
    managed.dl_tensor.device.device_type = _as_torch_says(impl.storage.device_type)
    if _api.managed_tensor_to_py_object_no_sync(managed, &out) != 0 or out == NULL:
        # what the table refuses it leaves with us
        managed.deleter(managed)
        error = _pending()
        raise BufferError(
            f"torch does not take a tensor of {impl.c_dtype} on {impl.device()}: {error}. "
            "Convert it first, as with bridge.asarray(x, dtype='float32').") from error
    tensor = <object><PyObject*>out
    _drop_one(<PyObject*>out)
    return _lent(impl, tensor, writable)


cdef int _as_torch_says(int device_type) noexcept:
    """The type of a device in torch's terms, which has no name for memory that is of two."""
    if device_type == DL_CUDA_HOST or device_type == DL_ROCM_HOST:
        return DL_CPU
    return DL_CUDA if device_type == DL_CUDA_MANAGED else device_type


cdef object _over_its_storage(TensorImpl impl):
    """A tensor of the storage of torch's that the memory is of; None: there is none."""
    cdef uintptr_t begin
    cdef uintptr_t first = <uintptr_t>impl.data("to_torch")
    backing, dtype = _torchs_own(impl.storage), impl.c_dtype.torch
    if backing is None or dtype is None or impl.c_numel == 0:
        return None
    untyped = _untyped(backing)
    begin = untyped.data_ptr()
    if first < begin or (first - begin) % <uintptr_t>impl.c_dtype.itemsize:
        return None
    tensor = _torch.empty(0, dtype=dtype, device=untyped.device)
    tensor.set_(untyped, (first - begin) // <uintptr_t>impl.c_dtype.itemsize,
                tuple(impl.sizes()), tuple(impl.strides()))
    if untyped.resizable():
        impl.storage.flags |= BORROWED      # now that others can do so
    return tensor


cdef object _lent(TensorImpl impl, object tensor, bint writable):
    """`tensor`, made of the memory of `impl`, to hand out; kept for the next time if it may be."""
    if impl.storage.flags & (EXTERNAL | READONLY) or writable or _data == NULL \
            or tensor.is_inference():
        # (what inference mode makes may not be written outside of it, so it serves once)
        return tensor
    # Memory of our own: this tensor stays here, and aliases of it go out, now and the
    # next time. What is done to an alias's metadata is its own affair.
    impl.origin = tensor
    impl.flags |= LENT
    return _alias(tensor)


cdef TensorImpl for_asker(TensorImpl impl, object copy):
    """What goes to who calls `__dlpack__`: `impl`, or a copy where that is torch and needs one.

    torch.from_dlpack overlooks DLPack's read-only flag, and at negative strides it ends the
    process. It asks as consumers ask that know both, so it is told by the frame it asks from.
    BufferError: a copy is needed, and `copy` is False.
    """
    if not impl.storage.flags & READONLY and not _runs_backwards(impl) or not torch_asks():
        return impl
    return _fitting(impl, copy, False)


cdef TensorImpl _fitting(TensorImpl impl, object copy, bint writable):
    """`impl` where torch can hold its memory as it is, else a copy.

    `writable`: read-only memory may be shared. BufferError: a copy is needed, and `copy` is False.
    """
    cdef str why, instead = ""
    if impl.storage.flags & READONLY and not writable:
        why = "the memory is read-only, which a torch tensor cannot be"
        instead = ", or share it with to_torch(writable=True) and do not write"
    elif _runs_backwards(impl):
        why = f"the strides {impl.strides().vec()} are negative, which torch has not"
    else:
        return impl
    if copy is False:
        raise BufferError(
            f"torch cannot share it: {why}. Allow a copy with copy=None{instead}.")
    return copied_since(impl, why, "to_torch")


cdef bint _runs_backwards(TensorImpl impl) noexcept:
    cdef int i
    if impl.c_numel:
        for i in range(impl.ndim):
            if impl.c_strides()[i] < 0 and impl.c_sizes[i] > 1:
                return True
    return False


cdef bint torch_asks() except -1:
    """Whether what called into the bridge is torch.from_dlpack."""
    cdef PyObject* innermost = current_frame()
    if innermost == NULL:
        return False
    frame = <object>innermost
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not isinstance(name, str) or not name.startswith("bridge."):
            return name == "torch.utils.dlpack"
        frame = frame.f_back            # bridge.audit, which calls again
    return False


cdef object cloned(object tensor):
    """A copy of a torch tensor, by torch. BufferError: there is nothing to be copied."""
    from bridge.exchange import torch_state
    with _torch._C.DisableTorchFunctionSubclass():
        torch_state.require_initialised(tensor)
        if torch_state.outgrown(tensor):
            _refuse(tensor, None)
        nbytes = tensor.numel() * tensor.dtype.itemsize
    copying(nbytes, _ASKED)
    try:
        return tensor.clone()
    except Exception as error:
        raise BufferError(f"torch does not copy this {type(tensor).__name__}: {error}") from error


cdef object _out_by_capsule(TensorImpl impl):
    # before torch 2.10; read-only memory gets here only by the caller's word, writable=True
    return _torch.utils.dlpack.from_dlpack(make(export_legacy(impl, True), False))


cdef object forward_out(TensorImpl impl):
    """A torch.Tensor of the same elements to write to, in the order of memory: what runs
    backwards in `impl` runs forwards there."""
    cdef TensorImpl turned
    cdef Dims strides
    cdef int64_t offset
    cdef int i
    if not _runs_backwards(impl):
        return operand_out(impl)
    offset = impl.offset
    strides = new_dims(impl.ndim)
    for i in range(impl.ndim):
        strides.data[i] = impl.c_strides()[i]
        if strides.data[i] < 0:
            offset += (impl.c_sizes[i] - 1) * strides.data[i]
            strides.data[i] = -strides.data[i]
    turned = alias(impl, "to_torch")
    turned.set_strided(impl.c_sizes, strides.data, impl.ndim, impl.c_numel)
    turned.offset = offset
    return operand_out(turned)


def copy_between_devices(TensorImpl dst, TensorImpl src):
    """Copy elements where the CPU cannot reach, by torch on its current stream.

    Done when this returns where one of the two is in host memory. Raises EnforceBufferError:
    torch cannot, and why.
    """
    if torch_tensor_type == NULL:
        _fetch()
    try:
        to, source = forward_out(dst), forward_out(src)
        turned = [i for i in range(src.ndim)
                  if src.c_sizes[i] > 1 and (src.c_strides()[i] < 0) != (dst.c_strides()[i] < 0)]
        to.copy_(source.flip(turned) if turned else source)
    except (BufferError, MemoryError):
        raise
    except Exception as error:
        raise EnforceBufferError(
            f"torch does not copy from {src.device()} to {dst.device()}: {error}",
            "copy") from error


set_device_copier(copy_between_devices)
