# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions of any number of inputs: Sum, Mean, Max, Min, WeightedSum."""

from __future__ import annotations

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOAT, NUMBERS, TorchOperator, enforce

__all__: list[str] = []


class _Several(TorchOperator):
    """A function of all inputs, which have the same type and sizes."""

    types: tuple[TypeMeta, ...] = FLOAT

    def RunOnDevice(self) -> None:
        """Compute into the output's own buffer, which may be that of input 0."""
        dtype = self.Input(0).dtype()
        tensors = [self.x(0, self.types)]
        for i in range(1, self.InputSize()):
            tensors.append(self.x(i, (dtype,)))
            if tensors[i].shape != tensors[0].shape:
                raise EnforceTypeError(
                    f"Inputs 0 and {i} have sizes {list(tensors[0].shape)} and "
                    f"{list(tensors[i].shape)}, which must be the same."
                )
        out = self.out(0, tensors[0].shape, dtype)
        if len(tensors) == 1:
            if not self._in_place:
                out.copy_(tensors[0])
            return
        self.join(tensors[0], tensors[1], out)
        for tensor in tensors[2:]:
            self.join(out, tensor, out)
        self.finish(out, len(tensors))

    def join(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        """Write the function of `a` and `b` to `out`."""
        raise NotImplementedError

    def finish(self, out: torch.Tensor, n: int) -> None:
        """Change the function of all `n` inputs into the result, in place."""


@register_operator("Sum")
@register_operator("SumInt")
class Sum(_Several):
    """The sum of the inputs."""

    types: tuple[TypeMeta, ...] = NUMBERS

    def join(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        """Add."""
        torch.add(a, b, out=out)


@register_operator("Mean")
class Mean(Sum):
    """The mean of the inputs."""

    types = (c10.float32, c10.float64)

    def finish(self, out: torch.Tensor, n: int) -> None:
        """Divide by the number of inputs."""
        out.mul_(1 / n)


@register_operator("Max")
class Max(_Several):
    """The elementwise maximum of the inputs; with NaN the earlier one."""

    def join(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        """Select the greater one."""
        torch.where(a < b, b, a, out=out)


@register_operator("Min")
class Min(_Several):
    """The elementwise minimum of the inputs; with NaN the earlier one."""

    def join(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        """Select the lesser one."""
        torch.where(b < a, b, a, out=out)


@register_operator("WeightedSum")
class WeightedSum(TorchOperator):
    """The sum of inputs 0, 2, ... times the weights in inputs 1, 3, ..."""

    def RunOnDevice(self) -> None:
        enforce(self.InputSize() % 2 == 0, "Each input must be followed by its weight.")
        first = self.x(0, FLOAT)
        enforce(first.numel() > 0, "Input 0 must not be empty.")
        weights = []
        for i in range(0, self.InputSize(), 2):
            x, weight = self.x(i, FLOAT), self.x(i + 1, FLOAT)
            enforce(x.numel() == first.numel(), "The inputs must have the same number of elements.")
            enforce(weight.numel() == 1, f"Input {i + 1}, a weight, must have one element.")
            enforce(
                not i or not self.IsInputOutputAlias(i, 0),
                f"The output cannot be in place of input {i}, only of input 0.",
            )
            weights.append(weight.item())
        out = self.out(0, first.shape, c10.float32)
        torch.mul(first, weights[0], out=out)
        for i, weight in enumerate(weights[1:], 1):
            out.add_(self.x(2 * i).view(first.shape), alpha=weight)
