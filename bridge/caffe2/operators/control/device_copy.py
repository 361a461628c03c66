# SPDX-License-Identifier: Apache-2.0
"""Copies between the CPU and a GPU; the operators are registered for the GPU."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.operator import Operator
from bridge.caffe2.execution.registry import register_operator

__all__: list[str] = []


@register_operator("CopyCPUToGPU", devices=("cuda",))
class CopyCPUToGPU(Operator):
    """A copy of input 0 on the operator's GPU. Follows copy_op.cc, PyTorch 1.8.1."""

    def RunOnDevice(self) -> None:
        x = self.Input(0)
        self.OutputTensorCopyFrom(0, c10.device(self.device).dtype(x.dtype()), x)


@register_operator("CopyGPUToCPU", devices=("cuda",))
class CopyGPUToCPU(Operator):
    """A copy of input 0 on the CPU. Follows copy_op.cc, PyTorch 1.8.1."""

    def RunOnDevice(self) -> None:
        x = self.Input(0)
        self.OutputTensorCopyFrom(0, c10.device("cpu").dtype(x.dtype()), x)
