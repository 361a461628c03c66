# SPDX-License-Identifier: Apache-2.0
from bridge.wrapper cimport Wrapper

cdef class TensorMetadata(Wrapper):
    pass
