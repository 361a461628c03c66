# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""Workarounds for torch.from_dlpack, which mishandles four kinds of DLPack tensors.

Its arguments to ``__dlpack__`` are those of consumers that handle them correctly, so it is
recognised by the calling frame. All were seen with torch 2.13. Remove each workaround
when the oldest supported torch no longer needs it:

- It ignores DLPack's read-only flag, so writes would change read-only memory. It receives a copy,
  until torch refuses the flag or has read-only tensors.
- A negative stride aborts the process (an uncaught C++ exception). It receives a copy, until torch
  raises an error.
- Page-locked memory (``DLDeviceType::kDLCUDAHost``) is an unsupported device. It is described as
  memory of the CPU, which it also is, until torch maps it to ``pin_memory``. Managed memory is
  described as CUDA memory.
- A device that is not there is not noticed, or ends the process. It is refused.
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
