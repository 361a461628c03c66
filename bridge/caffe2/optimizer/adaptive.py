# SPDX-License-Identifier: Apache-2.0
"""Optimizers that scale their steps by running sums or means of squares.

Follows caffe2/python/optimizer.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.modeling.parameter_info import ParameterInfo
from bridge.caffe2.optimizer.learning_rates import BuildUniqueMutexIter
from bridge.caffe2.optimizer.optimizer_base import Optimizer, effective_rate_blobs, state_blob


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
        super().__init__(locals())

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        if self.alpha <= 0:
            return
        rate, _ = self._learning_rate(net, param_init_net)
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
        super().__init__(locals())

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        if self.alpha <= 0:
            return
        self._scale_by_layer(net, param_init_net, param_info, self.lars)
        rate, _ = self._learning_rate(net, param_init_net)
        blob, grad = param_info.blob, param_info.grad
        moment = state_blob(param_init_net, param_info, "moment", shape=[1], value=self.moment_init)
        self._aux_params.local.append(moment)
        arguments = {"epsilon": self.epsilon, "engine": self.engine}
        if isinstance(grad, GradientSlice):
            grad = self.dedup(net, self.sparse_dedup_aggregator, grad)
            net.SparseWngrad([blob, moment, *grad, rate], [blob, moment], **arguments)
            return
        further = effective_rate_blobs(
            blob, self.output_effective_lr, self.output_effective_lr_and_update
        )
        net.Wngrad([blob, moment, grad, rate], [blob, moment, *further], **arguments)


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
        super().__init__(locals())

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        if self.lr <= 0:
            return
        self._scale_by_layer(net, param_init_net, param_info, self.lars)
        rate, _ = self._learning_rate(net, param_init_net)
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
        super().__init__(locals())

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        self._require(self.alpha > 0, f"The rate must be positive, not {self.alpha}.")
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
        super().__init__(locals())

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


class AdamOptimizer(Optimizer):
    """Adam: steps scaled by running means of the gradient and of its square.

    use_lr_adaption: adapt the learning rate by the operator LearningRateAdaption, whose arguments
    are `lr_alpha` and `normalized_lr_adaption`. rowWise: keep one mean of squares for each row of a
    parameter with a sparse gradient. enableRAdam: RAdam, for sparse gradients. Further keyword
    arguments go to the operator LearningRate.

    Raises EnforceNotMet, also an AssertionError: `rowWise` with a dense gradient, with
    `enableRAdam`, or for a parameter whose shape cannot be inferred.
    """

    _rate_name = "alpha"

    def __init__(
        self,
        alpha: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        policy: str = "fixed",
        use_lr_adaption: bool = False,
        lr_alpha: float = 0.01,
        normalized_lr_adaption: bool = True,
        sparse_dedup_aggregator: str | None = None,
        rowWise: bool = False,
        engine: str = "",
        enableRAdam: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(locals())

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        if self.alpha <= 0:
            return
        blob, grad = param_info.blob, param_info.grad
        is_sparse = isinstance(grad, GradientSlice)
        self._require(
            not self.rowWise or (is_sparse and not self.enableRAdam),
            "rowWise needs a sparse gradient, and is not supported by RAdam.",
        )
        rate, iteration = self._learning_rate(net, param_init_net)
        states = [state_blob(param_init_net, param_info, "first_moment")]
        if self.rowWise:
            rows = self._shape(param_init_net, param_info)[0]
            states.append(state_blob(param_init_net, param_info, "avg_second_moment", shape=[rows]))
        else:
            states.append(state_blob(param_init_net, param_info, "second_moment"))
        self._aux_params.shared.append(iteration)
        self._aux_params.local.extend(states)
        updated = [blob, *states]
        outputs = list(updated)
        if self.use_lr_adaption:
            outputs.append(BlobReference(f"{blob}_effective_grad"))
        arguments = {"beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon}
        if is_sparse:
            grad = self.dedup(net, self.sparse_dedup_aggregator, grad)
            inputs = [*updated, *grad, rate, iteration]
            if self.rowWise:
                net.RowWiseSparseAdam(inputs, outputs, **arguments)
            else:
                net.SparseAdam(inputs, outputs, **arguments, enableRAdam=self.enableRAdam)
            grad = grad.values
        else:
            net.Adam([*updated, grad, rate, iteration], outputs, **arguments)
        if self.use_lr_adaption:
            net.LearningRateAdaption(
                [rate, grad, outputs[-1]],
                [rate],
                lr_alpha=self.lr_alpha,
                normalized_lr_adaption=self.normalized_lr_adaption,
            )
