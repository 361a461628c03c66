# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""torch's classes and C functions, looked up once, when the first of its tensors is seen."""

import sys
import threading
from contextlib import ExitStack

from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport uintptr_t

from bridge.c10.python_api cimport Py_TYPE, owned, publish_pointer
from bridge.dlpack.abi cimport DLPACK_MAJOR, DLPackExchangeAPI
from bridge.c10.slots cimport getter_function, noargs_function

cdef extern from "Python.h":
    PyObject* PyDict_GetItemWithError(object, object) noexcept  # borrowed; NULL: not there

cdef object torch = None
cdef dict _forward_mode = {}    # the names of torch.autograd.forward_ad
cdef str _LEVEL = "_current_level"
cdef object _NO_LEVEL = -1
cdef list _callbacks = []       # of on_torch_loaded, until they have been called
cdef object _loading = threading.RLock()    # held while `torch_c` and the above are filled
cdef list _descriptors = []     # keeps the descriptors whose C functions are in torch_c


cdef bint torch_loaded() except -1:
    """Return whether torch is imported, and look up what is called of it. Does not import it."""
    if torch_type() != NULL and not _callbacks:
        return True
    # None: marked as absent; without Tensor: in the middle of being imported
    if getattr(sys.modules.get("torch"), "Tensor", None) is None:
        return False
    load_torch()
    return True


cdef int load_torch() except -1:
    """Import torch and fill `torch_c`. Raises ImportError: torch is not installed."""
    if torch_type() != NULL and not _callbacks:
        return 0
    try:
        import torch as module
        module._C.TensorBase
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"torch is needed here and cannot be imported: {error}. "
            "Install it with: pip install torch") from error
    with _loading:
        if torch_type() == NULL:
            _look_up(module)
    while True:
        with _loading:
            if not _callbacks:
                return 0
            callback = _callbacks.pop(0)
        try:
            callback()
        except BaseException:
            _callbacks.append(callback)     # the next call tries again
            raise


cdef int _look_up(object module) except -1:
    """Fill `torch_c` from the module torch; `tensor_type`, which says that it is filled, last."""
    global torch, _forward_mode
    base = module._C.TensorBase
    capsule = getattr(module.Tensor, "__dlpack_c_exchange_api__", None)
    is_neg, is_conj, requires_grad = base.is_neg, base.is_conj, base.requires_grad
    data = base.data
    storage, resizable = base.untyped_storage, module.UntypedStorage.resizable
    address = module.UntypedStorage.data_ptr
    _descriptors[:] = [capsule, is_neg, is_conj, requires_grad, data, storage, resizable, address]
    torch_c.data = getter_function(<PyObject*>data, &torch_c.data_closure)
    torch_c.is_neg = noargs_function(<PyObject*>is_neg)
    torch_c.is_conj = noargs_function(<PyObject*>is_conj)
    torch_c.untyped_storage = noargs_function(<PyObject*>storage)
    torch_c.resizable = noargs_function(<PyObject*>resizable)
    torch_c.address = noargs_function(<PyObject*>address)
    torch_c.requires_grad = getter_function(
        <PyObject*>requires_grad, &torch_c.requires_grad_closure)
    if torch_c.is_conj == NULL or torch_c.requires_grad == NULL:
        torch_c.is_neg = NULL
    if torch_c.is_neg != NULL:
        torch_c.dlpack = _exchange_table(capsule)
    torch = module
    _forward_mode = vars(module.autograd.forward_ad)
    torch_c.parameter_type = <PyTypeObject*>module.nn.Parameter
    tensor_class = module.Tensor
    publish_pointer(<void**>&torch_c.tensor_type, <void*>tensor_class)
    return 0


cdef DLPackExchangeAPI* _exchange_table(object capsule) except? NULL:
    """Return torch's table of the DLPack version that the bridge reads; NULL if there is none."""
    cdef DLPackExchangeAPI* table
    if capsule is None or not PyCapsule_IsValid(capsule, "dlpack_exchange_api"):
        return NULL
    table = <DLPackExchangeAPI*>PyCapsule_GetPointer(capsule, "dlpack_exchange_api")
    while table != NULL and table.header.version.major != DLPACK_MAJOR:
        table = <DLPackExchangeAPI*>table.header.prev_api
    if table != NULL and table.dltensor_from_py_object_no_sync == NULL:
        return NULL
    return table


cpdef bint is_read_only_class(object cls: type) except -1:
    """Return whether tensors of this subclass of torch.Tensor are read-only.

    Those of bridge.readonly_torch are, and those whose exchange table is torch's second one, which
    exports read-only memory (torch 2.14: ``torch.utils.dlpack.ReadOnlyTensorWrapper``).
    """
    if hasattr(cls, "_is_read_only"):
        return True
    load_torch()
    get_second = getattr(torch._C, "_const_dlpack_exchange_api", None)
    capsule = getattr(cls, "__dlpack_c_exchange_api__", None)
    return get_second is not None and PyCapsule_IsValid(capsule, "dlpack_exchange_api") \
        and PyCapsule_GetPointer(capsule, "dlpack_exchange_api") \
        == PyCapsule_GetPointer(get_second(), "dlpack_exchange_api")


def on_torch_loaded(callback: Callable[[], None]) -> None:
    """Call `callback()` when torch's first tensor is seen; at once if one was seen before."""
    with _loading:
        is_loaded = torch_type() != NULL
        if not is_loaded:
            _callbacks.append(callback)
    if is_loaded:
        callback()


cdef object without_modes():
    """Leave torch's modes and transforms, until the block ends: ``with without_modes():``.

    Takes 12 us.
    """
    left = ExitStack()
    left.enter_context(torch.utils._python_dispatch._disable_current_modes())
    left.enter_context(torch._C.DisableTorchFunction())
    left.enter_context(torch._C._DisableFuncTorch())
    return left


cpdef bint is_torch_tensor(object x: object):  # pyi: TypeIs[torch.Tensor]
    """Return whether `x` is a torch.Tensor or of a subclass. Does not import torch."""
    return torch_loaded() and isinstance(x, <object>torch_type())


cdef bint is_plain(object x) noexcept:
    """Return whether `x` is a torch.Tensor or Parameter, and of no other subclass."""
    cdef PyTypeObject* cls = torch_type()
    return cls != NULL and (Py_TYPE(x) == cls or Py_TYPE(x) == torch_c.parameter_type)


cpdef bint has_tangent(object tensor: torch.Tensor) except -1:
    """Return whether a torch.Tensor is a dual tensor of forward-mode autograd."""
    load_torch()
    cdef PyObject* level = PyDict_GetItemWithError(_forward_mode, _LEVEL)
    if level == NULL or level == <PyObject*>_NO_LEVEL:
        return False        # tangents exist only inside of ``dual_level()``
    with torch._C.DisableTorchFunctionSubclass():
        return torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None


cdef object untyped_storage(object tensor):
    """Return the torch.UntypedStorage of `tensor`; a subclass is not asked."""
    if Py_TYPE(tensor) == torch_type():
        if torch_c.untyped_storage != NULL:
            return owned(torch_c.untyped_storage(<PyObject*>tensor, NULL))
        return torch.Tensor.untyped_storage(tensor)
    with torch._C.DisableTorchFunctionSubclass():
        return torch.Tensor.untyped_storage(tensor)


cdef bint is_resizable(object untyped) except -1:
    """Return whether the memory of a torch.UntypedStorage may be replaced by resizing it."""
    if torch_c.resizable != NULL:
        return owned(torch_c.resizable(<PyObject*>untyped, NULL))
    return untyped.resizable()


cdef uintptr_t address_of(object untyped) except? 1:
    """Return the address of the memory of a torch.UntypedStorage."""
    if torch_c.address != NULL:
        return owned(torch_c.address(<PyObject*>untyped, NULL))
    return untyped.data_ptr()
