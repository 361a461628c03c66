# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""caffe2.Tensors as operands of torch, and torch's results as caffe2.Tensors, without copying."""

from libc.stdint cimport int64_t
from libc.string cimport memmove

from bridge.c10.storage cimport UNVERIFIED
from bridge.c10.tensor_impl cimport CONTIGUOUS, OWN_ORIGIN, RESERVED, TensorImpl
from bridge.caffe2.execution.operator_core cimport OperatorCore, output_like
from bridge.caffe2.tensor.tensor cimport Tensor
from bridge.dlpack.abi cimport DL_CPU
from bridge.exchange.torch_export cimport torch_operand
from bridge.exchange.torch_import cimport import_torch

from bridge.c10.errors import EnforceNotMet

cdef enum:
    WORTH_COPYING = 1 << 15     # bytes


def operand(Tensor tensor not None):
    """Return a torch.Tensor that shares the memory of `tensor`, for use while an operator runs.

    Raises BufferError or EnforceNotMet: not allocated, undefined, or of a type that torch lacks.
    """
    return torch_operand(tensor.impl)


cdef TensorImpl _only_input(OperatorCore operator, object types):
    """Return the only input; None: there are more, or it is not a tensor of one of `types`."""
    cdef Tensor tensor
    if operator._inputs is None or len(operator._inputs) != 1:
        return None
    tensor = operator.input_blob(0, "Operator.Input")._tensor
    if tensor is None or tensor.impl.storage is None or tensor.impl.c_dtype not in types:
        return None
    return tensor.impl


def in_and_out(OperatorCore operator not None, types):
    """Return torch tensors that share the only input, to read, and output 0, to write.

    The output has the sizes and type of the input. None if there are more inputs, or the input is
    not a tensor of one of `types`: the caller then raises the error.
    """
    cdef TensorImpl impl = _only_input(operator, types)
    if impl is None:
        return None
    operand = torch_operand(impl)
    return operand, torch_operand(output_like(operator, 0, impl).impl)


def copied_to_out(OperatorCore operator not None, types):
    """Copy the only input to output 0; return a torch tensor that shares it, to change in place.

    None if `in_and_out` returns None, or if the input is larger than a cache, on which one
    operation that reads and writes is faster, or not on the CPU.
    """
    cdef TensorImpl impl = _only_input(operator, types)
    cdef TensorImpl out
    cdef int64_t nbytes
    if impl is None:
        return None
    nbytes = impl.c_numel * impl.c_dtype.itemsize
    if nbytes > WORTH_COPYING or impl.storage.device_type != DL_CPU:
        return None
    impl.data(operator._definition.type)            # raises if the input is not allocated
    out = output_like(operator, 0, impl).impl
    operand = torch_operand(out)
    if nbytes and out.storage.device_type == DL_CPU:
        memmove(out.data("Operator.Output"), impl.data("Operator.Input"), nbytes)
    return operand


def adopt(Tensor tensor not None, result):
    """Set the sizes, type and memory of `tensor` to those of `result`, a fresh torch.Tensor.

    The memory is shared, so `result` must not be used elsewhere. Wrappers of the same TensorImpl
    change too; tensors that shared the old memory keep it.

    Raises EnforceNotMet: `result` is not contiguous. BufferError: it has no memory.
    """
    cdef TensorImpl fresh = import_torch(result, None)
    cdef TensorImpl impl = tensor.impl
    if not fresh.flags & CONTIGUOUS:
        raise EnforceNotMet(
            f"A result of strides {fresh.strides().vec()} has to be made contiguous.", "adopt",
            condition="is_contiguous()")
    # The result of an operation: its storage is as large as its sizes require.
    fresh.storage.flags &= ~UNVERIFIED
    impl.set_contiguous(fresh.c_sizes, fresh.ndim, fresh.c_numel)
    impl.set_storage(fresh.storage)
    impl.c_dtype = fresh.c_dtype
    impl.offset = fresh.offset
    impl.origin = fresh.origin
    impl.flags = (impl.flags & ~(OWN_ORIGIN | RESERVED)) | (fresh.flags & OWN_ORIGIN)
