# SPDX-License-Identifier: Apache-2.0
# The binary interface of DLPack 1.3, declared here and nowhere else.
# As in the DLPack specification; enumerations are declared as the integers that
# carry them, so that an unknown value is not undefined behaviour.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef enum:
    DLPACK_MAJOR = 1
    DLPACK_MINOR = 3

# DLManagedTensorVersioned.flags
cdef enum:
    DLPACK_READ_ONLY = 1
    DLPACK_IS_COPIED = 2
    DLPACK_SUBBYTE_PADDED = 4

# DLDevice.device_type, those that the package distinguishes
cdef enum:
    DL_CPU = 1
    DL_CUDA = 2
    DL_CUDA_HOST = 3
    DL_ROCM = 10
    DL_ROCM_HOST = 11
    DL_EXT_DEV = 12
    DL_CUDA_MANAGED = 13

cdef inline bint has_streams(int32_t device_type) noexcept nogil:
    """Return whether work on memory of this device type is queued in streams."""
    return (device_type == DL_CUDA or device_type == DL_ROCM
            or device_type == DL_CUDA_MANAGED)

# DLDataType.code
cdef enum:
    DL_INT = 0
    DL_UINT = 1
    DL_FLOAT = 2
    DL_OPAQUE = 3
    DL_BFLOAT = 4
    DL_COMPLEX = 5
    DL_BOOL = 6

ctypedef struct DLPackVersion:
    uint32_t major
    uint32_t minor

ctypedef struct DLDevice:
    int32_t device_type
    int32_t device_id

ctypedef struct DLDataType:
    uint8_t code
    uint8_t bits                # of one lane
    uint16_t lanes

ctypedef struct DLTensor:
    void* data                  # may be NULL where there are no elements
    DLDevice device
    int32_t ndim
    DLDataType dtype
    int64_t* shape              # elements; NULL only where ndim == 0
    int64_t* strides            # elements; NULL: compact row-major (before 1.2)
    uint64_t byte_offset        # from data to the first element

ctypedef struct DLManagedTensor:
    DLTensor dl_tensor
    void* manager_ctx
    void (*deleter)(DLManagedTensor*) noexcept

ctypedef struct DLManagedTensorVersioned:
    DLPackVersion version
    void* manager_ctx
    void (*deleter)(DLManagedTensorVersioned*) noexcept
    uint64_t flags
    DLTensor dl_tensor

ctypedef void (*DLSetError)(void* error_ctx, const char* kind, const char* message) noexcept

# The exchange table: the attribute `__dlpack_c_exchange_api__` of a type is a capsule
# named "dlpack_exchange_api" with a pointer to it. It lives as long as the process.
ctypedef struct DLPackExchangeAPIHeader:
    DLPackVersion version
    DLPackExchangeAPIHeader* prev_api

ctypedef struct DLPackExchangeAPI:
    DLPackExchangeAPIHeader header
    int (*managed_tensor_allocator)(
        DLTensor* prototype, DLManagedTensorVersioned** out,
        void* error_ctx, DLSetError set_error) noexcept
    int (*managed_tensor_from_py_object_no_sync)(
        void* py_object, DLManagedTensorVersioned** out) noexcept
    int (*managed_tensor_to_py_object_no_sync)(
        DLManagedTensorVersioned* tensor, void** out_py_object) noexcept
    int (*dltensor_from_py_object_no_sync)(void* py_object, DLTensor* out) noexcept
    int (*current_work_stream)(
        int32_t device_type, int32_t device_id, void** out_stream) noexcept
