# SPDX-License-Identifier: Apache-2.0
"""Adam, with its options.

Follows AdamOptimizer, caffe2/python/optimizer.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.modeling.parameter_info import ParameterInfo
from bridge.caffe2.optimizer.optimizer_base import Optimizer, state_blob
from bridge.caffe2.workspaces.shape_inference import InferShapesAndTypes


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
        super().__init__()
        self.alpha = alpha
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.policy = policy
        self.use_lr_adaption = use_lr_adaption
        self.lr_alpha = lr_alpha
        self.normalized_lr_adaption = normalized_lr_adaption
        self.sparse_dedup_aggregator = sparse_dedup_aggregator
        self.rowWise = rowWise
        self.engine = engine
        self.enableRAdam = enableRAdam
        self.init_kwargs = kwargs

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        if self.alpha <= 0:
            return
        blob, grad = param_info.blob, param_info.grad
        is_sparse = isinstance(grad, GradientSlice)
        if self.rowWise and (self.enableRAdam or not is_sparse):
            raise EnforceAssertionError(
                "rowWise needs a sparse gradient, and is not supported by RAdam.",
                "AdamOptimizer",
            )
        rate, iteration = self.build_lr(
            net, param_init_net, self.alpha, policy=self.policy, **self.init_kwargs
        )
        states = [state_blob(param_init_net, param_info, "first_moment")]
        if self.rowWise:
            rows = self._row_count(param_init_net, blob)
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

    @staticmethod
    def _row_count(init_net: Any, blob: Any) -> int:
        shapes, _ = InferShapesAndTypes([init_net])
        if str(blob) not in shapes:
            raise EnforceAssertionError(
                f"The shape of parameter {str(blob)!r} cannot be inferred.", "AdamOptimizer"
            )
        return shapes[str(blob)][0]
