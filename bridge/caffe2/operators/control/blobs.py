# SPDX-License-Identifier: Apache-2.0
"""Operators on whole blobs: copies between devices, moves into one block, order, and names.

Copies between the CPU and a GPU are registered for the GPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bridge.c10 import float32
from bridge.caffe2.execution.function_operator import Out, TargetDevice, operator
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base.checks import FLOAT, require
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure
from bridge.caffe2.tensor import tensor
from bridge.exchange.import_tensor import import_tensor


def _copied_back(maker: GradientMaker) -> None:
    back = {"CopyCPUToGPU": "CopyGPUToCPU", "CopyGPUToCPU": "CopyCPUToGPU"}[maker.op.type]
    given = maker.output_gradients[0]
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


class _Nothing(TorchOperator):
    """No computation; the outputs are in place of inputs.

    A class, since the blobs may hold anything, as queues and counters.
    """

    def RunOnDevice(self) -> None:
        """Do nothing."""

    @staticmethod
    def as_function(*values: Any) -> tuple[Any, ...]:
        """Return the values."""
        return values


@register_operator(
    "AsyncNetBarrier",
    ("cpu", "cuda"),
    inputs="1-*",
    outputs="1-*",
    inplace="0>0*",
    gradient="undefined",
)
class AsyncNetBarrier(_Nothing):
    """No computation; operators before it in a net start before those after it."""


@register_operator(
    "Free", ("cpu", "cuda"), inputs="1-*", outputs="1-*", inplace="0>0*!", gradient="undefined"
)
class Free(_Nothing):
    """Reset the blobs."""

    as_function = None  # type: ignore[assignment]  # it has no values, but an effect

    def RunOnDevice(self) -> None:
        for blob in self.Outputs():
            blob.Reset()


@register_operator("DataCouple", inputs="0-*", outputs="0-*", inplace="0>0*!")
class DataCouple(_Nothing):
    """No computation; an operator that uses an output waits for all inputs."""


@procedure(
    "UnsafeCoalesce",
    ("cpu", "cuda"),
    inputs="0-*",
    outputs="1-*",
    inplace="0>0*",
    writes_last=False,
)
def unsafe_coalesce(op: TorchOperator) -> None:
    """Concatenate the inputs in the last output (1-d); outputs 0, 1, ... share its memory.

    Outputs 0, 1, ... have the sizes of the inputs and are not copies: a change of one of them is
    seen in the last output and vice versa. An input that already has its place in the last output
    stays there.
    One that gets more elements has memory of its own then.
    Raises EnforceNotMet: an input is not float32, or shares memory with the last output in another
    place.
    Follows UnsafeCoalesceOp, caffe2/operators/unsafe_coalesce.h, PyTorch 1.8.1.
    """
    n = op.InputSize()
    require(op.OutputSize() == n + 1, "There must be one output per input, and one more.")
    sources = [op.x(i, FLOAT) for i in range(n)]
    ends = [0]
    for source in sources:
        ends.append(ends[-1] + source.numel())
    whole = op.out(n, [ends[-1]], float32)
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
        op.OutputTensorAlias(i, tensor.Tensor._wrap(import_tensor(capsule)))


@procedure("GetAllBlobNames", inputs="0", outputs="1")
def get_all_blob_names(op: TorchOperator) -> None:
    """The names of the blobs of the workspace, sorted strings."""
    names = [name.encode() for name in sorted(op._workspace._blobs)]
    op.put_strings(0, [len(names)], names)
