# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl cimport TensorImpl

cdef object dlpack_capsule(
    TensorImpl impl, object stream, object max_version, object dl_device, object copy)
cdef object immutable_capsule(TensorImpl impl, object stream)
