# SPDX-License-Identifier: Apache-2.0
"""LearningRate: the learning rate of an iteration by one of Caffe2's policies."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Out, TargetDevice, operator
from bridge.caffe2.operators.base.checks import INT64, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.training import step_kernels
from bridge.caffe2.operators.training.learning_rate_policies import POLICIES


class Policy:
    """The policy of a learning rate.

    Arguments: `base_lr` and `policy`, which are required, and those of the policy.
    Raises EnforceNotMet: one of them is missing, or there is no such policy.
    """

    takes = (
        "float base_lr, str policy, bool active_first, int active_period, "
        "int constant_warmup_num_iter, float end_multiplier, float gamma, "
        "int inactive_period, int linear_warmup_num_iter, int max_iter, "
        "float multiplier, float multiplier_1, float multiplier_2, float n1, float n2, "
        "int num_iter, int num_iter_1, int num_iter_2, float power, "
        "float start_multiplier, float start_warmup_multiplier, int stepsize"
    )

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        require(arguments.has("base_lr"), "the argument base_lr is set")
        self._base: float = arguments.single("base_lr", 0.0)
        self._name = arguments.single("policy", "")
        self._check(self._name)
        self.is_fixed = self._name == "fixed"  # the same rate at all iterations
        if self._name == "composite":
            counts = arguments.repeated("sub_policy_num_iters", [0])
            require(bool(counts) and min(counts) > 0, "sub_policy_num_iters are positive", counts)
            for i in range(len(counts)):
                name = arguments.single(f"sub_policy_{i}_policy", "")
                require(name != "composite", "sub-policies are not composite")
                self._check(name)

    def _check(self, policy: str) -> None:
        known = policy in POLICIES or policy == "composite"
        require(known, f"policy is one of {', '.join([*POLICIES, 'composite'])}", policy)

    def rate(self, n: int) -> float:
        """Return the learning rate at iteration `n`."""
        if self.is_fixed:
            return self._base
        return float(self._base * self._factor(n))

    def _factor(self, n: int) -> float:
        if self._name != "composite":
            return self._of(self._name, "", n)
        counts = self._arguments.repeated("sub_policy_num_iters", [0])
        chosen, start = -1, 1
        for i, count in enumerate(counts):
            if n >= start:
                chosen = i
            start += count
        require(chosen >= 0, "composite policies begin at iteration 1", n)
        prefix = f"sub_policy_{chosen}_"
        scale = self._arguments.single(f"{prefix}lr_scale", 1.0)
        return float(self._of(self._arguments.single(f"{prefix}policy", ""), prefix, n) * scale)

    def _of(self, policy: str, prefix: str, n: int) -> float:
        def get(name: str, default: Any) -> Any:
            if name.startswith("/"):  # an argument of the operator, not of the policy
                return self._arguments.single(name[1:], default)
            return self._arguments.single(prefix + name, default)

        return POLICIES[policy](n, get)


@operator("LearningRate", types=INT64, gradient="none", on_host=("iteration",), effects=("errors",))
def learning_rate(
    iteration: Tensor, *, policy: Policy, device: TargetDevice = "cpu", out: Out = None
) -> Tensor:
    """The iteration (an int64) -> the learning rate, 0-d; see Policy.

    Follows LearningRateOp, caffe2/sgd/learning_rate_op.h, PyTorch 1.8.1.
    """
    require(iteration.numel() > 0, "there is an iteration", iteration)
    room = torch.empty((), dtype=torch.float32, device=device) if out is None else out
    if takes_kernels(room) and takes_kernels(iteration, dtype=torch.int64):
        return run_kernel(step_kernels.rate, room, iteration, iteration.numel(), policy.rate)
    n = 0 if policy.is_fixed else int(iteration.view(-1)[0])
    return room.fill_(policy.rate(n))
