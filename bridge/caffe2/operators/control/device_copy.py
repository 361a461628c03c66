# SPDX-License-Identifier: Apache-2.0
"""Copies between devices. Those between the CPU and a GPU are registered for the GPU."""

from __future__ import annotations

from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, TargetDevice, operator
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.gradients.maker import GradientMaker


def _copied_back(maker: GradientMaker) -> None:
    back = {"CopyCPUToGPU": "CopyGPUToCPU", "CopyGPUToCPU": "CopyCPUToGPU"}[maker.op.type]
    given = maker.given[0]
    if isinstance(given, GradientSlice):
        gradient = maker.GI_slice(0)
        maker.add(back, [str(given.indices)], [gradient.indices])
        maker.add(back, [str(given.values)], [gradient.values])
    else:
        maker.add(back, [maker.GO(0)], [maker.GI(0)])


@operator("CopyCPUToGPU", types=None, on_host=("x",), devices=("cuda",), gradient=_copied_back)
def copy_cpu_to_gpu(x: Tensor, *, device: TargetDevice = "cuda", out: Out = None) -> Tensor:
    """A copy of input 0 on the operator's GPU. Follows copy_op.cc, PyTorch 1.8.1."""
    return x.to(device, copy=True) if out is None else out.copy_(x)


@operator("CopyGPUToCPU", types=None, across=("x",), devices=("cuda",), gradient=_copied_back)
def copy_gpu_to_cpu(x: Tensor) -> Tensor:
    """A copy of input 0 on the CPU. Follows copy_op.cc, PyTorch 1.8.1."""
    return x.to("cpu", copy=True)


def _copy(x: Tensor, *, out: Out = None) -> Tensor:
    """A copy of input 0: tensors on the devices IDEEP and MKLDNN are on the CPU."""
    return x.clone() if out is None else out.copy_(x)


for _name in ("CopyCPUToIDEEP", "CopyIDEEPToCPU", "CopyCPUToMKL", "CopyMKLToCPU"):
    operator(_name, types=None, devices=("cpu",))(_copy)
