# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""caffe2.Tensors as operands of torch, torch's results as caffe2.Tensors; nothing is copied."""

from libc.stdint cimport int64_t
from libc.string cimport memmove

from bridge.c10.storage cimport UNVERIFIED
from bridge.c10.tensor_impl cimport CONTIGUOUS, LENT, RESERVED, TensorImpl
from bridge.caffe2.execution.operator_core cimport OperatorCore, output_like
from bridge.caffe2.tensor.tensor cimport Tensor
from bridge.dlpack.abi cimport DL_CPU
from bridge.exchange.torch_export cimport torch_operand
from bridge.exchange.torch_import cimport import_torch

from bridge.c10.errors import EnforceNotMet

cdef enum:
    WORTH_COPYING = 1 << 15     # bytes


def operand(Tensor tensor not None):
    """A torch.Tensor over the memory of `tensor`, to be used while an operator runs.

    Raises BufferError, EnforceNotMet: not allocated, undefined, or of a type that torch lacks.
    """
    return torch_operand(tensor.impl)


def in_and_out(OperatorCore operator not None, types):
    """The only input of an operator to read, and output 0, like it, to write, for torch.

    None: there are more inputs, or it is not a tensor of one of `types`; who asked says the rest.
    """
    cdef Tensor tensor
    cdef TensorImpl impl
    if operator._inputs is None or len(operator._inputs) != 1:
        return None
    tensor = operator.input_blob(0, "Operator.Input")._tensor
    if tensor is None or tensor.impl.storage is None or tensor.impl.c_dtype not in types:
        return None
    impl = tensor.impl
    operand = torch_operand(impl)
    return operand, torch_operand(output_like(operator, 0, impl).impl)


def copied_to_out(OperatorCore operator not None, types):
    """Output 0, for torch to change in place, with the elements of the only input copied to it.

    None where that is not worth it: what is larger than a cache is better read and written by one
    operation. None, too, where `in_and_out` gives None.
    """
    cdef Tensor tensor
    cdef TensorImpl impl, out
    cdef int64_t nbytes
    if operator._inputs is None or len(operator._inputs) != 1:
        return None
    tensor = operator.input_blob(0, "Operator.Input")._tensor
    if tensor is None or tensor.impl.storage is None or tensor.impl.c_dtype not in types:
        return None
    impl = tensor.impl
    nbytes = impl.c_numel * impl.c_dtype.itemsize
    if nbytes > WORTH_COPYING or impl.storage.device_type != DL_CPU:
        return None
    impl.data(operator._definition.type)            # there, to read
    out = output_like(operator, 0, impl).impl
    operand = torch_operand(out)
    if nbytes and out.storage.device_type == DL_CPU:
        memmove(out.data("Operator.Output"), impl.data("Operator.Input"), nbytes)
    return operand


def adopt(Tensor tensor not None, result):
    """Have `tensor` be of the sizes, type and memory of `result`, a torch.Tensor that nobody else
    keeps. Who shared the TensorImpl of `tensor` sees it, who shared its memory keeps that.

    Raises EnforceNotMet: `result` is not contiguous; BufferError: it has no memory.
    """
    cdef TensorImpl fresh = import_torch(result, None)
    cdef TensorImpl impl = tensor.impl
    if not fresh.flags & CONTIGUOUS:
        raise EnforceNotMet(
            f"A result of strides {fresh.strides().vec()} is to be made contiguous.", "adopt",
            condition="is_contiguous()")
    # Fresh from an operation: its storage is as large as its sizes say.
    fresh.storage.flags &= ~UNVERIFIED
    impl.set_contiguous(fresh.c_sizes, fresh.ndim, fresh.c_numel)
    impl.set_storage(fresh.storage)
    impl.c_dtype = fresh.c_dtype
    impl.offset = fresh.offset
    impl.origin = fresh.origin
    impl.flags = (impl.flags & ~(LENT | RESERVED)) | (fresh.flags & LENT)
