# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions of several inputs, and their gradients; Accumulate; Where, Conditional."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge import c10
from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.execution.function_operator import (
    InPlace,
    OperatorType,
    Out,
    OutputCount,
    operator,
)
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base.checks import (
    BOOL,
    FLOAT,
    FLOATS,
    INT32,
    NUMBERS,
    require,
    shaped_like,
)
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_few, takes_kernels
from bridge.caffe2.operators.base.gradients import gradient_alone
from bridge.caffe2.operators.base.rows_and_segments import along_rows
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.elementwise import small_kernels
from bridge.caffe2.operators.movement.copies import copied, passed_on


def _enforce_alike(xs: tuple[Tensor, ...]) -> None:
    for i, x in enumerate(xs):
        if x.dtype != xs[0].dtype or x.shape != xs[0].shape:
            raise EnforceTypeError(
                f"Inputs 0 and {i} are {xs[0].dtype} of sizes {list(xs[0].shape)} and {x.dtype} of "
                f"sizes {list(x.shape)}, which must be the same."
            )


def _total(xs: tuple[Tensor, ...], out: Out) -> Tensor:
    """Return the sum of the tensors, which all but the first may not be `out`."""
    _enforce_alike(xs)
    if len(xs) == 1:
        return copied(xs[0], out)
    if out is not None and len(xs) > 2 and takes_few(out, *xs):
        return run_kernel(small_kernels.total, out, [*xs], out.numel())
    total = torch.add(xs[0], xs[1], out=out)
    for x in xs[2:]:
        total = torch.add(total, x, out=out)
    return total


@operator("Sum", inplace="0>0", types=NUMBERS, inputs="1-*", gradient=passed_on)
@operator("SumInt", inplace="0>0", types=NUMBERS, inputs="1-*")
def sum_(*xs: Tensor, out: Out = None) -> Tensor:
    """The sum of the inputs."""
    return _total(xs, out)


@operator("Mean", inplace="0>0", types=FLOATS, inputs="1-*", gradient="$Gradient g0 > *")
def mean(*xs: Tensor, out: Out = None) -> Tensor:
    """The mean of the inputs."""
    return torch.mul(_total(xs, out), 1 / len(xs), out=out)


@operator("Max", inplace="0>0", inputs="1-*", gradient="$Gradient o0 g0 i*! > *")
@operator("Min", inplace="0>0", inputs="1-*", gradient="$Gradient o0 g0 i*! > *")
def extreme(*xs: Tensor, kind: OperatorType, out: Out = None) -> Tensor:
    """The elementwise maximum or minimum of the inputs; with NaN the earlier one.

    Its gradient is that of Caffe2: all of several equal elements have the gradient of the result.
    """
    greatest = kind == "Max"
    _enforce_alike(xs)
    if len(xs) == 1:
        return copied(xs[0], out)
    y = xs[0].detach()
    by_kernel = takes_kernels(*xs, *(() if out is None else (out,)))
    made = torch.empty_like(y) if by_kernel and out is None else out
    for x in xs[1:]:
        if by_kernel:
            y = run_kernel(small_kernels.extreme, made, y, x, greatest, y.numel())
        else:
            y = torch.where(y < x.detach() if greatest else x.detach() < y, x.detach(), y, out=out)
    if any(x.requires_grad for x in xs):
        for x in xs:
            y = y + torch.where(x == y, gradient_alone(x), x.new_zeros(()))
    return y


def _weighted_sum_gradient(maker: GradientMaker) -> None:
    count = len(maker.op.input)
    wanted = [*range(0, count, 2), *(range(1, count, 2) if maker.argument("grad_on_w", 0) else ())]
    inputs = [maker.GO(0), *maker.op.input]
    maker.add("WeightedSumGradient", inputs, [maker.GI(i) for i in wanted])


@operator("WeightedSum", inplace="0>0", inputs="2n", gradient=_weighted_sum_gradient)
def weighted_sum(*xs: Tensor, in_place: InPlace | None = None, out: Out = None) -> Tensor:
    """The sum of inputs 0, 2, ... times the weights in inputs 1, 3, ..."""
    values, weights = xs[::2], xs[1::2]
    first = values[0]
    require(len(values) == len(weights), "each input is followed by its weight")
    require(first.numel() > 0, "input 0 is not empty", first)
    for x, weight in zip(values, weights, strict=True):
        require(x.numel() == first.numel(), "the inputs have the same number of elements", x, first)
        require(weight.numel() == 1, "a weight has one element", weight)
    fits = not in_place or all(x is not first for x in values[1:])
    require(fits, "the output is in place of input 0 only")
    total = torch.mul(first, weights[0].view(()), out=out)
    for x, weight in zip(values[1:], weights[1:], strict=True):
        total = torch.addcmul(total, x.view(first.shape), weight.view(()), out=out)
    return total


@operator("SumRelu", inplace="0>0", types=(*FLOATS, *INT32), inputs="1-*")
def sum_relu(*xs: Tensor, out: Out = None) -> Tensor:
    """max(the sum of the inputs, 0)."""
    return torch.clamp_min(_total(xs, out), 0, out=out)


@operator("MaxGradient", inputs="3-*")
@operator("MinGradient", inputs="3-*")
def extreme_gradient(
    y: Tensor, dy: Tensor, *xs: Tensor, outputs: OutputCount = 1
) -> tuple[Tensor, ...]:
    """(Y, dY, X0, X1, ...) -> dX0, dX1, ...: dY where X equals Y, else 0."""
    require(outputs == len(xs), "there is one output per X", outputs)
    zero = dy.new_zeros(())
    found = []
    for x in xs:
        largest, slope = shaped_like(y, x), shaped_like(dy, x)
        found.append(torch.where(x == largest, slope, zero))
    return tuple(found)


@operator("MeanGradient", inplace="0>0", types=FLOATS)
def mean_gradient(dy: Tensor, *, outputs: OutputCount = 1) -> tuple[Tensor, ...]:
    """dX0, dX1, ... = dY / n for n outputs."""
    return tuple([dy / outputs for _ in range(outputs)])


@operator("WeightedSumGradient", inputs="2n-1")
def weighted_sum_gradient(
    dy: Tensor, *xs: Tensor, grad_on_w: bool = False, outputs: OutputCount = 1
) -> tuple[Tensor, ...]:
    """(dY, X0, w0, X1, w1, ...) -> dX0, dX1, ..., with `grad_on_w` also dw0, dw1, ..."""
    n = len(xs) // 2
    require(outputs == n * (1 + grad_on_w), "there is one gradient per X", n)
    for w in xs[1::2]:
        require(w.numel() == 1, "a weight has one element", w)
    dxs = [dy * w.view(()) for w in xs[1::2]]
    if grad_on_w:
        dxs += [(dy * x).sum().view(1) for x in xs[::2]]
    return tuple(dxs)


@register_operator("Accumulate", ("cpu", "cuda"), inputs="1", outputs="1", gradient="undefined")
class Accumulate(TorchOperator):
    """Input 0 plus `gamma` (1) times the output's former elements, if it has as many.

    A class, since a function does not see the old value of its output.
    """

    reads_outputs = True

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        before = self.Output(0)
        known = before.dtype() is c10.float32 and before.storage_initialized()
        known = known and before.GetDevice() == self.device
        if not known or before.numel() != x.numel():
            self.out(0, x.shape, c10.float32).copy_(x)
            return
        gamma = self.GetSingleArgument("gamma", 1.0)
        self.out(0, x.shape, c10.float32).mul_(gamma).add_(x)


_TYPES = {"condition": BOOL, "x": None, "y": "x"}


def _by_rows(condition: Tensor, x: Tensor) -> Tensor:
    """Return a view of conditions, one per row of `x`, that broadcasts with `x`."""
    fits = condition.dim() == 1 and x.dim() > 0 and condition.shape[0] == x.shape[0]
    require(fits, "there is one bool per row", condition, x)
    return along_rows(condition, x)


@operator("Where", types=_TYPES, gradient="undefined")
def where(
    condition: Tensor, x: Tensor, y: Tensor, *, broadcast_on_rows: bool = False, out: Out = None
) -> Tensor:
    """X where the condition is true, else Y; by rows with `broadcast_on_rows`."""
    known = (torch.int32, torch.int64, torch.float32, torch.float64, torch.bool)
    require(x.dtype in known, "X is of numbers, bools or strings", x.dtype)
    require(x.shape == y.shape, "X and Y have the same sizes", x, y)
    if broadcast_on_rows:
        condition = _by_rows(condition, x)
    else:
        require(condition.shape == x.shape, "the condition has the sizes of X", condition, x)
    return torch.where(condition, x, y, out=out)


@operator("Conditional", types=_TYPES, gradient="none")
def conditional(condition: Tensor, x: Tensor, y: Tensor, *, out: Out = None) -> Tensor:
    """The rows of X where the condition is true, else those of Y."""
    require(x.shape == y.shape, "X and Y have the same sizes", x, y)
    return torch.where(_by_rows(condition, x), x, y, out=out)
