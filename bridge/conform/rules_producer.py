# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501  a rule is a line
"""The rules for producers, but for their C exchange tables."""

from __future__ import annotations

from bridge.conform.rule import (
    DEVICE_METHOD,
    HEADER,
    METHOD,
    MUST,
    SHOULD,
    SPECIFICATION,
    rows,
)

_SYNTAX = SPECIFICATION + "Syntax for data interchange with DLPack"
_SEMANTICS = SPECIFICATION + "Semantics"
_IMPLEMENTATION = SPECIFICATION + "Implementation"
_TENSOR = HEADER + "DLTensor"
_TYPE = HEADER + "DLDataType"
_VERSIONED = HEADER + "DLManagedTensorVersioned"
_FLAGS = HEADER + "bit masks used in the DLManagedTensorVersioned"

# fmt: off
PRODUCER_RULES = rows(
    # capsules
    ("producer-methods", MUST, _SYNTAX, "__dlpack__ and __dlpack_device__ methods on the array object, which will be called from within from_dlpack."),
    ("producer-gives-capsule", MUST, _IMPLEMENTATION, "The __dlpack__ method will produce a PyCapsule containing a DLManagedTensor."),
    ("producer-name-versioned", MUST, _IMPLEMENTATION, "The producer must set the PyCapsule name to \"dltensor\"; when DLManagedTensorVersioned is in use the capsule names dltensor and used_dltensor will need a _versioned suffix."),
    ("producer-name-old", MUST, _IMPLEMENTATION, "The producer must set the PyCapsule name to \"dltensor\" so that it can be inspected by name."),
    ("producer-name-lasts", MUST, _IMPLEMENTATION, "The capsule names \"dltensor\" and \"used_dltensor\" must be statically allocated."),
    ("producer-fresh-capsule", MUST, _IMPLEMENTATION, "The capsule is consumed exactly once: each call of __dlpack__ gives a new capsule."),
    ("producer-unused-capsule", MUST, _IMPLEMENTATION, "The producer must set a PyCapsule_Destructor that calls the deleter of the DLManagedTensor when the \"dltensor\"-named capsule is no longer needed."),
    ("producer-unused-capsule-once", MUST, _IMPLEMENTATION, "PyCapsule_Destructor calls the deleter when the capsule is no longer needed: once."),
    ("producer-used-capsule", MUST, _IMPLEMENTATION, "PyCapsule_Destructor calls deleter only for capsules whose name is \"dltensor\"; do nothing if the capsule has been consumed and renamed to \"used_dltensor\"."),
    ("producer-capsule-after-deleter", MUST, _IMPLEMENTATION, "The PyCapsule_Destructor does nothing if the capsule has been consumed: the deleter, which deletes the structure, may have been called before."),
    ("producer-destructor-raises-nothing", MUST, _IMPLEMENTATION, "Neither the capsule's destructor nor the deleter leaves an exception: assert(!PyErr_Occurred())."),
    # deleters
    ("producer-deleter-frees", MUST, _IMPLEMENTATION, "The deleter usually needs to Py_DECREF() the original owner and free the DLManagedTensor allocation: after the deleter was called the memory is released."),
    ("producer-deleter-holds-until-called", MUST, HEADER + "DLManagedTensorVersioned", "When the borrowing framework doesn't need the tensor, it should call the deleter to notify the host that the resource is no longer needed: until then the memory stays, and no deleter runs early."),
    ("producer-deleter-once-each", MUST, _IMPLEMENTATION, "In Python, the deleter usually needs to Py_DECREF() the original owner: one call of the deleter releases what one export took, no less and no more."),
    ("producer-deleter-deletes-self", MUST, _VERSIONED + ", deleter", "The destructor deletes the argument self as well."),
    ("producer-deleter-in-thread", MUST, _IMPLEMENTATION, "The DLManagedTensor deleter must ensure that sharing beyond Python boundaries is possible: it may be called from any thread."),
    ("producer-deleter-without-python", MUST, _IMPLEMENTATION, "The DLManagedTensor deleter must ensure that sharing beyond Python boundaries is possible, this means that the GIL must be acquired explicitly: also by a thread that Python did not start."),
    ("producer-deleter-with-gil", MUST, _IMPLEMENTATION, "The GIL must be acquired explicitly by the deleter, and the thread that calls it may have the GIL already."),
    ("producer-tensor-after-deleter", MUST, _SEMANTICS, "Both x and y may continue to be used just like arrays created in other ways: the tensor is usable after the deleter of its export was called."),
    # lifetimes, views, threads
    ("producer-outlives-tensor", MUST, _SEMANTICS, "The producer keeps owning the memory of x: an export keeps the memory alive after the tensor is gone (lifetime)."),
    ("producer-every-order", MUST, _SEMANTICS, "The producer keeps owning the memory until the deleter is called, in whatever order the array, the tensor, the capsule and the structure are given up (lifetime, garbage collection)."),
    ("producer-cycle", MUST, _SEMANTICS, "The producer keeps owning the memory: an export keeps it alive when the tensor is garbage collected in a reference cycle (lifetime)."),
    ("producer-two-exports", MUST, _SEMANTICS, "Both x and y may continue to be used: each export has its own lifetime, and its deleter frees nothing of another export."),
    ("producer-shape-lasts", MUST, _TENSOR, "shape and strides point to arrays of ndim elements: they live, with their values, as long as the export does."),
    ("producer-view-is-zero-copy", MUST, _SEMANTICS, "If possible, this must be zero-copy (i.e. y will be a view on x)."),
    ("producer-view-of-part", MUST, _SEMANTICS, "The producer will provide access to the data from x: of a view, exactly its elements, with the memory of its base kept alive."),
    ("producer-threads", MUST, _IMPLEMENTATION, "Sharing beyond Python boundaries is possible: a tensor can be exported, and its exports be deleted, by several threads at once."),
    # arguments and versions
    ("producer-knows-arguments", MUST, METHOD, "__dlpack__(self, /, *, stream=None, max_version=None, dl_device=None, copy=None): the max_version, dl_device, and copy keyword arguments are known."),
    ("producer-defaults", MUST, METHOD, "stream=None, max_version=None, dl_device=None, copy=None are the defaults of __dlpack__: passed explicitly they change nothing."),
    ("producer-old-call", MUST, METHOD, "If max_version is None: keep and use the DLPack 0.X implementation; from March 2025 onwards it's okay to raise BufferError here (the old call)."),
    ("producer-old-call-values", MUST, _IMPLEMENTATION, "DLManagedTensorVersioned and DLManagedTensor are treated as synonyms: without max_version the old call exports the same data."),
    ("producer-max-version-new", MUST, METHOD, "max_version: this method may return a capsule of version max_version, or of a different version; if the major versions match or the consumer's is newer, return our own max version."),
    ("producer-max-version-old", MUST, METHOD, "max_version is the maximum DLPack version that the consumer supports: if the producer is at a higher major version and cannot export an older one, it should raise a BufferError."),
    ("producer-version-is-known", MUST, _VERSIONED + ", version", "The API and ABI version of the current managed Tensor: a major and minor version that exist."),
    ("producer-version-is-own", MUST, METHOD, "our_own_dlpack_version is the max version that the producer supports and fills in the DLManagedTensorVersioned::version field: it does not repeat the consumer's max_version."),
    ("producer-copy-true", MUST, METHOD, "copy: if True, the function must always copy (performed by the producer)."),
    ("producer-copy-true-layouts", MUST, METHOD, "copy: if True, the function must always copy (performed by the producer): the values, whatever the strides."),
    ("producer-copy-true-device", MUST, METHOD, "copy: if True, the function must always copy (performed by the producer): also with dl_device, the tensor's own."),
    ("producer-copy-true-is-apart", MUST, _FLAGS, "The tensor is a copy made by the producer: with copy=True it is considered solely owned throughout its lifetime by the consumer, so that nothing else shares its memory."),
    ("producer-copy-true-lives", MUST, _FLAGS, "With copy=True the copy is solely owned throughout its lifetime by the consumer, until the producer-provided deleter is invoked."),
    ("producer-copy-false", MUST, METHOD, "copy: if False, the function must never copy, and raise a BufferError in case a copy is deemed necessary."),
    ("producer-copy-false-shares", MUST, METHOD, "copy: if False, the function must never copy: it raises a BufferError only in case a copy is deemed necessary, and shares otherwise."),
    ("producer-copy-none", MUST, METHOD, "copy: if None, the function must reuse the existing memory buffer if possible and copy otherwise."),
    ("producer-dl-device-own", MUST, METHOD, "dl_device: when specified, the format must be a 2-tuple, following that of the return value of array.__dlpack_device__: its own device changes nothing."),
    ("producer-dl-device-cpu", MUST, METHOD, "dl_device: a compliant library should offer a way for __dlpack__ to return a capsule referencing an array whose underlying memory is accessible to the Python interpreter (represented by the kDLCPU enumerator in DLPack)."),
    ("producer-dl-device-other", MUST, METHOD, "dl_device: if the device type cannot be handled by the producer, this function must raise BufferError."),
    ("producer-stream-none", MUST, METHOD, "stream: on CPU and other device types without streams, only None is accepted."),
    # flags
    ("producer-flag-read-only", MUST, _FLAGS, "DLPACK_FLAG_BITMASK_READ_ONLY: bit mask to indicate that the tensor is read only."),
    ("producer-flag-read-only-needless", MUST, _FLAGS, "DLPACK_FLAG_BITMASK_READ_ONLY indicates that the tensor is read only; by default the flags should be set to 0."),
    ("producer-flag-not-copied", MUST, _FLAGS, "DLPACK_FLAG_BITMASK_IS_COPIED: bit mask to indicate that the tensor is a copy made by the producer; memory that is shared is not."),
    ("producer-flag-copied", MUST, METHOD, "When a copy happens, the DLPACK_FLAG_BITMASK_IS_COPIED flag must be set (copy=True)."),
    ("producer-flag-copied-unasked", MUST, _SEMANTICS, "When a copy is made, the producer must set the DLPACK_FLAG_BITMASK_IS_COPIED bit flag."),
    ("producer-flag-padded", MUST, _FLAGS, "DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED can be set by the producer to signal that a tensor of sub-byte type is padded; other types are not."),
    ("producer-flag-padded-set", MUST, _FLAGS, "The default for sub-byte types (ex: fp4/fp6) is assumed packed; DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED signals that a tensor of sub-byte type is padded."),
    ("producer-flags-unknown", MUST, _VERSIONED + ", flags", "By default the flags should be set to 0: bits without a meaning are not set."),
    # devices
    ("producer-device-form", MUST, DEVICE_METHOD, "__dlpack_device__ returns a tuple (device_type, device_id) in DLPack format."),
    ("producer-device-known", MUST, DEVICE_METHOD, "Valid device type enum members of __dlpack_device__ are those of DLDeviceType."),
    ("producer-device-agrees", MUST, DEVICE_METHOD, "__dlpack_device__ returns device type and device ID in DLPack format: those of the device in the capsule."),
    ("producer-device-is-cpu", MUST, _TENSOR + ", device", "The device of the tensor: memory of the CPU is on device kDLCPU."),
    ("producer-device-number", MUST, HEADER + "DLDevice, device_id", "The device index. For vanilla CPU memory, pinned memory, or managed memory, this is set to 0."),
    ("producer-device-alone", MUST, DEVICE_METHOD, "__dlpack_device__ returns device type and device ID: it can be asked before and after exports and at any time, and takes and changes nothing."),
    ("producer-device-without-export", MUST, DEVICE_METHOD, "__dlpack_device__ is meant for use within from_dlpack, to query what device the array is on, without an export: also where __dlpack__ would refuse."),
    # element types
    ("producer-type-int", MUST, _TYPE, "kDLInt: signed integer; bits: number of bits; int8: type_code = 0, bits = 8, lanes = 1."),
    ("producer-type-uint", MUST, _TYPE, "kDLUInt: unsigned integer, type_code = 1; bits: number of bits, common choices are 8, 16, 32."),
    ("producer-type-float", MUST, _TYPE, "kDLFloat: IEEE floating point; float: type_code = 2, bits = 32, lanes = 1."),
    ("producer-type-complex", MUST, _TYPE, "kDLComplex: complex number; std::complex<float>: type_code = 5, bits = 64, lanes = 1."),
    ("producer-type-bool", MUST, _TYPE, "kDLBool: boolean; bool: type_code = 6, bits = 8, lanes = 1 (the underlying storage size of bool is 8 bits)."),
    ("producer-type-small-floats", MUST, _TYPE, "kDLBfloat: bfloat16; float8_e4m3: type_code = 8, bits = 8; float6_e3m2fn: type_code = 16, bits = 6; float4_e2m1fn: type_code = 17, bits = 4: the producer must ensure it is set."),
    ("producer-type-lanes", MUST, _TYPE + ", lanes", "Number of lanes in the type, used for vector types: lanes = 1 for numbers."),
    ("producer-type-byte-order", SHOULD, _TYPE, "The data type is assumed to follow the native endian-ness. An explicit error message should be raised when attempting to export an array with non-native endianness."),
    ("producer-refuses-by-buffer-error", SHOULD, METHOD + ", Raises", "Implementations should raise BufferError when the data cannot be exported as DLPack (e.g., incompatible dtype or strides)."),
    # data, shape, strides, offset
    ("producer-values", MUST, _SEMANTICS, "The producer will provide access to the data from x: the values of the export are those of the tensor."),
    ("producer-shape", MUST, _TENSOR + ", shape", "ndim: number of dimensions; shape: the shape of the tensor."),
    ("producer-agrees-with-numpy", MUST, _SEMANTICS, "The producer will provide access to the data from x: shape and values of the export are those that the tensor itself shows."),
    ("producer-strides-of-column-major", MUST, _TENSOR + ", strides", "strides of the tensor (in number of elements, not bytes): of a transposed or column-major tensor, too."),
    ("producer-strides-of-slices", MUST, _TENSOR + ", strides", "strides of the tensor (in number of elements, not bytes): of a slice that leaves elements out, too."),
    ("producer-strides-negative", MUST, _TENSOR + ", strides", "strides of the tensor, an array of ndim elements: negative for a tensor that runs backwards, with data at its first element."),
    ("producer-strides-zero", MUST, _TENSOR + ", strides", "strides of the tensor, an array of ndim elements: 0 where elements are repeated (broadcast)."),
    ("producer-strides-given", MUST, _TENSOR + ", strides", "strides can not be NULL if ndim != 0, must point to an array of ndim elements that specifies the strides. Before DLPack v1.2, strides can be NULL to indicate contiguous data. This is not allowed in DLPack v1.2 and later."),
    ("producer-strides-in-elements", MUST, _TENSOR + ", strides", "strides of the tensor (in number of elements, not bytes)."),
    ("producer-zero-dimensions", MUST, _TENSOR + ", shape", "When ndim == 0, shape can be set to NULL: a tensor without dimensions has one element."),
    ("producer-zero-size", MUST, _TENSOR + ", shape", "The shape of the tensor, of a tensor of size zero, too."),
    ("producer-zero-size-data", SHOULD, _TENSOR + ", data", "Note that if the tensor is of size zero, then the data pointer should be set to NULL."),
    ("producer-sizes-not-negative", MUST, _TENSOR + ", shape", "ndim: number of dimensions; shape: the shape of the tensor: numbers that are not negative."),
    ("producer-byte-offset", MUST, _TENSOR + ", byte_offset", "The byte_offset field should be used to point to the beginning of the data: data + byte_offset is the first element."),
    ("producer-alignment", MUST, _TENSOR + ", data", "This pointer is always aligned to 256 bytes as in CUDA; it is recommended to not rely on the data pointer being correctly aligned: held to here is the alignment of the elements."),
    ("producer-writes-nothing", MUST, _SEMANTICS, "Both x and y may continue to be used: an export and its deleter leave the values of x as they are."),
    ("producer-data-not-null", MUST, _TENSOR + ", data", "The data pointer points to the allocated data: NULL only for a tensor of size zero."),
)
# fmt: on
