# SPDX-License-Identifier: Apache-2.0
"""Optimizer steps on whole tensors.

Parameters and moments are usually in place. Gradients point towards a greater loss, so rates are
negative. Inputs of one size may differ in their dimensions: each output has those of the input that
it replaces. Follows momentum_sgd_op.h, adam_op.h, adagrad_op.h, rmsprop_op.cc, adadelta_op.h,
wngrad_op.h, storm_op.h, lars_op.cc, weight_scale_op.h, learning_rate_adaption_op.h and
fp32_momentum_sgd_op.h in caffe2/sgd, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Out, OutputCount, operator
from bridge.caffe2.operators.base.checks import INT64, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_few
from bridge.caffe2.operators.training import step_kernels


def writable(out: Out, o: int, x: Tensor) -> Tensor:
    """Return the buffer of output `o`, which holds `x`, or a copy of `x`."""
    room: Tensor | None = None if out is None else out[o]
    if room is None:
        return x.clone()
    return room if room is x else room.copy_(x)


def stepped(
    kernel: Callable[..., Any], out: Out, states: tuple[Tensor, ...], *given: Any
) -> tuple[Tensor, ...]:
    """Return `states` after a step by a kernel, which takes them, and the rest, in place."""
    made = tuple(writable(out, o, one) for o, one in enumerate(states))
    run_kernel(kernel, *made, *given)
    return made


def alike(first: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """Return tensors that must have one size, in the shape of the first."""
    for one in others:
        require(one.numel() == first.numel(), "the inputs have the same size", one, first)
    return first, *(one.view(first.shape) for one in others)


def learning_rate_of(lr: Tensor) -> Tensor:
    """Return a learning rate as 0-d."""
    require(lr.numel() == 1, "the learning rate has one element", lr)
    return lr.view(())


def written(out: Out, *values: Tensor) -> tuple[Tensor, ...]:
    """Return the values, or the buffers with them; a value in its buffer is not copied."""
    if out is None:
        return values
    for room, value in zip(out, values, strict=False):
        if value is not room:
            room.copy_(value.view(room.shape))
    return tuple(out)


def all_of(x: Tensor) -> tuple[int, int, int, bool]:
    """Return the sizes for kernels that step on rows: all of a table is one row."""
    return 1, 1, x.numel(), False


class MomentumRule:
    """The arguments `momentum` (0), `nesterov` (False), and where it is one `weight_decay` (0)."""

    takes = "float momentum, bool nesterov, float weight_decay, bool fp32_update"

    def __init__(self, arguments: Arguments) -> None:
        self.momentum: float = arguments.single("momentum", 0.0)
        self.nesterov = bool(arguments.single("nesterov", False))
        self.weight_decay: float = arguments.single("weight_decay", 0.0)


def momentum_step(g: Tensor, m: Tensor, lr: Tensor, rule: MomentumRule) -> tuple[Tensor, Tensor]:
    """Return the step and the momentum, which are one tensor without `nesterov`."""
    momentum = rule.momentum
    new = torch.add(g * lr, m, alpha=momentum) if momentum else g * lr
    if rule.nesterov:
        return torch.sub(new * (1 + momentum), m, alpha=momentum), new
    return new, new


@operator("MomentumSGD", inplace="0>0,1>1", gradient="undefined", outputs=2)
def momentum_sgd(
    grad: Tensor, moment: Tensor, lr: Tensor, *, rule: MomentumRule, out: Out = None
) -> tuple[Tensor, ...]:
    """(gradient, momentum, rate) -> step, momentum."""
    g, m = alike(grad, moment)
    if takes_few(g, m, lr):
        given = (None, None, learning_rate_of(lr), *all_of(g), rule.momentum, rule.nesterov)
        return stepped(step_kernels.momentum, out, (grad, moment), *given)
    step, new = momentum_step(g, m, learning_rate_of(lr), rule)
    return written(out, step, new.view(moment.shape))


@operator("MomentumSGDUpdate", inplace="0>0,1>1,3>2", gradient="undefined", outputs=3)
def momentum_sgd_update(
    grad: Tensor, moment: Tensor, lr: Tensor, param: Tensor, *, rule: MomentumRule, out: Out = None
) -> tuple[Tensor, ...]:
    """(gradient, momentum, rate, parameters) -> step, momentum, parameters - step."""
    g, m, w = alike(grad, moment, param)
    if takes_few(g, m, w, lr):
        given = (None, learning_rate_of(lr), *all_of(g), rule.momentum, rule.nesterov)
        return stepped(step_kernels.momentum, out, (grad, moment, param), *given)
    step, new = momentum_step(g, m, learning_rate_of(lr), rule)
    if out is None:
        return step, new.view(moment.shape), (w - step).view(param.shape)
    torch.sub(w, step, out=out[2].view(w.shape))
    return written(out, step, new, out[2])


@operator(
    "Adam",
    inplace="0>0,1>1,2>2",
    types={"iteration": INT64},
    on_host=("iteration",),
    outputs="3-4",
    gradient="undefined",
)
def adam(
    param: Tensor,
    moment_1: Tensor,
    moment_2: Tensor,
    grad: Tensor,
    lr: Tensor,
    iteration: Tensor,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-5,
    outputs: OutputCount = 4,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(parameters, moment 1, moment 2, gradient, rate, iteration) -> the first three, and the step.

    The step, an optional output, is without the rate.
    """
    w, m, v, g = alike(param, moment_1, moment_2, grad)
    lr = learning_rate_of(lr)
    if takes_few(w, m, v, g, lr) and iteration.is_cpu and iteration.numel() == 1:
        states = (param, moment_1, moment_2, param)[:outputs]
        given = (g, lr, iteration, w.numel(), beta1, beta2, epsilon)
        return stepped(step_kernels.adam, out, states, *(() if outputs > 3 else (None,)), *given)
    t = iteration.view(-1)[0].to(torch.float64) + 1
    correction = torch.sqrt(1 - torch.pow(beta2, t)) / (1 - torch.pow(beta1, t))
    places = (None, None, None) if out is None else [one.view(w.shape) for one in out[:3]]
    m = torch.add(m * beta1, g, alpha=1 - beta1, out=places[1])
    v = torch.add(v * beta2, g * g, alpha=1 - beta2, out=places[2])
    step = m * correction / (torch.sqrt(v) + epsilon)
    w = torch.add(w, step * lr, out=places[0])
    if out is not None:
        return written(out, *out[:3], step)
    return w, m.view(moment_1.shape), v.view(moment_2.shape), step


@operator("Adagrad", inplace="0>0,1>1", outputs="2-4", gradient="undefined")
def adagrad(
    param: Tensor,
    moment: Tensor,
    grad: Tensor,
    lr: Tensor,
    *,
    epsilon: float = 1e-5,
    decay: float = 1.0,
    weight_decay: float = 0.0,
    outputs: OutputCount = 4,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(parameters, moment, gradient, rate) -> parameters, moment, optionally rates and steps.

    `decay`: that of the moment.
    """
    w, h, g = alike(param, moment, grad)
    if outputs == 2 and takes_few(w, h, g, lr):
        given = (g, learning_rate_of(lr), w.numel(), epsilon, decay, weight_decay)
        return stepped(step_kernels.adagrad, out, (param, moment), *given)
    g = torch.add(g, w, alpha=weight_decay) if weight_decay else g
    places = (None, None) if out is None else [one.view(w.shape) for one in out[:2]]
    h = torch.add(h * decay, g * g, out=places[1])
    rates = learning_rate_of(lr) / (torch.sqrt(h) + epsilon)
    step = rates * g
    w = torch.add(w, step, out=places[0])
    if out is not None:
        return written(out, *out[:2], rates, step)
    return w, h.view(moment.shape), rates, step


@operator("RmsProp", inplace="0>0,1>1,2>2", gradient="undefined", outputs=3)
def rms_prop(
    grad: Tensor,
    mean_squares: Tensor,
    moment: Tensor,
    lr: Tensor,
    *,
    decay: float = 0.9,
    momentum: float = 0.0,
    epsilon: float = 1e-5,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(gradient, mean squares, momentum, rate) -> step, mean squares, momentum."""
    g, squares, m = alike(grad, mean_squares, moment)
    if takes_few(g, squares, m, lr):
        given = (learning_rate_of(lr), g.numel(), decay, momentum, epsilon)
        return stepped(step_kernels.rms_prop, out, (grad, mean_squares, moment), *given)
    squares = torch.add(squares, g * g - squares, alpha=1 - decay)
    step = g * learning_rate_of(lr) / torch.sqrt(squares + epsilon)
    m = torch.add(step, m, alpha=momentum) if momentum else step
    return written(out, m, squares.view(mean_squares.shape), m.view(moment.shape))


def adadelta_step(
    w: Tensor, h: Tensor, d: Tensor, g: Tensor, lr: Tensor, epsilon: float, decay: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return parameters, squares of gradients and of steps after a step."""
    h = torch.add(h * decay, g * g, alpha=1 - decay)
    step = torch.sqrt(d + epsilon) / torch.sqrt(h + epsilon) * g
    return w + step * lr, h, torch.add(d * decay, step * step, alpha=1 - decay)


@operator("Adadelta", inplace="0>0,1>1,2>2", gradient="undefined", outputs=3)
def adadelta(
    param: Tensor,
    moment: Tensor,
    moment_delta: Tensor,
    grad: Tensor,
    lr: Tensor,
    *,
    epsilon: float = 1e-5,
    decay: float = 0.95,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(parameters, squares of gradients, squares of steps, gradient, rate) -> the first three."""
    w, h, d, g = alike(param, moment, moment_delta, grad)
    if takes_few(w, h, d, g, lr):
        given = (None, g, learning_rate_of(lr), *all_of(w), epsilon, decay)
        return stepped(step_kernels.adadelta, out, (param, moment, moment_delta), *given)
    w, h, d = adadelta_step(w, h, d, g, learning_rate_of(lr), epsilon, decay)
    return written(out, w, h.view(moment.shape), d.view(moment_delta.shape))


@operator("Wngrad", inplace="0>0,1>1", outputs="2-4", gradient="undefined")
def wngrad(
    param: Tensor,
    moment: Tensor,
    grad: Tensor,
    lr: Tensor,
    *,
    epsilon: float = 1e-5,
    outputs: OutputCount = 4,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(parameters, b, gradient, rate) -> parameters, b, optionally effective rate and step."""
    (w, g), b = alike(param, grad), moment
    require(b.numel() == 1, "b has one element", b)
    if outputs == 2 and takes_few(w, g, b, lr):
        given = (None, g, learning_rate_of(lr), *all_of(w), epsilon)
        return stepped(step_kernels.wngrad, out, (param, moment), *given)
    scaled = b + epsilon
    rate = learning_rate_of(lr) / scaled
    step = rate.view(()) * g
    return written(out, w + step, b + torch.sum(g * g) / scaled, rate, step)


def storm_rate(
    squares: Tensor, g: Tensor, lr: Tensor, momentum: float, beta: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the rate, the weight of the gradient, and the sum of squares."""
    require(squares.numel() == 1, "the sum of squares has one element", squares)
    total = squares + torch.sum(g * g)
    rate = lr * torch.pow(total.view(()) + beta, -1 / 3)
    return rate, rate * rate * momentum, total


@operator("Storm", inplace="0>0,1>1,2>2", gradient="undefined", outputs=3)
def storm(
    param: Tensor,
    moment: Tensor,
    grad_sq_sum: Tensor,
    grad: Tensor,
    lr: Tensor,
    *,
    momentum: float = 10.0,
    beta: float = 0.1,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(parameters, moment, sum of squares, gradient, rate) -> the first three."""
    w, m, g = alike(param, moment, grad)
    if takes_few(w, m, g, grad_sq_sum, lr) and grad_sq_sum.numel() == 1:
        given = (None, g, learning_rate_of(lr), *all_of(w), momentum, beta)
        return stepped(step_kernels.storm, out, (param, moment, grad_sq_sum), *given)
    rate, alpha, total = storm_rate(grad_sq_sum, g, learning_rate_of(lr), momentum, beta)
    m = g + (1 - alpha) * (m - g)
    return written(out, w + rate * m, m.view(moment.shape), total)


@operator("Lars", gradient="undefined")
def lars(
    x: Tensor,
    dx: Tensor,
    weight_decay: Tensor,
    trust: Tensor,
    lr_max: Tensor,
    *,
    offset: float = 0.5,
    lr_min: float = 0.02,
) -> Tensor:
    """(parameters, gradient, weight decay, trust, largest rate) -> a rate for the layer (1)."""
    x, dx = alike(x, dx)
    decay, trust, largest = (learning_rate_of(one) for one in (weight_decay, trust, lr_max))
    norm, slope = torch.linalg.vector_norm(x), torch.linalg.vector_norm(dx)
    rate = torch.where(norm > 0, trust / (slope / norm + decay + offset), norm.new_ones(()))
    return torch.minimum(rate, largest).clamp(min=lr_min).view(1)


@operator(
    "WeightScale",
    inplace="0>0",
    types={"iteration": INT64},
    on_host=("iteration",),
    gradient="undefined",
)
def weight_scale(
    w: Tensor,
    iteration: Tensor,
    *,
    stepsize: int = 2**63 - 1,
    upper_bound_iter: int = 2**63 - 1,
    scale: float = 1.0,
    out: Out = None,
) -> Tensor:
    """(weights, iteration) -> weights, times `scale` every `stepsize` iterations.

    Only before iteration `upper_bound_iter`.
    """
    n = iteration.view(-1)[0] + 1
    now = (n % stepsize == 0) & (n < upper_bound_iter)
    ones = torch.ones((), dtype=w.dtype, device=iteration.device)
    return torch.mul(w, torch.where(now, ones * scale, ones), out=out)


@operator("LearningRateAdaption", inplace="0>0", gradient="none")
def learning_rate_adaption(
    lr: Tensor,
    grad: Tensor,
    effgrad: Tensor,
    *,
    lr_alpha: float = 0.01,
    normalized_lr_adaption: bool = True,
    out: Out = None,
) -> Tensor:
    """(rate, gradient, effective gradient) -> the rate: the more they agree, the lower."""
    g, effective = alike(grad, effgrad)
    require(lr.numel() == 1, "the learning rate has one element", lr)
    along = torch.sum(g * effective)
    if not normalized_lr_adaption:
        return torch.sub(lr, along, alpha=lr_alpha, out=out)
    norms = [torch.linalg.vector_norm(one).clamp(min=1e-12) for one in (g, effective)]
    return torch.mul(lr, 1 - lr_alpha * along / (norms[0] * norms[1]), out=out)


_HALF = dict.fromkeys(("grad", "moment", "param"), (c10.float16,))
_DECLARED: dict[str, Any] = {
    "inplace": "0>0,1>1,3>2",
    "gradient": "undefined",
    "devices": ("cuda",),
}


@operator("FP32MomentumSGDUpdate", **_DECLARED)
@operator("FP16MomentumSGDUpdate", types=_HALF, **_DECLARED)
def momentum_sgd_update_with_decay(
    grad: Tensor, moment: Tensor, lr: Tensor, param: Tensor, *, rule: MomentumRule
) -> tuple[Tensor, Tensor, Tensor]:
    """(gradient, momentum, rate, parameters) -> step, momentum, parameters - step.

    The gradient grows by `weight_decay` times the parameters. Float16 is computed in float32 and
    rounded at the end, as with `fp32_update`; without it Caffe2 rounds each intermediate result.
    """
    g, m, w = (one.float() for one in alike(grad, moment, param))
    step, new = momentum_step(g + rule.weight_decay * w, m, learning_rate_of(lr), rule)
    made = step.to(grad.dtype), new.view(moment.shape).to(moment.dtype)
    return *made, (w - step).view(param.shape).to(param.dtype)


def _tuned(
    distance: Tensor, variance: Tensor, least: Tensor, greatest: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the rate and the weight of the momentum, by the range of the curvature."""
    p = distance.square() * least.square() / 2 / variance
    cube = (-torch.sqrt(p * p + 4.0 / 27.0 * p * p * p) - p) / 2
    w = torch.where(cube > 0, 1.0, -1.0) * cube.abs().pow(1 / 3)
    root = (w - p / 3 / w + 1).clamp(max=1 - 1e-6)
    spread = torch.sqrt(greatest / least)
    mu = torch.maximum(root.square(), ((spread - 1) / (spread + 1)).square())
    return (1 - torch.sqrt(mu)).square() / least, mu


@operator(
    "YellowFin",
    inplace="0>0,1>1,2>2,3>3,4>4,5>5,6>6,7>7",
    types={"iteration": INT64},
    on_host=("iteration",),
    gradient="undefined",
    outputs=8,
    effects=("errors",),
)
def yellow_fin(
    param: Tensor,
    moment: Tensor,
    lr_avg: Tensor,
    mu_avg: Tensor,
    curv_win: Tensor,
    g_avg: Tensor,
    g2_avg: Tensor,
    scalars_memory: Tensor,
    grad: Tensor,
    iteration: Tensor,
    *,
    beta: float = 0.999,
    curv_win_width: int = 20,
    epsilon: float = 1e-6,
    nesterov: bool = False,
    zero_debias: bool = True,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(parameters, momentum, rate, its weight, window, averages ..., gradient, iteration).

    Returns new values of the first eight. The averages are those of the gradient, of its squares,
    and of five numbers: norm, squared norm, its least and greatest logarithm in the window, and the
    distance to the minimum. The step is made by the rate and the weight of before.
    Follows YellowFinOp, caffe2/sgd/yellowfin_op.h, PyTorch 1.8.1.
    """
    w, m, g, average, squares = alike(param, moment, grad, g_avg, g2_avg)
    fits = 0 < curv_win_width <= curv_win.numel()
    require(fits, "the window has its width, at least 1", curv_win, curv_win_width)
    require(scalars_memory.numel() == 5, "there are five numbers", scalars_memory)
    require(iteration.numel() == 1, "the iteration has one element", iteration)
    n = int(iteration.view(-1)[0])
    require(n >= 1, "iterations begin at 1", n)
    debias = 1 / (1 - beta**n) if zero_debias else 1.0
    lr, mu = lr_avg.view(()), mu_avg.view(())
    new_moment = mu * m + lr * g
    step = (1 + mu) * new_moment - mu * m if nesterov else new_moment

    def averaged(before: Tensor, value: Tensor) -> Tensor:
        return beta * before + (1 - beta) * value

    new_average, new_squares = averaged(average, g), averaged(squares, g * g)
    norm2 = (g * g).sum().clamp(min=epsilon)
    window = curv_win.clone()
    window[(n - 1) % curv_win_width] = torch.log(norm2)
    valid = window[: min(curv_win_width, n)]
    norm, norms2, low, high, far = scalars_memory.unbind()
    norm, norms2 = averaged(norm, norm2.sqrt()), averaged(norms2, norm2)
    low, high = averaged(low, valid.min()), averaged(high, valid.max())
    deviation = new_average * debias
    variance = (norms2 * debias - (deviation * deviation).sum()).clamp(min=epsilon)
    far = averaged(far, (norm * debias) / (norms2 * debias))
    new_lr, new_mu = lr_avg.clone(), mu_avg.clone()
    if n > 1:
        found = _tuned(far * debias, variance, (low * debias).exp(), (high * debias).exp())
        new_lr, new_mu = averaged(lr_avg, found[0]), averaged(mu_avg, found[1])
    scalars = torch.stack([norm, norms2, low, high, far])
    averages = new_average.view(g_avg.shape), new_squares.view(g2_avg.shape)
    moments = new_moment.view(moment.shape)
    return written(out, w - step, moments, new_lr, new_mu, window, *averages, scalars)
