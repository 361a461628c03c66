# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501  a rule is a line
"""The rules for consumers, but for C exchange tables."""

from __future__ import annotations

from bridge.conform.rule import FROM_DLPACK, HEADER, METHOD, MUST, SHOULD, SPECIFICATION, rows

_SEMANTICS = SPECIFICATION + "Semantics"
_IMPLEMENTATION = SPECIFICATION + "Implementation"
_TENSOR = HEADER + "DLTensor"
_TYPE = HEADER + "DLDataType"
_CODE = HEADER + "DLDataTypeCode"
_MANAGED = HEADER + "DLManagedTensor"
_VERSION = HEADER + "DLPackVersion"
_FLAGS = HEADER + "bit masks used in the DLManagedTensorVersioned"

# fmt: off
CONSUMER_RULES = rows(
    # capsules
    ("consumer-values", MUST, FROM_DLPACK, "Returns a new array containing the data from another (array) object with a __dlpack__ method."),
    ("consumer-own-tensors", MUST, FROM_DLPACK, "Returns a new array containing the data from another (array) object with a __dlpack__ method: of the library's own, too."),
    ("consumer-renames-versioned", MUST, _IMPLEMENTATION, "The consumer must transfer ownership of the DLManagedTensor from the capsule to its own object. It does so by renaming the capsule; when DLManagedTensorVersioned is in use to \"used_dltensor_versioned\"."),
    ("consumer-renames-old", MUST, _IMPLEMENTATION, "The consumer must transfer ownership of the DLManagedTensor from the capsule to its own object. It does so by renaming the capsule to \"used_dltensor\"."),
    ("consumer-name-lasts", MUST, _IMPLEMENTATION, "The capsule names \"dltensor\" and \"used_dltensor\" must be statically allocated: the name that the consumer sets when renaming, too."),
    ("consumer-refuses-used", MUST, _IMPLEMENTATION, "The capsule is consumed exactly once: one that is named \"used_dltensor\" is not taken again."),
    ("consumer-refuses-other-name", MUST, _IMPLEMENTATION, "The PyCapsule name is set so that it can be inspected by name: a capsule of another name is not taken."),
    ("consumer-asks-once", MUST, _IMPLEMENTATION, "The capsule will be consumed immediately within from_dlpack, therefore it is consumed exactly once: from_dlpack exports once."),
    ("consumer-arguments-known", MUST, METHOD, "__dlpack__(self, /, *, stream=None, max_version=None, dl_device=None, copy=None): the consumer passes these keyword arguments only, and copy as None, True or False."),
    ("consumer-max-version-form", MUST, METHOD, "max_version: the maximum DLPack version that the consumer supports, in the form of a 2-tuple (major, minor)."),
    ("consumer-old-capsule", MUST, METHOD, "This method may return a capsule of version max_version, or of a different version. This means the consumer must verify the version even when max_version is passed: an old capsule is read as one."),
    ("consumer-falls-back", MUST, METHOD, "try: x.__dlpack__(max_version=(1, 0), ...) except TypeError: x.__dlpack__(...). This logic is also applicable to handling of the new dl_device and copy keywords (the old call)."),
    ("consumer-changes-nothing", MUST, _SEMANTICS, "The producer keeps owning the memory of x: from_dlpack changes neither the data nor the structure."),
    # deleters
    ("consumer-deleter-called", MUST, _IMPLEMENTATION, "The deleter of the DLManagedTensor will be called by the destructor of the consumer library object created to own the DLManagedTensor obtained from the capsule."),
    ("consumer-deleter-called-always", MUST, _IMPLEMENTATION, "The deleter of the DLManagedTensor will be called by the destructor of the consumer library object: whatever the shape, of a tensor of size zero, too."),
    ("consumer-deleter-once", MUST, _IMPLEMENTATION, "The consumer must transfer ownership from the capsule to its own object, whose destructor calls the deleter: once, and never twice, neither by itself nor together with the capsule's destructor."),
    ("consumer-deleter-argument", MUST, _MANAGED + ", deleter", "void (*deleter)(struct DLManagedTensor * self): the deleter is called with the structure itself; the destructor deletes the argument self as well."),
    ("consumer-deleter-not-early", MUST, _MANAGED, "When the borrowing framework doesn't need the tensor, it should call the deleter to notify the host that the resource is no longer needed: not early, while the memory is in use."),
    ("consumer-deleter-not-early-unseen", MUST, _MANAGED, "When the borrowing framework doesn't need the tensor, it should call the deleter: not early, while a tensor that shares the memory (copy=False) is alive."),
    ("consumer-deleter-null", MUST, _MANAGED + ", deleter", "The deleter can be NULL if there is no way for the caller to provide a reasonable destructor."),
    ("consumer-deleter-null-unseen", MUST, _MANAGED + ", deleter", "The deleter can be NULL if there is no way for the caller to provide a reasonable destructor: it is not called."),
    ("consumer-deleter-null-context", MUST, _MANAGED + ", manager_ctx", "The context of the original host framework of DLManagedTensor. It can also be NULL: the deleter is called all the same."),
    ("consumer-deleter-each", MUST, _IMPLEMENTATION, "The deleter of the DLManagedTensor will be called by the destructor of the consumer library object: of several tensors each deleter, once."),
    ("consumer-deleter-refused-type", MUST, _IMPLEMENTATION, "A consumer that refuses an element type leaves the capsule to its destructor, or renames it and calls the deleter: the deleter is called once."),
    ("consumer-deleter-refused-device", MUST, _IMPLEMENTATION, "A consumer that refuses a device leaves the capsule to its destructor, or renames it and calls the deleter: the deleter is called once."),
    ("consumer-deleter-refused-shape", MUST, _IMPLEMENTATION, "A consumer that refuses a malformed structure leaves the capsule to its destructor, or renames it and calls the deleter: the deleter is called once."),
    ("consumer-deleter-in-thread", MUST, _IMPLEMENTATION, "The deleter will be called by the destructor of the consumer library object, from any thread that gives up the object."),
    ("consumer-threads", MUST, _IMPLEMENTATION, "from_dlpack may be called by several threads at once; each deleter is called once."),
    ("consumer-thread-other", MUST, _IMPLEMENTATION, "from_dlpack may be called from any thread, and its result be used in another."),
    # lifetimes and views
    ("consumer-outlives-producer", MUST, _SEMANTICS, "Both x and y may continue to be used just like arrays created in other ways: y after x is gone (lifetime)."),
    ("consumer-every-order", MUST, _SEMANTICS, "Both x and y may continue to be used, in whatever order x, y and a view of y are garbage collected (lifetime): the deleter is called after the last use, once."),
    ("consumer-cycle", MUST, _IMPLEMENTATION, "The deleter will be called by the destructor of the consumer library object: also when it is garbage collected in a reference cycle (lifetime)."),
    ("consumer-view-holds", MUST, _SEMANTICS, "Arrays may continue to be used just like arrays created in other ways: a view of the result keeps the memory alive; the deleter is called after the last view (lifetime)."),
    ("consumer-array-holds", MUST, _SEMANTICS, "Arrays may continue to be used just like arrays created in other ways: a NumPy view of the result keeps the memory alive; the deleter is called after the last view, once (lifetime)."),
    ("consumer-two-imports", MUST, _SEMANTICS, "Both x and y may continue to be used: two results of from_dlpack of one object have each its own lifetime and deleter."),
    # versions and flags
    ("consumer-version-minor", MUST, _VERSION, "In the case of a minor version mismatch, the tensor can be safely used as long as the consumer knows how to interpret all fields (a higher minor version)."),
    ("consumer-version-major", MUST, _VERSION, "If an obtained DLPack tensor has a major version that disagrees with the version number specified in this header file (a higher major version), the consumer must call the deleter: it is not taken."),
    ("consumer-version-major-deletes", MUST, _VERSION, "If an obtained DLPack tensor has a major version that disagrees with the version number specified in this header file, the consumer must call the deleter (and it is safe to do so): once, by the consumer or by the capsule."),
    ("consumer-version-major-reads-nothing", MUST, _VERSION, "With a major version that disagrees it is not safe to access any other fields as the memory layout will have changed."),
    ("consumer-flag-read-only-taken", SHOULD, METHOD, "A consumer that does not support read-only arrays should ignore this flag (DLPACK_FLAG_BITMASK_READ_ONLY; this is preferred over raising an exception)."),
    ("consumer-flag-read-only-kept", MUST, _FLAGS, "DLPACK_FLAG_BITMASK_READ_ONLY: bit mask to indicate that the tensor is read only: a consumer that has read-only arrays gives one."),
    ("consumer-flag-copied", MUST, _FLAGS, "DLPACK_FLAG_BITMASK_IS_COPIED: the tensor is a copy made by the producer, and is read like any other."),
    ("consumer-flag-padded", MUST, _FLAGS, "DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED can be set by the producer to signal that a tensor of sub-byte type is padded: it is not read as packed."),
    # arguments
    ("consumer-knows-copy", MUST, FROM_DLPACK, "from_dlpack(x, /, *, device=None, copy=None): copy is a boolean indicating whether or not to copy the input, or None."),
    ("consumer-copy-true", MUST, FROM_DLPACK, "copy: if True, the function must always copy."),
    ("consumer-copy-true-taken", MUST, FROM_DLPACK, "copy: if True, the function must always copy, and not raise."),
    ("consumer-copy-true-old-producer", MUST, FROM_DLPACK, "copy: if True, the function must always copy: also if the producer does not know copy."),
    ("consumer-copy-true-deletes", MUST, _IMPLEMENTATION, "The deleter will be called by the destructor of the consumer library object: with copy=True, too, once for each export."),
    ("consumer-copy-false", MUST, FROM_DLPACK, "copy: if False, the function must never copy, and raise BufferError in case a copy is deemed necessary."),
    ("consumer-copy-false-shares", MUST, FROM_DLPACK, "copy: if False, the function must never copy: it raises only in case a copy is deemed necessary, and shares otherwise."),
    ("consumer-copy-none", MUST, FROM_DLPACK, "copy: if None, the function must reuse the existing memory buffer if possible and copy otherwise."),
    ("consumer-copy-passed-on", MUST, FROM_DLPACK, "copy: the consumer passes copy on to __dlpack__ as it was given, and respects the answer."),
    ("consumer-copy-unasked", MUST, FROM_DLPACK, "copy: if None, the function must reuse the existing memory buffer if possible: the consumer asks __dlpack__ neither for a copy nor for none."),
    ("consumer-device-none", MUST, FROM_DLPACK, "device: if device is None and x supports DLPack, the output array must be on the same device as x."),
    ("consumer-device-own", MUST, FROM_DLPACK, "device on which to place the created array: that of the array itself changes nothing."),
    ("consumer-dl-device-form", MUST, METHOD, "dl_device: when specified, the format must be a 2-tuple, following that of the return value of array.__dlpack_device__; the default None means the same device."),
    ("consumer-stream-none", MUST, METHOD, "stream: on CPU and other device types without streams, only None is accepted."),
    ("consumer-device-refused", MUST, _SEMANTICS, "An array that lives on a device that the requesting (consumer) library does not support is not read as if it were on another device."),
    ("consumer-device-refused-by-buffer-error", SHOULD, _SEMANTICS, "If an array that is accessed via the interchange protocol lives on a device that the requesting (consumer) library does not support, it is recommended to raise a BufferError."),
    ("consumer-passes-buffer-error", MUST, FROM_DLPACK + ", Raises", "__dlpack__ may raise BufferError when the data cannot be exported as DLPack. from_dlpack must propagate such exceptions."),
    ("consumer-passes-other-errors", MUST, FROM_DLPACK + ", Raises", "__dlpack__ may also raise other errors when export fails for other reasons (e.g., not enough memory). from_dlpack must propagate such exceptions."),
    ("consumer-passes-device-error", MUST, FROM_DLPACK + ", Raises", "The __dlpack_device__ method may raise BufferError. from_dlpack must propagate such exceptions."),
    # element types
    ("consumer-type-int", MUST, _TYPE, "kDLInt: signed integer; bits: number of bits, common choices are 8, 16, 32: each value is read as it is."),
    ("consumer-type-uint", MUST, _TYPE, "kDLUInt: unsigned integer, type_code = 1: each value is read as it is."),
    ("consumer-type-float", MUST, _TYPE, "kDLFloat: IEEE floating point; float: type_code = 2, bits = 32, lanes = 1: each value is read as it is."),
    ("consumer-type-complex", MUST, _TYPE, "kDLComplex: complex number; std::complex<float>: type_code = 5, bits = 64, lanes = 1."),
    ("consumer-type-bool", MUST, _TYPE, "kDLBool: boolean; bool: type_code = 6, bits = 8, lanes = 1."),
    ("consumer-type-bfloat16", MUST, _CODE, "kDLBfloat: bfloat16, which is another type than kDLFloat of 16 bits."),
    ("consumer-type-unknown", MUST, _TYPE + ", code", "The type code should be one of the DLDataTypeCode enum values: an unknown element type is not taken."),
    ("consumer-type-opaque", SHOULD, _CODE, "kDLOpaqueHandle: opaque handle type, reserved for testing purposes. Frameworks need to agree on the handle data type for the exchange to be well-defined."),
    ("consumer-type-bits", MUST, _TYPE + ", bits", "Number of bits: a type with a number of bits that the consumer does not have is not taken for another."),
    ("consumer-type-bool-bits", MUST, _TYPE, "bool: type_code = 6, bits = 8: a bool of other bits is not taken for one of 8 bits."),
    ("consumer-type-small-bits", MUST, _CODE, "FP4 and FP6: setting bits != 4 (6) is currently unspecified, and the consumer must stop importing if the value is unexpected."),
    ("consumer-type-lanes", MUST, _TYPE + ", lanes", "Number of lanes in the type, used for vector types; float4 (vectorized 4 float): type_code = 2, bits = 32, lanes = 4: refused, or each lane is read."),
    ("consumer-type-no-lanes", MUST, _TYPE + ", lanes", "Number of lanes in the type: an element without lanes is not taken."),
    # data, shape, strides, offset
    ("consumer-shape", MUST, _TENSOR + ", shape", "ndim: number of dimensions; shape: the shape of the tensor."),
    ("consumer-strides", MUST, _TENSOR + ", strides", "strides of the tensor (in number of elements, not bytes), must point to an array of ndim elements that specifies the strides: of slices and views, too."),
    ("consumer-strides-column-major", MUST, _TENSOR + ", strides", "strides of the tensor (in number of elements, not bytes): of a column-major tensor, too."),
    ("consumer-strides-null", MUST, _TENSOR + ", strides", "Before DLPack v1.2, strides can be NULL to indicate contiguous data: a row-major compact array."),
    ("consumer-strides-negative", MUST, _TENSOR + ", strides", "strides of the tensor: negative ones are read backwards, or refused."),
    ("consumer-strides-zero", MUST, _TENSOR + ", strides", "strides of the tensor: a stride of 0 repeats elements (broadcast), or is refused."),
    ("consumer-strides-of-one", MUST, _TENSOR + ", strides", "strides of the tensor: that of a dimension of size 1 may be any number."),
    ("consumer-zero-dimensions", MUST, _TENSOR + ", shape", "When ndim == 0 the tensor has one element."),
    ("consumer-zero-dimensions-null", MUST, _TENSOR + ", shape", "When ndim == 0, shape can be set to NULL. When ndim == 0, strides can be set to NULL."),
    ("consumer-zero-size", MUST, _TENSOR + ", shape", "The shape of the tensor, of a tensor of size zero, too."),
    ("consumer-zero-size-null", MUST, _TENSOR + ", data", "If the tensor is of size zero, then the data pointer should be set to NULL: data is not read."),
    ("consumer-byte-offset", MUST, _TENSOR + ", byte_offset", "The offset in bytes to the beginning pointer to data: byte_offset is added to data."),
    ("consumer-byte-offset-small", MUST, _TENSOR + ", byte_offset", "The byte_offset field should be used to point to the beginning of the data: in bytes, whatever the type, and together with strides."),
    ("consumer-alignment", SHOULD, _TENSOR + ", data", "It is recommended to not rely on the data pointer being correctly aligned (alignment to 256 bytes)."),
    ("consumer-alignment-odd", MUST, _TENSOR + ", data", "It is recommended to not rely on the data pointer being correctly aligned: data that is not aligned to its elements is read, or refused."),
    # structures that no producer may write
    ("consumer-malformed-overflow", MUST, _TENSOR + ", data", "size_t size = 1; size *= t->shape[i]: a shape whose product overflows has no memory, and is refused."),
    ("consumer-malformed-bytes-overflow", MUST, _TENSOR + ", data", "size *= (t->dtype.bits * t->dtype.lanes + 7) / 8: a size whose bytes overflow has no memory, and is refused."),
    ("consumer-malformed-negative-size", MUST, _TENSOR + ", shape", "The shape of the tensor: a negative size has no meaning, and is refused."),
    ("consumer-malformed-negative-ndim", MUST, _TENSOR + ", ndim", "Number of dimensions: a negative ndim has no meaning, and is refused."),
    ("consumer-malformed-many-dimensions", MUST, _TENSOR + ", ndim", "Number of dimensions: an absurd ndim, more than the consumer has, is refused."),
    ("consumer-malformed-null-data", MUST, _TENSOR + ", data", "The data pointer points to the allocated data: NULL data with elements is refused."),
)
# fmt: on
