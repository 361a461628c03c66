# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501  a rule is a line
"""The rules for the C exchange table, ``__dlpack_c_exchange_api__``, of producers and consumers."""

from __future__ import annotations

from bridge.conform.rule import HEADER, MUST, rows

_TABLE = HEADER + "DLPackExchangeAPI"
_HEADER_OF_TABLE = HEADER + "DLPackExchangeAPIHeader"
_MANAGED = HEADER + "DLPackManagedTensorFromPyObjectNoSync"
_VIEW = HEADER + "DLPackDLTensorFromPyObjectNoSync"
_ALLOCATOR = HEADER + "DLPackManagedTensorAllocator"
_IMPORT = HEADER + "DLPackManagedTensorToPyObjectNoSync"

# fmt: off
TABLE_RULES = rows(
    ("producer-table-on-type", MUST, _TABLE, "__dlpack_c_exchange_api__ must be defined on the type. The consumer should look up the attribute on the type."),
    ("producer-table-capsule", MUST, _TABLE, "__dlpack_c_exchange_api__ must be set on the type as a Python PyCapsule with name \"dlpack_exchange_api\"."),
    ("producer-table-version", MUST, _HEADER_OF_TABLE, "The provided DLPack version of the C exchange table: the consumer must check major version compatibility before using this struct."),
    ("producer-table-previous", MUST, _HEADER_OF_TABLE + ", prev_api", "prev_api: optional pointer to an older DLPackExchangeAPI in the chain. It must be NULL if the framework does not support older versions."),
    ("producer-table-functions", MUST, _TABLE, "managed_tensor_allocator, managed_tensor_from_py_object_no_sync, managed_tensor_to_py_object_no_sync and current_work_stream of the C exchange table must not be NULL."),
    ("producer-table-static", MUST, _TABLE, "The DLPackExchangeAPI* must stay alive throughout the lifetime of the process; the consumer may cache the result for each unique type (C exchange table)."),
    ("producer-table-managed", MUST, _MANAGED, "managed_tensor_from_py_object_no_sync of the C exchange table exports a PyObject* Tensor/NDArray to a DLManagedTensorVersioned."),
    ("producer-table-managed-holds", MUST, _MANAGED, "managed_tensor_from_py_object_no_sync gives the owning DLManagedTensorVersioned*: the C exchange table's export keeps the memory alive until its deleter is called."),
    ("producer-table-managed-once", MUST, _MANAGED, "managed_tensor_from_py_object_no_sync gives the owning DLManagedTensorVersioned*: its deleter gives up what the C exchange table took, once."),
    ("producer-table-agrees", MUST, _TABLE, "Additionally to __dlpack__() we define a C function table: managed_tensor_from_py_object_no_sync of the C exchange table and the method agree on shape, strides, type, device and values."),
    ("producer-table-agrees-on-memory", MUST, _TABLE, "Additionally to __dlpack__() we define a C function table: the C exchange table and the method agree on the memory they export."),
    ("producer-table-agrees-on-flags", MUST, _TABLE, "Additionally to __dlpack__() we define a C function table: the C exchange table and the method agree on the flags, read-only among them."),
    ("producer-table-agrees-on-refusal", MUST, _MANAGED, "managed_tensor_from_py_object_no_sync returns NULL (-1) on failure with a Python exception set. If the data cannot be described using DLPack this should be a BufferError if possible: the C exchange table refuses what the method refuses."),
    ("producer-table-view", MUST, _VIEW, "dltensor_from_py_object_no_sync of the C exchange table exports a PyObject* Tensor/NDArray to a provided DLTensor; returns 0 on success."),
    ("producer-table-view-agrees", MUST, _VIEW, "dltensor_from_py_object_no_sync of the C exchange table and the method __dlpack__ agree on shape, strides, type, device and memory."),
    ("producer-table-view-owns-nothing", MUST, _VIEW, "dltensor_from_py_object_no_sync provides a faster interface for temporary, non-owning, exchange. The producer still owns the memory of data, strides, shape (C exchange table)."),
    ("producer-table-stream", MUST, HEADER + "DLPackCurrentWorkStream", "current_work_stream of the C exchange table: 0 on success; a CPU only framework can just provide a dummy implementation that always sets out_current_stream[0] to NULL."),
    ("producer-table-allocator", MUST, _ALLOCATOR, "managed_tensor_allocator of the C exchange table: create a new DLManagedTensorVersioned. Only the dtype, ndim, shape, and device fields of the prototype are used."),
    ("producer-table-allocator-is-new", MUST, _ALLOCATOR, "managed_tensor_allocator of the C exchange table requests a producer library to create a new tensor, with memory of its own, owned by the caller."),
    ("producer-table-allocator-errors", MUST, _ALLOCATOR, "managed_tensor_allocator of the C exchange table: SetError is called exactly when NULL is returned (the implementer must ensure this), with error_ctx."),
    ("consumer-table-import", MUST, _IMPORT, "managed_tensor_to_py_object_no_sync of the C exchange table: convert an owning DLManagedTensorVersioned* to the Python tensor of the producer (implementer) library with the correct type; 0 on success."),
    ("consumer-table-import-layouts", MUST, _IMPORT, "managed_tensor_to_py_object_no_sync of the C exchange table imports a DLManagedTensorVersioned to a PyObject* Tensor/NDArray, with its strides and offset."),
    ("consumer-table-import-deletes", MUST, _IMPORT, "managed_tensor_to_py_object_no_sync of the C exchange table: the ownership of the tensor is stolen, so that the importer calls the deleter, once."),
    ("consumer-table-import-holds", MUST, _IMPORT, "managed_tensor_to_py_object_no_sync of the C exchange table: the ownership of the tensor is stolen; the deleter is called when the object does not need the memory any more, not early."),
    ("consumer-table-import-fails", MUST, _IMPORT, "managed_tensor_to_py_object_no_sync of the C exchange table returns 0 on success, -1 on failure with a Python exception set."),
    ("consumer-table-of-producer", MUST, _TABLE, "Additionally to __dlpack__() we define a C function table: a producer whose type has a C exchange table can be imported."),
    ("consumer-table-of-producer-deletes", MUST, _MANAGED, "The owning DLManagedTensorVersioned* of the producer's C exchange table: a consumer that took it calls the deleter, once."),
    ("consumer-table-major", MUST, _HEADER_OF_TABLE, "The consumer must check major version compatibility before using this struct (C exchange table)."),
    ("consumer-table-without-view", MUST, _TABLE, "dltensor_from_py_object_no_sync: this function can be NULL when the producer does not support this function (C exchange table)."),
)
# fmt: on
