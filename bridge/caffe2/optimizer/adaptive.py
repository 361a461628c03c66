# SPDX-License-Identifier: Apache-2.0
"""Optimizers that scale their steps by running sums of squares: Adadelta, WNGrad, STORM, YellowFin.

Follows caffe2/python/optimizer.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.modeling.iteration import BuildUniqueMutexIter
from bridge.caffe2.modeling.parameter_info import ParameterInfo
from bridge.caffe2.optimizer.optimizer_base import Optimizer, state_blob


class AdadeltaOptimizer(Optimizer):
    """Adadelta: steps scaled by running means of the squares of gradients and of updates."""

    _rate_name = "alpha"

    def __init__(
        self,
        alpha: float = 0.01,
        epsilon: float = 1e-4,
        decay: float = 0.95,
        policy: str = "fixed",
        sparse_dedup_aggregator: str | None = None,
        engine: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.alpha = alpha
        self.epsilon = epsilon
        self.decay = decay
        self.policy = policy
        self.sparse_dedup_aggregator = sparse_dedup_aggregator
        self.engine = engine
        self.init_kwargs = kwargs

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        if self.alpha <= 0:
            return
        rate, _ = self.build_lr(
            net, param_init_net, self.alpha, policy=self.policy, **self.init_kwargs
        )
        states = [
            state_blob(param_init_net, param_info, suffix)
            for suffix in ("squared_moment", "squared_moment_update")
        ]
        self._aux_params.local.extend(states)
        updated, grad = [param_info.blob, *states], param_info.grad
        arguments = {"epsilon": self.epsilon, "decay": self.decay, "engine": self.engine}
        if isinstance(grad, GradientSlice):
            grad = self.dedup(net, self.sparse_dedup_aggregator, grad)
            net.SparseAdadelta([*updated, *grad, rate], updated, **arguments)
        else:
            net.Adadelta([*updated, grad, rate], updated, **arguments)


class WngradOptimizer(Optimizer):
    """WNGrad; `moment_init` is the initial value of its state, one number for each parameter.

    lars: see `SgdOptimizer`. output_effective_lr, output_effective_lr_and_update: compute blobs
    ``PARAM_effective_lr``, and ``PARAM_update``, too.
    """

    _rate_name = "alpha"

    def __init__(
        self,
        alpha: float = 1.0,
        epsilon: float = 1e-9,
        policy: str = "fixed",
        sparse_dedup_aggregator: str | None = None,
        engine: str = "",
        moment_init: float = 100.0,
        lars: float | None = None,
        output_effective_lr: bool = False,
        output_effective_lr_and_update: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.alpha = alpha
        self.epsilon = epsilon
        self.policy = policy
        self.sparse_dedup_aggregator = sparse_dedup_aggregator
        self.engine = engine
        self.moment_init = moment_init
        self.lars = lars
        self.output_effective_lr = output_effective_lr
        self.output_effective_lr_and_update = output_effective_lr_and_update
        self.init_kwargs = kwargs

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        if self.alpha <= 0:
            return
        self._scale_by_layer(net, param_init_net, param_info, self.lars)
        rate, _ = self.build_lr(
            net, param_init_net, self.alpha, policy=self.policy, **self.init_kwargs
        )
        blob, grad = param_info.blob, param_info.grad
        moment = state_blob(param_init_net, param_info, "moment", shape=[1], value=self.moment_init)
        self._aux_params.local.append(moment)
        arguments = {"epsilon": self.epsilon, "engine": self.engine}
        if isinstance(grad, GradientSlice):
            grad = self.dedup(net, self.sparse_dedup_aggregator, grad)
            net.SparseWngrad([blob, moment, *grad, rate], [blob, moment], **arguments)
            return
        outputs = [blob, moment]
        if self.output_effective_lr or self.output_effective_lr_and_update:
            outputs.append(f"{blob}_effective_lr")
        if self.output_effective_lr_and_update:
            outputs.append(f"{blob}_update")
        net.Wngrad([blob, moment, grad, rate], outputs, **arguments)


class StormOptimizer(Optimizer):
    """STORM; `grad_sq_init` is the initial value of its sums of squares.

    lr, momentum, beta: the numbers k, c and w of the paper. lars: see `SgdOptimizer`.
    """

    _rate_name = "lr"

    def __init__(
        self,
        lr: float = 0.1,
        momentum: float = 10.0,
        beta: float = 0.1,
        grad_sq_init: float = 0.01,
        policy: str = "fixed",
        sparse_dedup_aggregator: str | None = None,
        lars: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.lr = lr
        self.momentum = momentum
        self.beta = beta
        self.grad_sq_init = grad_sq_init
        self.policy = policy
        self.sparse_dedup_aggregator = sparse_dedup_aggregator
        self.lars = lars
        self.init_kwargs = kwargs

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        if self.lr <= 0:
            return
        self._scale_by_layer(net, param_init_net, param_info, self.lars)
        rate, _ = self.build_lr(
            net, param_init_net, self.lr, policy=self.policy, **self.init_kwargs
        )
        moment = state_blob(param_init_net, param_info, "moment")
        squares = state_blob(
            param_init_net, param_info, "grad_sq_sum", shape=[1], value=self.grad_sq_init
        )
        self._aux_params.local.extend([moment, squares])
        updated, grad = [param_info.blob, moment, squares], param_info.grad
        arguments = {"momentum": self.momentum, "beta": self.beta}
        if isinstance(grad, GradientSlice):
            grad = self.dedup(net, self.sparse_dedup_aggregator, grad)
            net.SparseStorm([*updated, grad.values, grad.indices, rate], updated, **arguments)
        else:
            net.Storm([*updated, grad, rate], updated, **arguments)


class YellowFinOptimizer(Optimizer):
    """YellowFin: momentum descent that tunes its rate and momentum, for each parameter.

    alpha, mu: the initial rate and momentum. beta: how fast running means forget. curv_win_width:
    the number of iterations whose curvature is kept. zero_debias: whether the means are corrected
    for their start at 0. See https://arxiv.org/abs/1706.03471.

    Raises EnforceNotMet, also an AssertionError: alpha is not positive, or a gradient is sparse.
    """

    _rate_name = "alpha"

    def __init__(
        self,
        alpha: float = 0.1,
        mu: float = 0.0,
        beta: float = 0.999,
        curv_win_width: int = 20,
        zero_debias: bool = True,
        epsilon: float = 1e-6,
        policy: str = "fixed",
        sparse_dedup_aggregator: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.alpha = alpha
        self.mu = mu
        self.beta = beta
        self.curv_win_width = curv_win_width
        self.zero_debias = zero_debias
        self.epsilon = epsilon
        self.policy = policy
        self.sparse_dedup_aggregator = sparse_dedup_aggregator
        self.init_kwargs = kwargs

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        if self.alpha <= 0:
            raise EnforceAssertionError(
                f"The rate must be positive, not {self.alpha}.", "YellowFinOptimizer"
            )
        self._refuse_sparse(param_info, "YellowFin does not support sparse gradients")

        def state(suffix: str, **fill: Any) -> Any:
            return state_blob(param_init_net, param_info, suffix, **fill)

        moment = state("moment")
        window = state("curv_win", shape=[self.curv_win_width])
        mean, square = state("g_avg"), state("g2_avg")
        rate = state("lr_avg", shape=[1], value=self.alpha)
        momentum = state("mu_avg", shape=[1], value=self.mu)
        scalars = state("scalars_memory", shape=[5])
        iteration = BuildUniqueMutexIter(param_init_net, net, iter_val=0)
        self._aux_params.shared.append(iteration)
        self._aux_params.local.extend([moment, rate, momentum, window, mean, square, scalars])
        updated = [param_info.blob, moment, rate, momentum, window, mean, square, scalars]
        net.YellowFin(
            [*updated, param_info.grad, iteration],
            updated,
            beta=self.beta,
            epsilon=self.epsilon,
            curv_win_width=self.curv_win_width,
            zero_debias=self.zero_debias,
        )
