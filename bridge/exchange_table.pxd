# SPDX-License-Identifier: Apache-2.0
from bridge.dlpack.abi cimport DLManagedTensorVersioned, DLPackExchangeAPI

ctypedef int (*to_py_object)(DLManagedTensorVersioned*, void**) noexcept
cdef object exchange_table(DLPackExchangeAPI* table, to_py_object import_function)
cdef int import_object(
    DLManagedTensorVersioned* managed, void** out, object cls, str name) noexcept
