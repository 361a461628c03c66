# SPDX-License-Identifier: Apache-2.0
"""Optimizers that step along the gradient, with or without momentum; weight decay.

Follows caffe2/python/optimizer.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceValueError
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.modeling.parameter_info import ParameterInfo
from bridge.caffe2.optimizer.optimizer_base import Optimizer, constant, state_blob


class SgdOptimizer(Optimizer):
    """Stochastic gradient descent, with `momentum` unless it is 0, by default Nesterov's.

    policy: how the learning rate changes with the iterations; further keyword arguments are those
    of the operator LearningRate. sparse_dedup_aggregator: see `Optimizer.dedup`. lars: the offset
    of layer-wise adaptive rates; None is without.
    """

    _rate_name = "base_learning_rate"

    def __init__(
        self,
        base_learning_rate: float = 0.01,
        policy: str = "fixed",
        momentum: float = 0.0,
        nesterov: bool = True,
        sparse_dedup_aggregator: str | None = None,
        lars: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.base_learning_rate = base_learning_rate
        self.policy = policy
        self.momentum = momentum
        self.nesterov = nesterov
        self.sparse_dedup_aggregator = sparse_dedup_aggregator
        self.lars = lars
        self.init_kwargs = kwargs

    def _rate(self, net: Any, init_net: Any, sign: float) -> Any:
        """Add the learning rate; `sign` is -1 for operators that subtract their step."""
        return self.build_lr(
            net, init_net, self.base_learning_rate * sign, policy=self.policy, **self.init_kwargs
        )[0]

    def _check_rate(self) -> None:
        if self.base_learning_rate < 0:
            raise EnforceAssertionError(
                f"Expect positive base learning rate, got {self.base_learning_rate}",
                type(self).__name__,
            )

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        if self.base_learning_rate == 0:
            return
        self._check_rate()
        self._scale_by_layer(net, param_init_net, param_info, self.lars)
        rate = self._rate(net, param_init_net, -1.0 if self.momentum else 1.0)
        one = constant(param_init_net, "ONE", 1.0)
        self._aux_params.shared.append(one)
        blob, grad = param_info.blob, param_info.grad
        is_sparse = isinstance(grad, GradientSlice)
        if not self.momentum > 0.0:
            if is_sparse:
                grad = self.dedup(net, self.sparse_dedup_aggregator, grad)
                net.ScatterWeightedSum([blob, one, *grad, rate], blob)
            else:
                net.WeightedSum([blob, one, grad, rate], blob)
            return
        momentum = state_blob(param_init_net, param_info, "momentum")
        self._aux_params.local.append(momentum)
        arguments = {"momentum": self.momentum, "nesterov": self.nesterov}
        if is_sparse:
            grad = self.dedup(net, self.sparse_dedup_aggregator, grad)
            outputs = [grad.values, momentum, blob]
            inputs = [grad.values, momentum, rate, blob, grad.indices]
            net.SparseMomentumSGDUpdate(inputs, outputs, **arguments)
        else:
            net.MomentumSGDUpdate([grad, momentum, rate, blob], [grad, momentum, blob], **arguments)


class RmsPropOptimizer(Optimizer):
    """RMSProp; `momentum` is the momentum of the scaled gradient.

    Raises EnforceNotMet, also an AssertionError: the rate is not positive, or a parameter has a
    sparse gradient.
    """

    _rate_name = "alpha"

    def __init__(
        self,
        alpha: float = 0.01,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-5,
        policy: str = "fixed",
        engine: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.alpha = alpha
        self.decay = decay
        self.momentum = momentum
        self.epsilon = epsilon
        self.policy = policy
        self.engine = engine
        self.init_kwargs = kwargs

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        if self.alpha <= 0:
            raise EnforceAssertionError(
                f"The rate must be positive, not {self.alpha}.", "RmsPropOptimizer"
            )
        self._refuse_sparse(param_info, "RmsPropOptimizer doesn't support sparse gradients")
        one = constant(param_init_net, "ONE", 1.0)
        rate, _ = self.build_lr(
            net, param_init_net, -self.alpha, policy=self.policy, **self.init_kwargs
        )
        blob, grad = param_info.blob, param_info.grad
        states = [
            param_init_net.ConstantFill([blob], f"{blob}_{suffix}", values=0.0)
            for suffix in ("grad_o", "mean_squares", "momentum")
        ]
        out, squares, momentum = states
        self._aux_params.local.extend([squares, momentum])
        net.RmsProp(
            [grad, squares, momentum, one],
            states,
            decay=self.decay,
            momentum=self.momentum,
            epsilon=self.epsilon,
            engine=self.engine,
        )
        net.MomentumSGDUpdate([out, momentum, rate, blob], [out, momentum, blob])


class WeightDecayBuilder(Optimizer):
    """Adds `weight_decay` times a weight to its gradient.

    Raises EnforceNotMet, also a ValueError, for a parameter whose gradient is sparse.
    """

    def __init__(self, weight_decay: float) -> None:
        super().__init__()
        self.weight_decay = weight_decay

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        one = constant(param_init_net, "ONE", 1.0)
        decay = constant(param_init_net, "wd", self.weight_decay)
        grad = param_info.grad
        if isinstance(grad, GradientSlice):
            raise EnforceValueError(
                "Weight decay does not yet support sparse gradients", "WeightDecayBuilder"
            )
        net.WeightedSum([grad, one, param_info.blob, decay], grad)
