# SPDX-License-Identifier: Apache-2.0
"""LearningRate: the learning rate of an iteration by one of Caffe2's policies."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import INT64
from bridge.caffe2.operators.training.learning_rate_policies import POLICIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


__all__ = ["LearningRate"]


@register_operator("LearningRate")
class LearningRate(FloatOperator):
    """The iteration (an int64) -> the learning rate, 0-d.

    Arguments: `base_lr` and `policy`, which are required, and those of the policy.
    Raises EnforceNotMet: one of them is missing, or there is no such policy.
    Follows LearningRateOp, caffe2/sgd/learning_rate_op.h, PyTorch 1.8.1.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.enforce(self.HasArgument("base_lr"), "the argument base_lr is set")
        self.base = self.GetSingleArgument("base_lr", 0.0)
        self.policy = self.GetSingleArgument("policy", "")
        self._check(self.policy)
        if self.policy == "composite":
            counts = self.GetRepeatedArgument("sub_policy_num_iters", [0])
            self.enforce(
                bool(counts) and min(counts) > 0, "sub_policy_num_iters are positive", counts
            )
            for i in range(len(counts)):
                name = self.GetSingleArgument(f"sub_policy_{i}_policy", "")
                self.enforce(name != "composite", "sub-policies are not composite")
                self._check(name)

    def _check(self, policy: str) -> None:
        known = policy in POLICIES or policy == "composite"
        self.enforce(known, f"policy is one of {', '.join([*POLICIES, 'composite'])}", policy)

    def RunOnDevice(self) -> None:
        n = int(self.x(0, INT64).view(-1)[0])
        self.put(0, torch.tensor(self.base * self._factor(n), dtype=torch.float32))

    def _factor(self, n: int) -> float:
        if self.policy != "composite":
            return self._of(self.policy, "", n)
        counts = self.GetRepeatedArgument("sub_policy_num_iters", [0])
        chosen, start = -1, 1
        for i, count in enumerate(counts):
            if n >= start:
                chosen = i
            start += count
        self.enforce(chosen >= 0, "composite policies begin at iteration 1", n)
        prefix = f"sub_policy_{chosen}_"
        scale = self.GetSingleArgument(f"{prefix}lr_scale", 1.0)
        return float(self._of(self.GetSingleArgument(f"{prefix}policy", ""), prefix, n) * scale)

    def _of(self, policy: str, prefix: str, n: int) -> float:
        def get(name: str, default: Any) -> Any:
            if name.startswith("/"):  # an argument of the operator, not of the policy
                return self.GetSingleArgument(name[1:], default)
            return self.GetSingleArgument(prefix + name, default)

        return POLICIES[policy](n, get)
