# SPDX-License-Identifier: Apache-2.0
"""Operators that copy a tensor or alias its memory."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, TargetDevice, operator
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.gradients import with_gradient
from bridge.caffe2.operators.base.torch_operator import TorchOperator


def _copied(x: Tensor, out: Out) -> Tensor:
    """Return `x`, copied to `out` if there is one; the engine copies other results."""
    return x if out is None or out is x else out.copy_(x)


@operator("Copy", types=None, across=("x",), gradient="CopyOnDeviceLike g0 i0 > 0")
def copy(x: Tensor, *, device: TargetDevice = "cpu", out: Out = None) -> Tensor:
    """A copy of X, of any type, which may be on another GPU."""
    return _copied(x, out) if out is not None or x.device == device else x.to(device)


@operator("CopyOnDeviceLike", types=None, rearranges={0: 0}, on_host=("x",))
def copy_on_device_like(x: Tensor, like: Tensor) -> Tensor:
    """A copy of X, of any type, on the device of `like`."""
    return x.to(like.device)


@operator("CopyFromCPUInput", types=None, on_host=("x",))
def copy_from_cpu_input(x: Tensor, *, device: TargetDevice = "cpu") -> Tensor:
    """A copy of X, which is on the CPU, on the device of the operator."""
    return x.to(device)


@operator("EnsureCPUOutput", types=None, on_host=("x",), gradient="none")
def ensure_cpu_output(x: Tensor) -> Tensor:
    """A copy of X on the CPU."""
    return x.cpu() if x.is_cuda else x


@operator("StopGradient", inplace="0>0", types=None, gradient="none")
def stop_gradient(x: Tensor, *, out: Out = None) -> Tensor:
    """A copy of X, which has no gradient."""
    return _copied(x, out) if not x.requires_grad else x.detach()


@operator("ZeroGradient", types=None, gradient="ConstantFill{value=0.0} i0 > 0")
def zero_gradient(x: Tensor) -> None:
    """No output; the gradient of the input is zero instead of undefined."""


@operator("NegateGradient", inplace="0>0", types=None, gradient="Negative g0 > 0")
def negate_gradient(x: Tensor, *, out: Out = None) -> Tensor:
    """A copy of X, whose gradient is negated."""
    return with_gradient(x.detach(), -x) if x.requires_grad else _copied(x, out)


def _dense_gradient(maker: GradientMaker) -> None:
    given = maker.given[0]
    if isinstance(given, GradientSlice):
        maker.add("SparseToDense", [*map(str, given), maker.I(0)], [maker.GI(0)])
    else:
        maker.set_gradient(0, maker.GO(0))


@operator("EnsureDense", inplace="0>0", types=None, gradient=_dense_gradient)
def ensure_dense(x: Tensor, *, out: Out = None) -> Tensor:
    """A copy of X, which must have at least one dimension."""
    require(x.dim() > 0, "X has at least one dimension", x)
    return _copied(x, out)


def _passed_on(maker: GradientMaker) -> None:
    for i in range(len(maker.op.input)):
        maker.set_gradient(i, maker.GO(0))


@register_operator("Alias", ("cpu", "cuda"), inputs="1", outputs="1", gradient=_passed_on)
class Alias(TorchOperator):
    """A tensor with its own sizes that shares the memory of input 0.

    A class, since results of functions have memory of their own.
    """

    def RunOnDevice(self) -> None:
        self.OutputTensorAlias(0, self.given(0))

    @staticmethod
    def as_function(x: Tensor) -> Tensor:
        """Return the value."""
        return x


@register_operator("AliasWithName", ("cpu", "cuda"), inputs="1", outputs="1", inplace="0>0")
class AliasWithName(Alias):
    """Alias; the argument `name` is metadata."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        require(self.HasArgument("name"), "The argument name is missing.")
