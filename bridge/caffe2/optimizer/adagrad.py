# SPDX-License-Identifier: Apache-2.0
"""Adagrad, with its options.

Follows AdagradOptimizer, caffe2/python/optimizer.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.base.data_types import DataType
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.modeling.parameter_info import ParameterInfo
from bridge.caffe2.optimizer.optimizer_base import (
    FP16_ENGINES,
    Optimizer,
    effective_rate_blobs,
    row_count_fill,
    state_blob,
)

# Options whose operators no Caffe2 that was published has.
_UNPUBLISHED = ("ema_options", "pruning_options", "swa_options")


class AdagradOptimizer(Optimizer):
    """Adagrad; `decay` multiplies the sums of squares at each step.

    weight_decay: of parameters with two and more dimensions. rowWise: keep one sum for each row of
    a parameter with a sparse gradient. engine: one of `FP16_ENGINES` keeps the sums as float16.
    lars: see `SgdOptimizer`. output_effective_lr, output_effective_lr_and_update: compute blobs
    ``PARAM_effective_lr``, and ``PARAM_update``, too. weight_scale: an object whose attributes are
    the arguments of the operator WeightScale, and `to_aux`, whether the sums are scaled, too.
    counter_halflife: if positive, count how often each row is updated. Further keyword arguments
    go to the operator LearningRate.

    Raises EnforceNotMet, also an AssertionError: ema_options, pruning_options or swa_options, whose
    operators no Caffe2 has; options that exclude each other; a gradient that is sparse with a
    `decay`, or dense with `rowWise`.
    """

    _rate_name = "alpha"

    def __init__(
        self,
        alpha: float = 0.01,
        epsilon: float = 1e-4,
        decay: float = 1,
        weight_decay: float = 0.0,
        policy: str = "fixed",
        sparse_dedup_aggregator: str | None = None,
        rowWise: bool = False,
        engine: str = "",
        lars: float | None = None,
        output_effective_lr: bool = False,
        output_effective_lr_and_update: bool = False,
        weight_scale: Any = None,
        counter_halflife: int = -1,
        **kwargs: Any,
    ) -> None:
        _refuse_unpublished(kwargs, type(self).__name__)
        super().__init__(locals())
        self.weight_decay = float(weight_decay)

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        if self.alpha <= 0:
            return
        is_sparse = isinstance(param_info.grad, GradientSlice)
        self._require(
            self.decay == 1 or not is_sparse,
            "Decay is not implemented for SparseAdagrad and must be set to 1",
        )
        self._require(
            is_sparse or not self.rowWise,
            "rowWise needs a sparse gradient; there is no row-wise Adagrad of dense gradients.",
        )
        self._require(
            self.lars is None or is_sparse or self.weight_decay == 0,
            "weight decay is not implemented for LARS yet",
        )
        self._scale_by_layer(net, param_init_net, param_info, self.lars)
        rate, iteration = self._learning_rate(net, param_init_net)
        squares = self._squares(param_init_net, param_info)
        self._aux_params.local.append(squares)
        counters = self._counters(param_init_net, param_info, iteration)
        arguments = {"epsilon": self.epsilon}
        if not is_sparse:
            arguments["decay"] = float(self.decay)
        weight_decay = self._weight_decay_of(param_init_net, param_info)
        if weight_decay > 0:
            arguments["weight_decay"] = weight_decay
        blob = param_info.blob
        if is_sparse:
            grad = self.dedup(net, self.sparse_dedup_aggregator, param_info.grad)
            add = net.RowWiseSparseAdagrad if self.rowWise else net.SparseAdagrad
            add([blob, squares, *grad, rate], [blob, squares], engine=self.engine, **arguments)
            if counters:
                counts, last = counters
                net.RowWiseCounter(
                    [last, counts, grad.indices, iteration],
                    [last, counts],
                    counter_halflife=self.counter_halflife,
                )
        else:
            further = effective_rate_blobs(
                blob, self.output_effective_lr, self.output_effective_lr_and_update
            )
            net.Adagrad(
                [blob, squares, param_info.grad, rate],
                [blob, squares, *further],
                engine=self.engine,
                **arguments,
            )
        if self.weight_scale:
            for scaled in [blob, squares] if self.weight_scale.to_aux else [blob]:
                net.WeightScale(
                    [scaled, iteration],
                    [scaled],
                    stepsize=self.weight_scale.stepsize,
                    upper_bound_iter=self.weight_scale.upper_bound_iter,
                    scale=float(self.weight_scale.scale),
                )

    def _squares(self, init_net: Any, info: ParameterInfo) -> Any:
        """Add the sums of squares of a parameter; return a reference to them."""
        if self.rowWise:
            inputs, shape = row_count_fill(init_net, info)
            name = BlobReference(f"{info.blob}_avg_squared_sum")
            return init_net.ConstantFill(inputs, name, **shape, value=0.0)
        if self.engine not in FP16_ENGINES:
            return state_blob(init_net, info, "squared_sum")
        self._require(
            self.weight_decay == 0, f"weight decay is not tested for engine: {self.engine}"
        )
        sizes = self._shape(init_net, info)
        return init_net.Float16ConstantFill([], f"{info.blob}_squared_sum", value=0.0, shape=sizes)

    def _weight_decay_of(self, init_net: Any, info: ParameterInfo) -> float:
        """Return the weight decay of a parameter: none for biases and other vectors."""
        if self.weight_decay == 0 or len(self._shape(init_net, info)) == 1:
            return 0.0
        return self.weight_decay

    def _counters(self, init_net: Any, info: ParameterInfo, iteration: Any) -> list[Any]:
        """Add the number of updates of each row, and the iteration of the last, if asked for."""
        if self.counter_halflife <= 0:
            return []
        self._aux_params.shared.append(iteration)
        inputs, shape = row_count_fill(init_net, info)
        counters = []
        for suffix, value, kind in (
            ("update_counter", 0.0, DataType.DOUBLE),
            ("prev_update_iter", 0, DataType.INT64),
        ):
            name = BlobReference(f"{info.blob}_{suffix}")
            counters.append(init_net.ConstantFill(inputs, name, **shape, value=value, dtype=kind))
        self._aux_params.local.extend(counters)
        return counters


def _refuse_unpublished(options: dict[str, Any], caller: str) -> None:
    refused = [name for name in _UNPUBLISHED if options.pop(name, None)]
    if refused:
        raise EnforceAssertionError(
            f"{caller} has no option {', '.join(refused)} here: its operators "
            "are in no Caffe2 that was published.",
            caller,
        )
