# SPDX-License-Identifier: Apache-2.0
"""Momentum steps with weight decay, as Caffe2 has them for CUDA alone."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.training.optimizers import alike, learning_rate_of, momentum_step

_HALF = dict.fromkeys(("grad", "moment", "param"), (c10.float16,))
_DECLARED: dict[str, Any] = {
    "inplace": "0>0,1>1,3>2",
    "gradient": "undefined",
    "devices": ("cuda",),
}


@operator("FP32MomentumSGDUpdate", **_DECLARED)
@operator("FP16MomentumSGDUpdate", types=_HALF, **_DECLARED)
def momentum_sgd_update_with_decay(
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
    """(gradient, momentum, rate, parameters) -> step, momentum, parameters - step.

    The gradient grows by `weight_decay` times the parameters. Float16 is computed in float32 and
    rounded at the end, as with `fp32_update`; without it Caffe2 rounds each intermediate result.
    Follows FP32MomentumSGDUpdateOp, caffe2/sgd/fp32_momentum_sgd_op.h, PyTorch 1.8.1.
    """
    g, m, w = (one.float() for one in alike(grad, moment, param))
    step, new = momentum_step(g + weight_decay * w, m, learning_rate_of(lr), momentum, nesterov)
    made = step.to(grad.dtype), new.view(moment.shape).to(moment.dtype)
    return *made, (w - step).view(param.shape).to(param.dtype)
