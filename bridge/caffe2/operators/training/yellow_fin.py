# SPDX-License-Identifier: Apache-2.0
"""YellowFin: momentum whose rate and weight follow from the curvature that gradients show."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import INT64, require
from bridge.caffe2.operators.training.optimizers import alike, written


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
