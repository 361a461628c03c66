# SPDX-License-Identifier: Apache-2.0
"""Optimizer steps on whole tensors.

The docstring of each class lists the inputs in order; parameters and moments are usually in place.
Gradients point towards a greater loss, so rates are negative.
"""

from __future__ import annotations

import math

from bridge.caffe2.definitions.schemas import schema_of
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import INT64, single

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Adagrad", "Adam", "MomentumSGD", "Optimizer", "RmsProp", "adam_factors"]


class Optimizer(FloatOperator):
    """An operator on gradients, parameters and moments of one size, and a learning rate."""

    def alike(self, *places: int) -> list[Tensor]:
        """Return inputs that must have the same size, in the shape of the first."""
        found = [self.x(i) for i in places]
        for one in found[1:]:
            self.enforce(
                one.numel() == found[0].numel(), "the inputs have the same size", one, found[0]
            )
        return [one.view(found[0].shape) for one in found]

    def rate(self, place: int) -> Tensor:
        """Return the learning rate in input `place`, 0-d."""
        lr = self.x(place)
        self.enforce(lr.numel() == 1, "the learning rate has one element", lr)
        return lr.view(())

    def single(self, name: str, default: float) -> float:
        """Return an argument rounded to float32, as in Caffe2."""
        return single(self.GetSingleArgument(name, default))

    def store(self, *values: Tensor) -> None:
        """Set the outputs, as many as there are, to values, in the shapes of inputs in place."""
        replaced = {o: i for i, o in schema_of(self._definition.type).allowed}
        for o, value in enumerate(values[: self.OutputSize()]):
            i = replaced.get(o)
            if i is not None and value.dim() != self.Input(i).dim():
                value = value.view(torch.Size(self.Input(i).sizes()))
            self.put(o, value)


def momentum_step(op: Optimizer, g: Tensor, m: Tensor, lr: Tensor) -> tuple[Tensor, Tensor]:
    """Return the step and the momentum; arguments `momentum` (0), `nesterov` (False)."""
    momentum = op.single("momentum", 0.0)
    new = lr * g + momentum * m
    if op.GetSingleArgument("nesterov", False):
        return (1 + momentum) * new - momentum * m, new
    return new.clone(), new


@register_operator("MomentumSGD")
class MomentumSGD(Optimizer):
    """(gradient, momentum, rate) -> step, momentum; arguments `momentum`, `nesterov`.

    Follows caffe2/sgd/momentum_sgd_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        g, m = self.alike(0, 1)
        self.store(*momentum_step(self, g, m, self.rate(2)))


@register_operator("MomentumSGDUpdate")
class MomentumSGDUpdate(Optimizer):
    """(gradient, momentum, rate, parameters) -> step, momentum, parameters - step."""

    def RunOnDevice(self) -> None:
        g, m, w = self.alike(0, 1, 3)
        step, new = momentum_step(self, g, m, self.rate(2))
        self.store(step, new, w - step)


def adam_factors(op: Optimizer, place: int) -> tuple[float, float, float]:
    """Return beta1, beta2 and the bias correction at the iteration in input `place`."""
    beta1, beta2 = op.single("beta1", 0.9), op.single("beta2", 0.999)
    t = int(op.x(place, INT64).view(-1)[0]) + 1
    return beta1, beta2, math.sqrt(1 - beta2**t) / (1 - beta1**t)


@register_operator("Adam")
class Adam(Optimizer):
    """(parameters, moment 1, moment 2, gradient, rate, iteration) -> the first three, and the step.

    The step, an optional output, is without the rate.
    Arguments: `beta1` (0.9), `beta2` (0.999), `epsilon` (1e-5).
    Follows AdamOp, caffe2/sgd/adam_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        w, m, v, g = self.alike(0, 1, 2, 3)
        beta1, beta2, correction = adam_factors(self, 5)
        m = m * beta1 + g * (1 - beta1)
        v = v * beta2 + g * g * (1 - beta2)
        step = correction * m / (v.sqrt() + self.single("epsilon", 1e-5))
        self.store(w + self.rate(4) * step, m, v, step)


@register_operator("Adagrad")
class Adagrad(Optimizer):
    """(parameters, moment, gradient, rate) -> parameters, moment, optionally rates and steps.

    Arguments: `epsilon` (1e-5), `decay` (1) of the moment, `weight_decay` (0).
    Follows AdagradOp, caffe2/sgd/adagrad_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        w, h, g = self.alike(0, 1, 2)
        g = g + self.single("weight_decay", 0.0) * w
        h = self.single("decay", 1.0) * h + g * g
        rates = self.rate(3) / (h.sqrt() + self.single("epsilon", 1e-5))
        step = rates * g
        self.store(w + step, h, rates, step)


@register_operator("RmsProp")
class RmsProp(Optimizer):
    """(gradient, mean squares, momentum, rate) -> step, mean squares, momentum.

    Arguments: `decay` (0.9), `momentum` (0), `epsilon` (1e-5).
    Follows RmsPropOp, caffe2/sgd/rmsprop_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        g, squares, m = self.alike(0, 1, 2)
        squares = squares + (1 - self.single("decay", 0.9)) * (g * g - squares)
        step = self.rate(3) * g / (self.single("epsilon", 1e-5) + squares).sqrt()
        m = self.single("momentum", 0.0) * m + step
        self.store(m, squares, m.clone())


@register_operator("Adadelta")
class Adadelta(Optimizer):
    """(parameters, squares of gradients, squares of steps, gradient, rate) -> the first three.

    Arguments: `epsilon` (1e-5), `decay` (0.95).
    Follows AdadeltaOp, caffe2/sgd/adadelta_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        w, h, d, g = self.alike(0, 1, 2, 3)
        self.store(*adadelta_step(self, w, h, d, g, self.rate(4)))


def adadelta_step(
    op: Optimizer, w: Tensor, h: Tensor, d: Tensor, g: Tensor, lr: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return parameters, squares of gradients and of steps after a step."""
    epsilon, decay = op.single("epsilon", 1e-5), op.single("decay", 0.95)
    h = decay * h + (1 - decay) * g * g
    step = (d + epsilon).sqrt() / (h + epsilon).sqrt() * g
    return w + lr * step, h, decay * d + (1 - decay) * step * step


@register_operator("Wngrad")
class Wngrad(Optimizer):
    """(parameters, b, gradient, rate) -> parameters, b, optionally the effective rate and the step.

    Argument: `epsilon` (1e-5).
    Follows WngradOp, caffe2/sgd/wngrad_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        (w, g), b = self.alike(0, 2), self.x(1)
        self.enforce(b.numel() == 1, "b has one element", b)
        scaled = b + self.single("epsilon", 1e-5)
        rate = self.rate(3) / scaled
        step = rate.view(()) * g
        self.store(w + step, b + g.square().sum() / scaled, rate, step)


@register_operator("Storm")
class Storm(Optimizer):
    """(parameters, moment, sum of squares, gradient, rate) -> the first three.

    Arguments: `momentum` (10), `beta` (0.1).
    Follows StormOp, caffe2/sgd/storm_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        w, m, g = self.alike(0, 1, 3)
        rate, alpha, total = storm_rate(self, self.x(2), g, self.rate(4))
        m = g + (1 - alpha) * (m - g)
        self.store(w + rate * m, m, total)


def storm_rate(
    op: Optimizer, squares: Tensor, g: Tensor, lr: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the rate, the weight of the gradient, and the sum of squares."""
    op.enforce(squares.numel() == 1, "the sum of squares has one element", squares)
    total = squares + g.square().sum()
    rate = lr * (op.single("beta", 0.1) + total.view(())).pow(-1 / 3)
    return rate, op.single("momentum", 10.0) * rate * rate, total


@register_operator("Lars")
class Lars(Optimizer):
    """(parameters, gradient, weight decay, trust, largest rate) -> a rate for the layer (1).

    Arguments: `offset` (0.5), `lr_min` (0.02).
    Follows LarsOp, caffe2/sgd/lars_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, dx = self.alike(0, 1)
        decay, trust, largest = (self.rate(i) for i in (2, 3, 4))
        norm, slope = torch.linalg.vector_norm(x), torch.linalg.vector_norm(dx)
        rate = torch.ones(())
        if float(norm) > 0:
            rate = trust / (slope / norm + decay + self.single("offset", 0.5))
        rate = torch.minimum(rate, largest).clamp(min=self.single("lr_min", 0.02))
        self.put(0, rate.view(1))


@register_operator("WeightScale")
class WeightScale(Optimizer):
    """(weights, iteration) -> weights, times `scale` (1) every `stepsize` iterations.

    Only before iteration `upper_bound_iter`.
    Follows WeightScaleOp, caffe2/sgd/weight_scale_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        w, n = self.x(0), int(self.x(1, INT64).view(-1)[0]) + 1
        largest = 2**63 - 1
        step = self.GetSingleArgument("stepsize", largest)
        now = n % step == 0 and n < self.GetSingleArgument("upper_bound_iter", largest)
        self.put(0, w * (self.single("scale", 1.0) if now else 1.0))


@register_operator("LearningRateAdaption")
class LearningRateAdaption(Optimizer):
    """(rate, gradient, effective gradient) -> the rate: the more they agree, the lower.

    Arguments: `lr_alpha` (0.01), `normalized_lr_adaption` (True).
    Follows LearningRateAdaptionOp, caffe2/sgd/learning_rate_adaption_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        lr, (g, effective) = self.x(0), self.alike(1, 2)
        self.enforce(lr.numel() == 1, "the learning rate has one element", lr)
        along, alpha = (g * effective).sum(), self.single("lr_alpha", 0.01)
        if self.GetSingleArgument("normalized_lr_adaption", True):
            norms = [torch.linalg.vector_norm(one).clamp(min=1e-12) for one in (g, effective)]
            self.put(0, lr * (1 - alpha * along / (norms[0] * norms[1])))
        else:
            self.put(0, lr - alpha * along)
