# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""What torch.from_dlpack does to tensors it does not understand, and what it is handed instead.

Consumers are told apart by their arguments to ``__dlpack__``, but torch.from_dlpack passes the
same ones as consumers that understand all of this. So it is recognised by the frame that calls.
Seen with torch 2.13; no released torch ends any of the three, and each goes when the oldest
supported torch does better:

- It ignores DLPack's read-only flag, and writes go to memory that must not change. Ends with a
  torch that refuses the flag or has read-only tensors. Until then it gets a copy.
- A negative stride aborts the process (a C++ exception that nothing catches). Ends with a torch
  that raises. Until then it gets a copy.
- Page-locked memory (``DLDeviceType::kDLCUDAHost``) is an unsupported device. Ends with a torch
  that maps it to ``pin_memory``. Until then it is described as the CPU's, which it is as well.
"""

from cpython.object cimport PyObject

from bridge.c10.storage cimport READONLY
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.exchange.torch_export cimport fit_for_torch, has_negative_strides

cdef extern from "Python.h":
    PyObject* current_frame "(PyObject*)PyEval_GetFrame"()


cdef TensorImpl fit_for_consumer(TensorImpl impl, object copy):
    """Return what the caller of `__dlpack__` gets: `impl`, or a copy if torch needs one.

    Raises BufferError: torch needs a copy and `copy` is False.
    """
    if not impl.storage.flags & READONLY and not has_negative_strides(impl) \
            or not torch_is_consumer():
        return impl
    return fit_for_torch(impl, copy, False)


cdef bint torch_is_consumer() except -1:
    """Return whether the Python function that called into the bridge is torch.from_dlpack."""
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
