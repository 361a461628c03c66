# SPDX-License-Identifier: Apache-2.0
"""Momentum steps with weight decay, as Caffe2 has them for CUDA alone."""

from __future__ import annotations

from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import FLOAT
from bridge.caffe2.operators.training.optimizers import alike, learning_rate_of, momentum_step

_HALF = dict.fromkeys(("grad", "moment", "param"), (c10.float16,)) | {"lr": FLOAT}


def _updated(
    grad: Tensor,
    moment: Tensor,
    lr: Tensor,
    param: Tensor,
    momentum: float,
    nesterov: bool,
    weight_decay: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the step, the momentum and the parameters, in the type of the parameters."""
    g, m, w = (one.float() for one in alike(grad, moment, param))
    step, new = momentum_step(g + weight_decay * w, m, learning_rate_of(lr), momentum, nesterov)
    made = step.to(grad.dtype), new.view(moment.shape).to(moment.dtype)
    return *made, (w - step).view(param.shape).to(param.dtype)


@operator("FP32MomentumSGDUpdate", inplace="0>0,1>1,3>2", gradient="undefined", devices=("cuda",))
def fp32_momentum_sgd_update(
    grad: Tensor,
    moment: Tensor,
    lr: Tensor,
    param: Tensor,
    *,
    momentum: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """(gradient, momentum, rate, parameters) -> step, momentum, parameters - step.

    The gradient grows by `weight_decay` times the parameters.
    Follows FP32MomentumSGDUpdateOp, caffe2/sgd/fp32_momentum_sgd_op.h, PyTorch 1.8.1.
    """
    return _updated(grad, moment, lr, param, momentum, nesterov, weight_decay)


@operator(
    "FP16MomentumSGDUpdate",
    inplace="0>0,1>1,3>2",
    gradient="undefined",
    types=_HALF,
    devices=("cuda",),
)
def fp16_momentum_sgd_update(
    grad: Tensor,
    moment: Tensor,
    lr: Tensor,
    param: Tensor,
    *,
    momentum: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
    fp32_update: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """FP32MomentumSGDUpdate of float16.

    Computed in float32 and rounded at the end, as with `fp32_update`; without it Caffe2 rounds each
    intermediate result to float16.
    """
    return _updated(grad, moment, lr, param, momentum, nesterov, weight_decay)
