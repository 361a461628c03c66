# SPDX-License-Identifier: Apache-2.0
"""Momentum with weight decay, which Caffe2 has for CUDA alone: its functions, on the CPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.operators.training.optimizers import momentum_sgd_update_with_decay


def step(*inputs: torch.Tensor, **arguments: Any) -> tuple[torch.Tensor, ...]:
    """Return what the function of the operator computes by these arguments."""
    rule: Any = SimpleNamespace(**{"nesterov": False, "weight_decay": 0.0, **arguments})
    return momentum_sgd_update_with_decay(*inputs, rule=rule)


def test_a_step_decays_weights() -> None:
    grad, moment, param = (torch.tensor([one]) for one in (0.5, 2.0, 10.0))
    lr = torch.tensor([0.1])
    made = step(grad, moment, lr, param, momentum=0.5, weight_decay=0.25)
    # the gradient is 0.5 + 0.25 * 10 = 3, the momentum 0.1 * 3 + 0.5 * 2
    assert [round(one.item(), 5) for one in made] == [1.3, 1.3, 8.7]


def test_nesterov_momentum_looks_ahead() -> None:
    grad, moment, param = (torch.tensor([one]) for one in (3.0, 2.0, 10.0))
    lr = torch.tensor([0.1])
    made = step(grad, moment, lr, param, momentum=0.5, nesterov=True)
    # the momentum is 1.3, the step 1.5 * 1.3 - 0.5 * 2
    assert [round(one.item(), 5) for one in made] == [0.95, 1.3, 9.05]


def test_half_precision_stays_half_precision() -> None:
    grad, moment, param = (torch.tensor([one], dtype=torch.float16) for one in (0.5, 2.0, 10.0))
    made = step(grad, moment, torch.tensor([0.1]), param, momentum=0.5)
    assert {one.dtype for one in made} == {torch.float16}
    assert made[2].item() == pytest.approx(10 - 1.05, abs=0.01)


@pytest.mark.usefixtures("fresh_workspace")
def test_cpu_is_refused_as_by_caffe2() -> None:
    for name in ("g", "m", "w", "lr"):
        workspace.FeedBlob(name, np.ones(1, np.float32))
    inputs, outputs = ["g", "m", "lr", "w"], ["g", "m", "w"]
    with pytest.raises(EnforceNotMet, match="FP32MomentumSGDUpdate"):
        workspace.RunOperatorOnce(core.CreateOperator("FP32MomentumSGDUpdate", inputs, outputs))
