# SPDX-License-Identifier: Apache-2.0
"""Devices, element types, memory, and the TensorImpl that both wrappers refer to.

Threads, with the GIL or without it (docs/threads.md has the rules for users):

- A change of a tensor is one critical section of its TensorImpl, the exchange of a buffer one of
  its Storage. A reader of several numbers of a tensor reads them in one section, or from a snapshot
  (`seen` in tensor_impl.pxd). A reader of elements takes the owner of the memory and the address
  until the two agree (`retained_owner`, `TensorImpl.held`).
- A section of the object that the innermost section of the thread holds takes no lock, as in
  CPython 3.14; in 3.13 it would let other threads into the outer one (nested_sections.h).
- One number of a tensor, a storage or the process is read and written whole (`word` in
  python_api.pxd).
- Releasing an object may run Python, or wait, and so lets other threads into a section. A tensor's
  former parts are released when the change is complete (`former`).
- A buffer is installed with its size last, and its address is read until it stays, so that the size
  of one buffer is never taken for another's. A section that has to wait gives up those outside it,
  so a caller that needs two objects at one moment takes both at once (`copy_to_array`).
- Counts are atomic: users of a storage, statistics of an allocator.
- Element types, devices and the namespaces of `caffe2` live as long as the process and are
  immortal: no count of their references goes from processor to processor.
"""

from __future__ import annotations

import builtins as _builtins

from bridge.annotation import Any
from bridge.c10.allocator import Allocator, AllocatorStats, DataPtr, GetAllocator, SetAllocator
from bridge.c10.array_ref import ArrayRef
from bridge.c10.device import Device, DeviceType
from bridge.c10.errors import (
    EnforceAssertionError,
    EnforceBufferError,
    EnforceIndexError,
    EnforceKeyError,
    EnforceNotMet,
    EnforceTypeError,
    EnforceValueError,
)
from bridge.c10.options import TensorOptions
from bridge.c10.storage import Storage
from bridge.c10.tensor_impl import TensorImpl, UndefinedTensorImpl
from bridge.c10.type_meta import ROWS as _ROWS
from bridge.c10.type_meta import TypeMeta
from bridge.c10.type_meta import as_type as _type
from bridge.lazy import listed as _listed

IntArrayRef = ArrayRef

(
    CPU, CUDA, CUDAHost, OpenCL, Vulkan, Metal, VPI, ROCM, ROCMHost, ExtDev, CUDAManaged, OneAPI,
    WebGPU, Hexagon, MAIA, Trn, TPU, TPUHost,
) = DeviceType  # fmt: skip


def dtype(T: Any) -> TensorOptions:
    """Return TensorOptions with the element type `T`."""
    return TensorOptions(dtype=T)


def device(D: Any) -> TensorOptions:
    """Return TensorOptions with the device `D`."""
    return TensorOptions(device=D)


def pinned_memory(value: _builtins.bool = True) -> TensorOptions:
    """Return TensorOptions for page-locked host memory, or not."""
    return TensorOptions(pinned_memory=value)


# The element types, in the order of the table.
(
    bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64,
    bfloat16, complex32, complex64, complex128,
    float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2,
    float8_e5m2fnuz, float8_e8m0fnu, float6_e2m3fn, float6_e3m2fn, float4_e2m1fn, float4_e2m1fn_x2,
    int1, uint1, int2, uint2, int3, uint3, int4, uint4, int5, uint5, int6, uint6, int7, uint7,
) = _ROWS  # fmt: skip
string = _type("string")
tensor = _type("tensor")

__all__ = [
    "Allocator", "AllocatorStats", "ArrayRef", "CPU", "CUDA", "CUDAHost", "CUDAManaged", "DataPtr",
    "Device", "DeviceType", "EnforceAssertionError", "EnforceBufferError", "EnforceIndexError",
    "EnforceKeyError", "EnforceNotMet", "EnforceTypeError", "EnforceValueError", "ExtDev",
    "GetAllocator", "Hexagon", "IntArrayRef", "MAIA", "Metal", "OneAPI", "OpenCL", "ROCM",
    "ROCMHost", "SetAllocator", "Storage", "TPU", "TPUHost", "TensorImpl", "TensorOptions", "Trn",
    "TypeMeta", "UndefinedTensorImpl", "VPI", "Vulkan", "WebGPU", "bfloat16", "bool", "complex128",
    "complex32", "complex64", "device", "dtype", "float16", "float32", "float4_e2m1fn",
    "float4_e2m1fn_x2", "float64", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "int1", "int16", "int2", "int3", "int32", "int4", "int5", "int6", "int64",
    "int7", "int8", "pinned_memory", "string", "tensor", "uint1", "uint16", "uint2", "uint3",
    "uint32", "uint4", "uint5", "uint6", "uint64", "uint7", "uint8",
]  # fmt: skip

__dir__ = _listed(__name__)
