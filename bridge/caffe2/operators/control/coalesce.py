# SPDX-License-Identifier: Apache-2.0
"""UnsafeCoalesce: tensors moved into one shared block of memory."""

from __future__ import annotations

import torch

from bridge.c10 import float32
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import FLOAT, require
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.tensor.tensor import Tensor
from bridge.exchange.import_tensor import import_tensor


@register_operator("UnsafeCoalesce", ("cpu", "cuda"), inputs="0-*", outputs="1-*", inplace="0>0*")
class UnsafeCoalesce(TorchOperator):
    """Concatenate the inputs in the last output (1-d); outputs 0, 1, ... share its memory.

    Outputs 0, 1, ... have the sizes of the inputs and are not copies: a change of one of them is
    seen in the last output and vice versa. An input that already has its place in the last output
    stays there.
    One that gets more elements has memory of its own then.
    Raises EnforceNotMet: an input is not float32, or shares memory with the last output in another
    place.
    Follows UnsafeCoalesceOp, caffe2/operators/unsafe_coalesce.h, PyTorch 1.8.1.
    """

    writes_last = False

    def RunOnDevice(self) -> None:
        n = self.InputSize()
        require(self.OutputSize() == n + 1, "There must be one output per input, and one more.")
        sources = [self.x(i, FLOAT) for i in range(n)]
        ends = [0]
        for source in sources:
            ends.append(ends[-1] + source.numel())
        whole = self.out(n, [ends[-1]], float32)
        first, last = whole.data_ptr(), whole.data_ptr() + whole.nbytes
        for i, source in enumerate(sources):
            if not source.numel() or source.data_ptr() == whole[ends[i] :].data_ptr():
                continue
            fits = not first <= source.data_ptr() < last
            require(fits, f"Input {i} shares memory with the last output, in another place.")
            whole[ends[i] : ends[i + 1]] = source.reshape(-1)
        for i, source in enumerate(sources):
            if source.numel() and source.data_ptr() == whole[ends[i] :].data_ptr():
                continue
            part = whole[ends[i] : ends[i + 1]].view(source.shape)
            # By a capsule, which has this part only: an output that grows must not reach the next.
            capsule = torch.utils.dlpack.to_dlpack(part)  # type: ignore[attr-defined]
            self.OutputTensorAlias(i, Tensor._wrap(import_tensor(capsule)))
