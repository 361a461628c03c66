# SPDX-License-Identifier: Apache-2.0
"""Optimizers that are one operator with states: Adam, Adagrad, Adadelta, WNGrad, STORM.

Follows caffe2/python/optimizer.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.models.optimizer_base import OptimizerWithStates
from bridge.caffe2.models.parameter_info import ParameterInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "AdadeltaOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "StormOptimizer",
    "WngradOptimizer",
]


class AdamOptimizer(OptimizerWithStates):
    """Adam: steps scaled by running means of the gradient and of its square."""

    op_type = "Adam"
    takes_iteration = True

    def __init__(
        self,
        alpha: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        policy: str = "fixed",
        **kwargs: Any,
    ) -> None:
        states: dict[str, Any] = {"first_moment": {}, "second_moment": {}}
        arguments = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}
        super().__init__(alpha, policy, states, arguments, **kwargs)
        self.sparse_arguments = {**arguments, "enableRAdam": False}


class AdagradOptimizer(OptimizerWithStates):
    """Adagrad; `decay` multiplies the sums of squares at each step.

    Raises EnforceNotMet, also an AssertionError, for a parameter whose gradient is sparse, unless
    `decay` is 1.
    """

    op_type = "Adagrad"

    def __init__(
        self,
        alpha: float = 0.01,
        epsilon: float = 1e-4,
        decay: float = 1.0,
        policy: str = "fixed",
        **kwargs: Any,
    ) -> None:
        arguments = {"epsilon": epsilon, "decay": float(decay), "engine": ""}
        super().__init__(alpha, policy, {"squared_sum": {}}, arguments, **kwargs)
        self.sparse_arguments = {"epsilon": epsilon, "engine": ""}

    def _run(self, net: Any, init_net: Any, info: ParameterInfo) -> None:
        if isinstance(info.grad, GradientSlice) and self.arguments["decay"] != 1:
            raise EnforceAssertionError(
                "Decay is not implemented for SparseAdagrad and must be set to 1.",
                "AdagradOptimizer",
                condition="decay == 1",
            )
        super()._run(net, init_net, info)


class AdadeltaOptimizer(OptimizerWithStates):
    """Adadelta: steps scaled by running means of the squares of gradients and of updates."""

    op_type = "Adadelta"

    def __init__(
        self,
        alpha: float = 0.01,
        epsilon: float = 1e-4,
        decay: float = 0.95,
        policy: str = "fixed",
        **kwargs: Any,
    ) -> None:
        states: dict[str, Any] = {"squared_moment": {}, "squared_moment_update": {}}
        arguments = {"epsilon": epsilon, "decay": decay, "engine": ""}
        super().__init__(alpha, policy, states, arguments, **kwargs)


class WngradOptimizer(OptimizerWithStates):
    """WNGrad; `moment_init` is the initial value of its state, one number for each parameter."""

    op_type = "Wngrad"

    def __init__(
        self,
        alpha: float = 1.0,
        epsilon: float = 1e-9,
        policy: str = "fixed",
        moment_init: float = 100.0,
        **kwargs: Any,
    ) -> None:
        states = {"moment": {"shape": [1], "value": moment_init}}
        super().__init__(alpha, policy, states, {"epsilon": epsilon, "engine": ""}, **kwargs)


class StormOptimizer(OptimizerWithStates):
    """STORM; `grad_sq_init` is the initial value of its sums of squares."""

    op_type = "Storm"
    values_first = True

    def __init__(
        self,
        lr: float = 0.1,
        momentum: float = 10.0,
        beta: float = 0.1,
        grad_sq_init: float = 0.01,
        policy: str = "fixed",
        **kwargs: Any,
    ) -> None:
        states = {"moment": {}, "grad_sq_sum": {"shape": [1], "value": grad_sq_init}}
        super().__init__(lr, policy, states, {"momentum": momentum, "beta": beta}, **kwargs)
