# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef TensorImpl fit_for_consumer(TensorImpl impl, object copy)
cdef bint is_tvm_ffi(void* code) noexcept
cdef int require_consumer_device(int device_type, int index) except -1

cdef extern from *:
    # The address of the code that called this function, if the compiler can tell.
    """
    #ifdef __GNUC__
    #define bridge_caller __builtin_return_address(0)
    #elif defined(_MSC_VER)
    #define bridge_caller _ReturnAddress()
    #else
    #define bridge_caller NULL
    #endif
    """
    void* caller "bridge_caller"
