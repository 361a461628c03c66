# SPDX-License-Identifier: Apache-2.0
"""Optimizers of models with float16 parameters.

Follows caffe2/python/optimizer.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.base.data_types import DataType
from bridge.caffe2.modeling.parameter_info import ParameterInfo
from bridge.caffe2.optimizer.gradient_descent import SgdOptimizer


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
        rate = self._rate(net, param_init_net, -1.0)
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
        rate = self._rate(net, param_init_net, -1.0)
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
