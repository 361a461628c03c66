# SPDX-License-Identifier: Apache-2.0
"""Follow-the-regularized-leader optimizers.

Follows caffe2/python/optimizer.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.modeling.parameter_info import ParameterInfo
from bridge.caffe2.optimizer.optimizer_base import Optimizer, state_blob


class FtrlOptimizer(Optimizer):
    """FTRL-proximal: `lambda1` and `lambda2` weigh the L1 and L2 norms of a parameter.

    alpha, beta: the rate of each coordinate is alpha / (beta + root of its sum of squares).
    """

    _rate_name = "alpha"
    _state = "ftrl_nz"

    def __init__(
        self,
        alpha: float = 0.01,
        beta: float = 1e-4,
        lambda1: float = 0,
        lambda2: float = 0,
        sparse_dedup_aggregator: str | None = None,
        engine: str = "",
    ) -> None:
        super().__init__()
        self.alpha = alpha
        self.beta = beta
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.sparse_dedup_aggregator = sparse_dedup_aggregator
        self.engine = engine

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        if self.alpha <= 0:
            return
        state = state_blob(param_init_net, param_info, self._state, extra_shape=[2])
        self._aux_params.local.append(state)
        arguments = {
            "engine": self.engine,
            "alpha": self.alpha,
            "beta": self.beta,
            "lambda1": self.lambda1,
            "lambda2": self.lambda2,
        }
        self._add(net, [param_info.blob, state], param_info.grad, arguments)

    def _add(self, net: Any, updated: list[Any], grad: Any, arguments: dict[str, Any]) -> None:
        if isinstance(grad, GradientSlice):
            grad = self.dedup(net, self.sparse_dedup_aggregator, grad)
            net.SparseFtrl([*updated, *grad], updated, **arguments)
        else:
            net.Ftrl([*updated, grad], updated, **arguments)


class GFtrlOptimizer(FtrlOptimizer):
    """FTRL with group lasso: `lambda1` weighs the norm of each group of weights."""

    _state = "gftrl_nz"

    def _add(self, net: Any, updated: list[Any], grad: Any, arguments: dict[str, Any]) -> None:
        net.GFtrl([*updated, grad], updated, **arguments)
