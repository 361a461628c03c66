# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""caffe2.Tensors as operands of torch, and torch's results as caffe2.Tensors, without copying."""


from bridge.c10.storage cimport UNVERIFIED, set_flags
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl
from bridge.caffe2.blobs.replace cimport become, put_result
from bridge.caffe2.tensor.tensor cimport Tensor
from bridge.exchange.torch_export cimport torch_operand
from bridge.exchange.torch_import cimport import_torch

from bridge.c10.errors import EnforceNotMet


def operand(Tensor tensor not None) -> torch.Tensor:
    """Return a torch.Tensor that shares the memory of `tensor`, for use while an operator runs.

    Raises BufferError or EnforceNotMet: not allocated, undefined, or of a type that torch lacks.
    """
    return torch_operand(tensor.impl)


def adopt(Tensor tensor not None, result: torch.Tensor) -> None:
    """Set the sizes, type and memory of `tensor` to those of `result`, a fresh torch.Tensor.

    The memory is shared, so `result` must not be used elsewhere. Wrappers of the same TensorImpl
    change too; tensors that shared the old memory keep it.

    Raises EnforceNotMet: `result` is not contiguous. BufferError: it has no memory.
    """
    cdef TensorImpl fresh = import_torch(result, None)
    if not fresh.flags & CONTIGUOUS:
        raise EnforceNotMet(
            f"A result of strides {fresh.strides().vec()} has to be made contiguous.", "adopt",
            condition="is_contiguous()")
    # The result of an operation: its storage is as large as its sizes require.
    set_flags(fresh.storage, fresh.storage.flags & ~UNVERIFIED)
    become(tensor.impl, fresh)


def put(blob: Blob, result: torch.Tensor) -> None:
    """Set a blob to `result`, a new torch.Tensor that nothing else refers to, made row-major.

    The memory is shared, or few elements are copied into the buffer that the blob has.
    """
    result = result.contiguous()
    put_result(blob, result, import_torch(result, None))
