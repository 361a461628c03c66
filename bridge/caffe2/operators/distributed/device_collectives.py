# SPDX-License-Identifier: Apache-2.0
"""Collective operators over the CUDA devices of one process: one input per device.

Caffe2 calls NCCL; these copy from device to device and add on the first, with the same results.
Follows caffe2/contrib/nccl, PyTorch 1.8.1.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bridge.c10 import int64
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator

_DECLARED: dict[str, Any] = {"devices": ("cuda",), "inputs": "1-16", "gradient": "undefined"}


def total(xs: list[Tensor], root: int = 0) -> Tensor:
    """Return the sum of tensors of one size, on the device of `root`."""
    _require_same(xs)
    found = xs[root].clone()
    for i, x in enumerate(xs):
        if i != root:
            found += x.to(found.device)
    return found


def gathered(xs: list[Tensor]) -> list[Tensor]:
    """Return all tensors stacked, once on the device of each."""
    _require_same(xs)
    return [torch.stack([x.to(to.device) for x in xs]) for to in xs]


def scattered(xs: list[Tensor]) -> list[Tensor]:
    """Return the sum in as many parts as there are tensors, each on the device of its own."""
    fits = xs[0].dim() > 0 and xs[0].shape[0] == len(xs)
    require(fits, "the first dimension is the number of inputs", xs[0], len(xs))
    found = total(xs)
    return [found[i].to(x.device).clone() for i, x in enumerate(xs)]


def _require_same(xs: list[Tensor]) -> None:
    fits = all(x.shape == xs[0].shape and x.dtype == xs[0].dtype for x in xs)
    require(fits, "the inputs have the same sizes and type", *xs)


class _Collective(TorchOperator):
    def RunOnDevice(self) -> None:
        xs = [self.x(i) for i in range(self.InputSize())]
        results = self.results(xs)
        fits = len(results) == self.OutputSize()
        require(fits, f"there are {len(results)} outputs", self.OutputSize())
        for o, result in enumerate(results):
            self.put(o, result)

    @property
    def root(self) -> int:
        """The number of the input that is the root."""
        root = int(self.GetSingleArgument("root", 0))
        require(0 <= root < self.InputSize(), "root is the number of an input", root)
        return root

    def results(self, xs: list[Tensor]) -> list[Tensor]:
        """Return the outputs."""
        raise NotImplementedError


@register_operator("NCCLAllreduce", outputs="1-16", inplace="0>0*", **_DECLARED)
class NCCLAllreduce(_Collective):
    """The sum of the inputs, on each device."""

    def results(self, xs: list[Tensor]) -> list[Tensor]:
        found = total(xs)
        return [found.to(x.device, copy=True) for x in xs]


@register_operator("NCCLBroadcast", outputs="1-16", inplace="0>0*!", **_DECLARED)
class NCCLBroadcast(_Collective):
    """The input `root`, on each device."""

    def results(self, xs: list[Tensor]) -> list[Tensor]:
        _require_same(xs)
        return [xs[self.root].to(x.device, copy=True) for x in xs]


@register_operator("NCCLReduce", outputs="1", inplace="0>0,1>0,2>0,3>0,4>0,5>0", **_DECLARED)
class NCCLReduce(_Collective):
    """The sum of the inputs, on the device of the input `root`."""

    def results(self, xs: list[Tensor]) -> list[Tensor]:
        return [total(xs, self.root)]


@register_operator("NCCLAllGather", outputs="1-16", **_DECLARED)
class NCCLAllGather(_Collective):
    """All inputs stacked, on each device."""

    def results(self, xs: list[Tensor]) -> list[Tensor]:
        return gathered(xs)


@register_operator("NCCLReduceScatter", outputs="1-16", **_DECLARED)
class NCCLReduceScatter(_Collective):
    """Row i of the sum of the inputs, on the device of input i."""

    def results(self, xs: list[Tensor]) -> list[Tensor]:
        return scattered(xs)


@register_operator("GetGPUMemoryUsage", devices=("cuda",), inputs="0", outputs="1")
class GetGPUMemoryUsage(TorchOperator):
    """Bytes that torch has allocated on each device: now, and at most so far; (2, devices)."""

    def RunOnDevice(self) -> None:
        devices = range(torch.cuda.device_count())
        now = [torch.cuda.memory_allocated(i) for i in devices]
        most = [torch.cuda.max_memory_allocated(i) for i in devices]
        out = self.out(0, [2, len(devices)], int64)
        out.copy_(torch.tensor([now, most], dtype=torch.int64, device="cpu"))
