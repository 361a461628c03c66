# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.dlpack.abi cimport DLDevice
from bridge.exchange.arrow_structures cimport ArrowOwner, Field

cdef TensorImpl import_column(Field field, ArrowOwner owner, DLDevice where, object copy)
cdef TensorImpl import_table(list columns, ArrowOwner owner, DLDevice where, object copy)
