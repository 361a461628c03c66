# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""torch's settings that change what operations compute, and running without them.

Operators compute the same under ``torch.set_default_device``, ``torch.inference_mode``,
``torch.autocast`` and other contexts of the caller. The settings are those of a thread.
"""

import contextlib
import sys
import threading

from bridge.c10.python_api cimport publish, published

# torch's functions that read the settings, once torch is there; set by one thread.
cdef object _lock = threading.Lock()
cdef int _are_known = False
cdef object _function_modes = None      # the number of modes, one of them the default device's
cdef object _autocast = None
cdef object _inference = None
cdef tuple _observers = None
cdef object _forward_ad = None


cdef bint _are_there() except -1:
    """Return whether torch has been imported; its functions are known then."""
    global _function_modes, _autocast, _inference, _observers, _forward_ad
    if published(&_are_known):
        return True
    torch = sys.modules.get("torch")
    if torch is None or torch.__spec__._initializing:   # by another thread
        return False
    with _lock:
        if not _are_known:
            _function_modes = torch._C._len_torch_function_stack
            _autocast = torch._C._is_any_autocast_enabled
            _inference = torch.is_inference_mode_enabled
            _observers = (
                torch._C._len_torch_dispatch_stack,
                torch._C._get_tracing_state,
                torch._C._functorch.peek_interpreter_stack,
            )
            _forward_ad = torch.autograd.forward_ad
            publish(&_are_known, True)
    return True


cpdef bint is_neutral() except -1:
    """Return whether no such setting is in effect in this thread. torch is not imported for it."""
    return not _are_there() or (
        _inference() is False and _autocast() is False and not _function_modes())


cpdef bint is_observed() except -1:
    """Return whether torch records what is called, or calls something else instead.

    It does under dispatch modes, ``torch.jit.trace``, transforms and forward-mode autograd.
    """
    if not _are_there():
        return False
    for observer in _observers:
        if observer():
            return True
    return _forward_ad._current_level >= 0


@contextlib.contextmanager
def neutral() -> AbstractContextManager[None]:
    """Return a context in which the settings are off."""
    if is_neutral():
        yield
        return
    import torch

    with contextlib.ExitStack() as stack:
        if torch._C._len_torch_function_stack():
            stack.enter_context(torch._C.DisableTorchFunction())
        if torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.no_grad())
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield
