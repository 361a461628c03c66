# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""Workarounds for consumers of DLPack that mishandle some of it.

The arguments of torch.from_dlpack and paddle.from_dlpack to ``__dlpack__`` are those of consumers
that handle them correctly, so the two are recognised by the calling frame; tvm-ffi, which calls the
C exchange table, by the library that the calling code is in. All was seen with torch 2.13,
Paddle 3.3 and tvm-ffi 0.1.15. Remove each workaround when the oldest supported version no longer
needs it:

- All three ignore DLPack's read-only flag, so writes would change read-only memory. They receive a
  copy.
- A negative stride aborts the process in torch (an uncaught C++ exception), and Paddle reads other
  memory. They receive a copy.
- Page-locked memory (``DLDeviceType::kDLCUDAHost``) is an unsupported device in torch and Paddle.
  It is described as memory of the CPU, which it also is, and managed memory as CUDA memory.
- torch and Paddle do not notice a device that is not there, or end the process. It is refused.

A consumer that takes a capsule from its caller's hand cannot be recognised.
"""

from sys import modules as _modules

from cpython.object cimport PyObject

from bridge.c10.storage cimport READONLY
from bridge.c10.tensor_impl cimport TensorImpl, device_index_of, device_type_of, storage_flags
from bridge.dlpack.abi cimport DL_CPU, DL_CUDA, DL_CUDA_HOST, DL_CUDA_MANAGED
from bridge.exchange.device_memory cimport as_cpu_memory, as_cuda_memory
from bridge.exchange.torch_export cimport fit_for_torch, has_negative_strides

from bridge.c10.device import Device
from bridge.exchange.torch_devices import require_torch_device

cdef extern from "Python.h":
    PyObject* current_frame "(PyObject*)PyEval_GetFrame"()

cdef extern from *:
    """
    /* dladdr is declared in <dlfcn.h> only if _GNU_SOURCE is defined before the first header, as
       Python.h does. */
    #include <string.h>
    #ifdef _WIN32               /* not tried */
    static int bridge_is_in(void *code, const char *name) {
        HMODULE module;
        char path[1024];
        DWORD n;
        if (!GetModuleHandleExA(
                GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                    GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, (LPCSTR)code, &module))
            return 0;
        n = GetModuleFileNameA(module, path, sizeof path);
        return n > 0 && n < sizeof path && strstr(path, name) != NULL;
    }
    #else
    #include <dlfcn.h>
    static int bridge_is_in(void *code, const char *name) {
        Dl_info info;
        return dladdr(code, &info) && info.dli_fname && strstr(info.dli_fname, name) != NULL;
    }
    #endif
    """
    bint bridge_is_in(void* code, const char* name)

# The modules that call __dlpack__ -> the library's name.
cdef dict _LIBRARIES = {"torch.utils.dlpack": "torch", "paddle.utils.dlpack": "Paddle"}


cdef TensorImpl fit_for_consumer(TensorImpl impl, object copy):
    """Return what the caller of `__dlpack__` gets: `impl`, the same memory described otherwise, or
    a copy if it needs one.

    Raises BufferError: the caller needs a copy and `copy` is False, or lacks the device.
    """
    cdef int device_type = device_type_of(impl)
    if device_type == DL_CPU and not storage_flags(impl) & READONLY \
            and not has_negative_strides(impl):
        return impl
    library = _LIBRARIES.get(_calling_module())
    if library is None:
        return impl
    _require_device(library, device_type, device_index_of(impl))
    impl = fit_for_torch(impl, copy, False, library)
    if device_type == DL_CUDA_HOST:
        return as_cpu_memory(impl)
    return as_cuda_memory(impl) if device_type == DL_CUDA_MANAGED else impl


cdef int require_consumer_device(int device_type, int index) except -1:
    """Raise BufferError if the caller of `__dlpack_device__` would crash on the device."""
    library = _LIBRARIES.get(_calling_module())
    return 0 if library is None else _require_device(library, device_type, index)


cdef int _require_device(str library, int device_type, int index) except -1:
    if library == "torch":
        require_torch_device(device_type, index)
        return 0
    if device_type == DL_CPU or device_type == DL_CUDA_HOST:
        return 0
    count = 0
    if device_type == DL_CUDA or device_type == DL_CUDA_MANAGED:
        paddle = _modules["paddle"]
        count = paddle.device.cuda.device_count() if paddle.is_compiled_with_cuda() else 0
    if index >= count:
        raise BufferError(
            f"There is no such device here: {Device((device_type, max(index, 0)))} (Paddle sees "
            f"{count} of its type).")
    return 0


cdef bint is_tvm_ffi(void* code) noexcept:
    """Return whether the machine code at an address is of tvm-ffi's Python package."""
    return bridge_is_in(code, "tvm_ffi")


cdef str _calling_module():
    """Return the name of the module of the Python function that called into the bridge."""
    cdef PyObject* innermost = current_frame()
    if innermost == NULL:
        return ""
    frame = <object>innermost
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not isinstance(name, str):
            return ""
        if not name.startswith("bridge."):
            return str(name)
        frame = frame.f_back            # bridge.audit, which calls again
    return ""
