# SPDX-License-Identifier: Apache-2.0
"""Optimizers that step along the gradient, of float16 parameters too; weight decay.

Follows caffe2/python/optimizer.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceValueError
from bridge.caffe2.base.data_types import DataType
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
        super().__init__(locals())

    def _check_rate(self) -> None:
        self._require(
            self.base_learning_rate >= 0,
            f"Expect positive base learning rate, got {self.base_learning_rate}",
        )

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        if self.base_learning_rate == 0:
            return
        self._check_rate()
        self._scale_by_layer(net, param_init_net, param_info, self.lars)
        rate, _ = self._learning_rate(net, param_init_net, -1.0 if self.momentum else 1.0)
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
        super().__init__(locals())

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        self._require(self.alpha > 0, f"The rate must be positive, not {self.alpha}.")
        self._refuse_sparse(param_info, "RmsPropOptimizer doesn't support sparse gradients")
        one = constant(param_init_net, "ONE", 1.0)
        rate, _ = self._learning_rate(net, param_init_net, -1)
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
        super().__init__(locals())

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        one = constant(param_init_net, "ONE", 1.0)
        decay = constant(param_init_net, "wd", self.weight_decay)
        grad = param_info.grad
        if isinstance(grad, GradientSlice):
            raise EnforceValueError(
                "Weight decay does not yet support sparse gradients", "WeightDecayBuilder"
            )
        net.WeightedSum([grad, one, param_info.blob, decay], grad)


class MultiPrecisionSgdOptimizer(SgdOptimizer):
    """`SgdOptimizer` that updates the float32 copy of a float16 parameter, and rounds it.

    Such parameters come from `PseudoFP16Initializer`; others are updated as by `SgdOptimizer`.
    Raises EnforceNotMet, also an AssertionError, for a float16 parameter with a sparse gradient.
    """

    def __init__(
        self,
        base_learning_rate: float = 0.1,
        momentum: float = 0.0,
        policy: str = "fixed",
        nesterov: bool = True,
        sparse_dedup_aggregator: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            base_learning_rate, policy, momentum, nesterov, sparse_dedup_aggregator, **kwargs
        )

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        copies = param_info.blob_copy
        if copies is None:
            super()._run(net, param_init_net, param_info)
            return
        if self.base_learning_rate == 0:
            return
        self._check_rate()
        self._refuse_sparse(param_info, "MultiPrecisionSgd does not support sparse gradients")
        master, half = copies[DataType.FLOAT], param_info.blob
        rate, _ = self._learning_rate(net, param_init_net, -1.0)
        momentum = param_init_net.ConstantFill(master, f"{half}_momentum", value=0.0)
        self._aux_params.local.append(momentum)
        grad = net.HalfToFloat(param_info.grad, param_info.grad + "_fp32")
        net.MomentumSGDUpdate(
            [grad, momentum, rate, master],
            [grad, momentum, master],
            momentum=self.momentum,
            nesterov=self.nesterov,
        )
        net.FloatToHalf(master, half)


class FP16SgdOptimizer(SgdOptimizer):
    """Gradient descent with momentum and weight decay on float16 parameters.

    Parameters without a float16 copy, and those whose name has "spatbn" in it, are float32 and are
    updated in float32. Raises EnforceNotMet, also an AssertionError, for sparse gradients.
    """

    def __init__(
        self,
        base_learning_rate: float = 0.1,
        momentum: float = 0.0,
        policy: str = "fixed",
        nesterov: bool = True,
        weight_decay: float = 0.0001,
        sparse_dedup_aggregator: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            base_learning_rate, policy, momentum, nesterov, sparse_dedup_aggregator, **kwargs
        )
        self.weight_decay = weight_decay

    def _run(
        self, net: Any, param_init_net: Any, param_info: ParameterInfo, fp32_update: bool = False
    ) -> None:
        if self.base_learning_rate == 0:
            return
        self._check_rate()
        self._refuse_sparse(param_info, "FP16Sgd does not support sparse gradients")
        blob, master = param_info.blob, param_info.blob
        copies = param_info.blob_copy
        in_float32 = fp32_update or "spatbn" in str(blob) or copies is None
        if not in_float32:
            if DataType.FLOAT in copies:
                master = copies[DataType.FLOAT]
            elif DataType.FLOAT16 in copies:
                blob = copies[DataType.FLOAT16]
            else:
                raise EnforceAssertionError(
                    "Unrecognized parameter format to be updated by FP16 Optimizer. Parameter: "
                    f"{param_info.name}",
                    "FP16SgdOptimizer",
                )
        rate, _ = self._learning_rate(net, param_init_net, -1.0)
        full = param_init_net.ConstantFill(master, f"{blob}_momentum_fp32", value=0.0)
        momentum = param_init_net.FloatToHalf(full, f"{blob}_momentum")
        self._aux_params.local.append(momentum)
        state = full if in_float32 else momentum
        update = net.FP32MomentumSGDUpdate if in_float32 else net.FP16MomentumSGDUpdate
        update(
            [param_info.grad, state, rate, blob],
            [param_info.grad, state, blob],
            momentum=self.momentum,
            nesterov=self.nesterov,
            weight_decay=self.weight_decay,
        )
