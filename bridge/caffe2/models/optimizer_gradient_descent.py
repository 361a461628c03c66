# SPDX-License-Identifier: Apache-2.0
"""Optimizers that step along the gradient, with or without momentum; weight decay.

Follows caffe2/python/optimizer.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.models.optimizer_base import Optimizer, constant
from bridge.caffe2.models.parameter_info import ParameterInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["RmsPropOptimizer", "SgdOptimizer", "WeightDecayBuilder"]


class SgdOptimizer(Optimizer):
    """Stochastic gradient descent, with `momentum` unless it is 0, by default Nesterov's."""

    def __init__(
        self,
        base_learning_rate: float = 0.01,
        policy: str = "fixed",
        momentum: float = 0.0,
        nesterov: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(base_learning_rate, policy, **kwargs)
        self.momentum = momentum
        self.nesterov = nesterov
        self.sign = 1.0 if momentum else -1.0

    def _run(self, net: Any, init_net: Any, info: ParameterInfo) -> None:
        if self.rate == 0:
            return
        rate, one = self.build_lr(net, init_net), self.one(init_net)
        blob, grad = info.blob, info.grad
        if not self.momentum:
            if isinstance(grad, GradientSlice):
                net.ScatterWeightedSum([blob, one, *grad, rate], blob)
            else:
                net.WeightedSum([blob, one, grad, rate], blob)
            return
        momentum = self.state(init_net, info, "momentum")
        arguments = {"momentum": self.momentum, "nesterov": self.nesterov}
        if isinstance(grad, GradientSlice):
            outputs = [grad.values, momentum, blob]
            inputs = [grad.values, momentum, rate, blob, grad.indices]
            net.SparseMomentumSGDUpdate(inputs, outputs, **arguments)
        else:
            net.MomentumSGDUpdate([grad, momentum, rate, blob], [grad, momentum, blob], **arguments)


class RmsPropOptimizer(Optimizer):
    """RMSProp; `momentum` is that of the scaled gradient.

    Raises EnforceNotMet, also an AssertionError, for a parameter whose gradient is sparse.
    """

    sign = 1.0

    def __init__(
        self,
        alpha: float = 0.01,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-5,
        policy: str = "fixed",
        **kwargs: Any,
    ) -> None:
        super().__init__(alpha, policy, **kwargs)
        self.arguments = {"decay": decay, "momentum": momentum, "epsilon": epsilon}

    def _run(self, net: Any, init_net: Any, info: ParameterInfo) -> None:
        blob, grad = info.blob, info.grad
        if isinstance(grad, GradientSlice):
            raise EnforceAssertionError(
                "RmsPropOptimizer doesn't support sparse gradients", "RmsPropOptimizer"
            )
        if self.rate <= 0:
            return
        one, rate = constant(init_net, "ONE", 1.0), self.build_lr(net, init_net)
        states = [
            init_net.ConstantFill([blob], blob + f"_{suffix}", values=0.0)
            for suffix in ("grad_o", "mean_squares", "momentum")
        ]
        out, squares, momentum = states
        self._aux.local.extend([squares, momentum])
        net.RmsProp([grad, squares, momentum, one], states, engine="", **self.arguments)
        net.MomentumSGDUpdate([out, momentum, rate, blob], [out, momentum, blob])


class WeightDecayBuilder(Optimizer):
    """Adds `weight_decay` times a weight to its gradient.

    Raises EnforceNotMet, also an AssertionError, for a parameter whose gradient is sparse.
    """

    def __init__(self, weight_decay: float) -> None:
        super().__init__(1.0, "fixed")
        self.weight_decay = weight_decay

    def _run(self, net: Any, init_net: Any, info: ParameterInfo) -> None:
        one, decay = constant(init_net, "ONE", 1.0), constant(init_net, "wd", self.weight_decay)
        if isinstance(info.grad, GradientSlice):
            raise EnforceAssertionError(
                "Weight decay does not yet support sparse gradients", "WeightDecayBuilder"
            )
        net.WeightedSum([info.grad, one, info.blob, decay], info.grad)
