# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""From torch.Tensor to TensorImpl, through torch's DLPack exchange table.

The table describes a tensor in a DLTensor that is valid during the call, and the Storage keeps
the Python tensor: half the time of an owning import, and the same object can go out again. The
table does not check what `__dlpack__` checks (requires_grad, the lazy conjugate and negative
bits), so this module does, by torch's own methods. `torch_storage` sees to it that the memory
is still there when it is used.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memcmp

from bridge.c10.copy cimport requested_copy, require_copy
from bridge.c10.layout cimport MAX_BYTES, extent
from bridge.c10.python_api cimport (
    drop_reference,
    pointer,
    raise_pending,
    set_pointer,
    take_pending,
)
from bridge.c10.reports cimport report_copy
from bridge.c10.storage cimport (
    BORROWED,
    EXTERNAL,
    LENT,
    UNVERIFIED,
    Storage,
    set_borrow_hooks,
    set_flags,
)
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, new_pair, storage_flags
from bridge.c10.type_meta cimport TypeMeta, as_type, from_dlpack_type
from bridge.dlpack.abi cimport DL_BOOL, DL_COMPLEX, DL_INT, DL_UINT, DLDataType, DLTensor
from bridge.exchange.dlpack_import cimport adopt
from bridge.exchange.torch_api cimport has_tangent, load_torch, torch, torch_c
from bridge.exchange.torch_layout cimport described, reads_plain
from bridge.exchange.torch_storage cimport check_borrowed, lead_of_lent, retain_borrowed

from bridge.c10.reports import ASKED as _ASKED
from bridge.exchange.torch_api import on_torch_loaded

cdef extern from "Python.h":
    PyObject* Py_True
    PyObject* PyDict_GetItemWithError(object, object) noexcept  # borrowed; NULL: not there

cdef enum:
    NO_MEMORY = 1 << 16     # no system maps memory below; a view of a freed storage lies there

# The names of torch.autograd.forward_ad, which say whether tensors may have tangents. They are read
# here, before `has_tangent` is called, which saves 2 % of the import.
cdef dict _forward_mode = {}
cdef str _LEVEL = "_current_level"
cdef object _NO_LEVEL = -1

# The TypeMeta of the last import, likely that of the next; a pointer, which threads without a lock
# between them may read and write. No TypeMeta with a DLPack type is ever deleted.
cdef TypeMeta _float32 = as_type("float32")
cdef PyObject* _last_type = <PyObject*>_float32


def _watch_forward_mode():
    global _forward_mode
    _forward_mode = vars(torch.autograd.forward_ad)


on_torch_loaded(_watch_forward_mode)


cdef bint _is_true(PyObject* answer) except -1:
    """Return the truth of a new reference to a bool."""
    cdef bint yes
    if answer == NULL:
        raise_pending()
    yes = answer == Py_True
    drop_reference(answer)
    return yes


cdef TensorImpl import_torch(object tensor, object copy):
    """Return the TensorImpl of a plain torch.Tensor or Parameter; its memory is shared.

    What needs a closer look goes to `import_any_torch`, which copies or, if `copy` is False,
    refuses.
    """
    cdef object _kept
    cdef DLTensor now
    cdef TensorImpl impl
    cdef Storage storage
    cdef TypeMeta dtype
    cdef PyObject* t = <PyObject*>tensor
    cdef PyObject* last
    cdef int64_t low, high
    cdef bint plain
    if torch_c.dlpack == NULL:
        if torch_c.is_neg == NULL or (_kept := described(tensor, &now)) is None:
            return import_any_torch(tensor, copy)   # says why
    elif torch_c.dlpack.dltensor_from_py_object_no_sync(t, &now) != 0:
        _refuse(tensor, take_pending())
    plain = reads_plain(t)
    if not plain and _is_true(torch_c.is_neg(t, NULL)):
        return import_any_torch(tensor, copy)
    if now.dtype.code != DL_INT and now.dtype.code != DL_UINT \
            and now.dtype.code != DL_BOOL:
        if _is_true(torch_c.requires_grad(t, torch_c.requires_grad_closure)):
            _refuse_grad()
        if PyDict_GetItemWithError(_forward_mode, _LEVEL) != <PyObject*>_NO_LEVEL \
                and has_tangent(tensor):
            _refuse_tangent()
        if not plain and now.dtype.code == DL_COMPLEX and _is_true(torch_c.is_conj(t, NULL)):
            return import_any_torch(tensor, copy)
    elif now.dtype.bits <= 8 and now.dtype.code != DL_BOOL \
            and tensor.dtype is not torch.uint8 and tensor.dtype is not torch.int8:
        return import_any_torch(tensor, copy)
    if <uintptr_t>now.data < NO_MEMORY:
        _refuse_unless_empty(tensor, &now)
    last = <PyObject*>pointer(<void**>&_last_type)
    if memcmp(&now.dtype, &(<TypeMeta>last).c_dlpack, sizeof(DLDataType)) == 0:
        dtype = <TypeMeta>last
    else:
        dtype = from_dlpack_type(now.dtype)
        if dtype is not None:
            set_pointer(<void**>&_last_type, <void*>dtype)
    if dtype is None or (<uintptr_t>now.data & 15) != 0:
        return _adopted(&now, tensor, copy)
    # As `adopt`, without its checks of sizes and strides, in which torch is trusted.
    impl = new_pair(now.device.device_type, now.device.device_id, dtype)
    storage = impl.storage
    impl.set_described(now.shape, now.strides, now.ndim)
    high = impl.c_numel - 1
    if not impl.flags & CONTIGUOUS and (
            impl.c_numel > MAX_BYTES
            or extent(impl.c_sizes, impl.c_strides(), impl.ndim, &low, &high) != 0
            or high > MAX_BYTES):
        # elements that are repeated may be more than any memory
        return _adopted(&now, tensor, copy)
    impl.origin = tensor
    storage.ctx = tensor
    storage.data = <char*>now.data
    storage.c_dtype = dtype
    storage.c_nbytes = (high + 1) * dtype.itemsize
    storage.flags = BORROWED | UNVERIFIED | EXTERNAL | LENT
    return impl


cdef TensorImpl _adopted(DLTensor* now, object tensor, object copy):
    cdef TensorImpl impl = adopt(now, tensor, BORROWED | UNVERIFIED | LENT, False, copy)
    if impl.storage.ctx is tensor:
        impl.origin = tensor
    return impl


cpdef int refuse_gradient(object tensor: torch.Tensor) except -1:
    """Raise BufferError if a torch.Tensor requires grad, in grad mode, or has a tangent."""
    if tensor.requires_grad and torch.is_grad_enabled():
        _refuse_grad()
    if has_tangent(tensor):
        _refuse_tangent()
    return 0


cdef int _refuse_grad() except -1:
    raise BufferError(
        "The tensor requires grad, and autograd would not see what the bridge does to it. "
        "Use tensor.detach().")


cdef int _refuse_tangent() except -1:
    raise BufferError(
        "The tensor has a tangent of forward-mode autograd, which would be lost. Use "
        "torch.autograd.forward_ad.unpack_dual(tensor).primal.")


cdef int _refuse_unless_empty(object tensor, DLTensor* now) except -1:
    # torch reports NULL for tensors without elements as well
    cdef int i
    for i in range(now.ndim):
        if now.shape[i] == 0:
            return 0
    _refuse(tensor, None)


cdef int _refuse(object tensor, object error) except -1:
    """Raise BufferError with the reason why a torch tensor has no memory to exchange."""
    from bridge.exchange.torch_state import why_not
    raise BufferError(why_not(tensor, error)) from error


cpdef TensorImpl import_any_torch(object tensor: torch.Tensor, object copy: bool | None = None):
    """Return the TensorImpl of any torch tensor: shared, or copied where sharing is impossible.

    Lazy conjugate and negative bits are resolved by a copy. ``copy=True`` always copies,
    ``copy=False`` never. Raises BufferError: the tensor can neither be shared nor copied.
    """
    cdef TensorImpl impl
    load_torch()
    from bridge.exchange import torch_state
    with torch._C.DisableTorchFunctionSubclass():
        if not torch_state.is_one_block(tensor) or tensor.is_quantized:
            _refuse(tensor, None)
        torch_state.require_initialised(tensor)
        torch_state.require_whole_bytes(tensor)
        try:
            without_memory = torch_state.is_without_memory(tensor)
        except Exception as error:
            _refuse(tensor, error)
        if without_memory:
            _refuse(tensor, None)
        if tensor.requires_grad:
            _refuse_grad()
        if has_tangent(tensor):
            _refuse_tangent()
        if tensor.is_conj() or tensor.is_neg():
            return _resolved(tensor, copy)
        impl = _described(tensor, False if copy is False else None)
    if storage_flags(impl) & UNVERIFIED:
        impl.storage.check()
    if copy is True:
        return requested_copy(impl, "from_dlpack")
    return impl


cpdef TensorImpl import_new_torch(object tensor: torch.Tensor):
    """Return the TensorImpl of a torch tensor that nobody else has, as memory of the bridge."""
    cdef TensorImpl impl = import_any_torch(tensor, None)
    set_flags(impl.storage, impl.storage.flags & ~EXTERNAL)
    return impl


cdef TensorImpl _resolved(object tensor, object copy):
    """Return a copy of a tensor with a lazy bit; its memory holds the values the tensor shows."""
    which = "conjugate" if tensor.is_conj() else "negative"
    require_copy(copy, tensor.nbytes, f"its memory has torch's lazy {which} bit, and other values")
    # clone resolves both bits, in one copy
    plain = tensor.clone(memory_format=torch.contiguous_format)
    return import_new_torch(plain.resolve_conj().resolve_neg())


cdef TensorImpl _described(object tensor, object copy):
    """Return the TensorImpl of a tensor that has memory."""
    cdef object _kept
    cdef DLTensor now
    if torch_c.dlpack == NULL:
        if (_kept := described(tensor, &now)) is None:
            _refuse(tensor, None)
    elif torch_c.dlpack.dltensor_from_py_object_no_sync(<PyObject*>tensor, &now) != 0:
        _refuse(tensor, take_pending())
    if <uintptr_t>now.data < NO_MEMORY:
        _refuse_unless_empty(tensor, &now)
    return _adopted(&now, tensor, copy)


cdef object clone_torch(object tensor):
    """Return a copy of a torch tensor, by torch. Raises BufferError: torch cannot copy it."""
    from bridge.exchange import torch_state
    with torch._C.DisableTorchFunctionSubclass():
        torch_state.require_initialised(tensor)
        if torch_state.exceeds_storage(tensor):
            _refuse(tensor, None)
        nbytes = tensor.numel() * tensor.dtype.itemsize
    report_copy(nbytes, _ASKED)
    try:
        return tensor.clone()
    except Exception as error:
        from bridge.exchange.refusal import reason_of
        raise BufferError(
            f"torch does not copy this {type(tensor).__name__}: {reason_of(error)}") from error


# The calls from c10 up to exchange: a Storage with a framework's memory has it checked here.
set_borrow_hooks(check_borrowed, retain_borrowed, lead_of_lent)
