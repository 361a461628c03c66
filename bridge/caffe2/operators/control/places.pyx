# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Spot: where a tensor is, to see in little time that it is still there."""

from bridge.c10.storage cimport begin_of
from bridge.c10.tensor_impl cimport is_undefined, offset_of, storage_of
from bridge.caffe2.execution.taped_operator cimport Layout, Operand
from bridge.caffe2.tensor.tensor cimport Tensor


cdef class Spot:
    """A tensor, its memory, sizes and type."""

    cdef Operand operand

    def __init__(self, Tensor tensor not None) -> None:
        cdef Operand operand = Operand.__new__(Operand)
        operand.layout = Layout.__new__(Layout)
        if is_undefined(tensor.impl) or not operand.layout.set(tensor.impl):
            return
        operand.impl, operand.storage = tensor.impl, storage_of(tensor.impl)
        operand.data, operand.offset = begin_of(operand.storage), offset_of(tensor.impl)
        self.operand = operand

    def has(self, Tensor tensor: Any) -> bool:
        """Return whether it is that tensor, where it was, with the same sizes and type.

        False for None, and where this was not known.
        """
        return tensor is not None and self.operand is not None and self.operand.holds(tensor.impl)
