# SPDX-License-Identifier: Apache-2.0
"""Optimizers: what adds, to a model with gradient operators, the operators that train it.

The part of ``caffe2.python.optimizer`` that scripts call: ``build_sgd(model, 0.1)`` and its kin,
and weight decay. The options that are not here (LARS, row-wise and deduplicated sparse gradients,
injected rates) are refused. Follows caffe2/python/optimizer.py, PyTorch 1.8.1.

>>> from bridge.caffe2 import brew, model_helper, optimizer
>>> model = model_helper.ModelHelper(name="optimizer_doc")
>>> y = brew.fc(model, "x", "y", dim_in=3, dim_out=2)
>>> gradients = model.AddGradientOperators([model.AveragedLoss(y, "loss")])
>>> sgd = optimizer.build_sgd(model, base_learning_rate=0.1)
>>> [op.type for op in model.net.Proto().op][-3:]
['LearningRate', 'WeightedSum', 'WeightedSum']
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.definitions import scopes
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.models.optimizer_base import (
    AuxOptimizerParams,
    Optimizer,
    OptimizerWithStates,
    constant,
)
from bridge.caffe2.models.optimizer_clipping import norm_ratio
from bridge.caffe2.models.parameter_info import ParameterInfo
from bridge.caffe2.nets.blob_devices import InferBlobDevices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "AdadeltaOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "AuxOptimizerParams",
    "Optimizer",
    "RmsPropOptimizer",
    "SgdOptimizer",
    "StormOptimizer",
    "WeightDecayBuilder",
    "WngradOptimizer",
    "add_weight_decay",
    "build_adadelta",
    "build_adagrad",
    "build_adam",
    "build_rms_prop",
    "build_sgd",
    "build_storm",
    "build_wngrad",
]


class SgdOptimizer(Optimizer):
    """Gradient descent, with `momentum` if that is not 0, after Nesterov if `nesterov`."""

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


class AdamOptimizer(OptimizerWithStates):
    """Adam."""

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
    """Adagrad; `decay` is of the sums of squares."""

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
    """Adadelta."""

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
    """WNGrad; `moment_init` is what its one number for each parameter begins with."""

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
    """STORM; `grad_sq_init` is what its sums of squares begin with."""

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


class RmsPropOptimizer(Optimizer):
    """RMSProp; it takes no sparse gradients."""

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
        kept = [
            init_net.ConstantFill([blob], blob + f"_{suffix}", values=0.0)
            for suffix in ("grad_o", "mean_squares", "momentum")
        ]
        out, squares, momentum = kept
        self._aux.local.extend([squares, momentum])
        net.RmsProp([grad, squares, momentum, one], kept, engine="", **self.arguments)
        net.MomentumSGDUpdate([out, momentum, rate, blob], [out, momentum, blob])


class WeightDecayBuilder(Optimizer):
    """Adds `weight_decay` times each weight to its gradient; not to sparse ones."""

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


def _build(
    model: Any, optimizer: Optimizer, weights_only: bool = False, clip: float | None = None
) -> Optimizer:
    """Add the operators of `optimizer` for the parameters of `model`, each on its device."""
    infos = model.GetOptimizationParamInfo()
    if weights_only:
        weights = set(map(str, model.weights))
        infos = [info for info in infos if info.name in weights]
    devices = InferBlobDevices(model.net)
    if clip is not None and infos:
        optimizer.multiplier = norm_ratio(model, [info.grad for info in infos], clip, devices)
    for info in infos:
        grad = info.grad.values if isinstance(info.grad, GradientSlice) else info.grad
        device = devices.get(str(grad)) or caffe2_pb2().DeviceOption()
        with scopes.DeviceScope(device):
            own = None if isinstance(optimizer, WeightDecayBuilder) else info.optimizer
            (own or optimizer)(model.net, model.param_init_net, info)
    return optimizer


def add_weight_decay(model: Any, weight_decay: float) -> None:
    """Add the decay of the model's weights to their gradients. Call it before an optimizer."""
    _build(model, WeightDecayBuilder(weight_decay), weights_only=True)


def _builder(cls: type[Optimizer], rate_name: str) -> Callable[..., Optimizer]:
    """Make the function ``build_NAME(model, base_learning_rate, ...)``."""

    def build(
        model: Any,
        base_learning_rate: float,
        parameters: Any = None,
        max_gradient_norm: float | None = None,
        allow_lr_injection: bool = False,
        **kwargs: Any,
    ) -> Optimizer:
        if allow_lr_injection or parameters is not None:
            raise EnforceAssertionError(
                "Injected rates and chosen parameters are not here.", build.__name__
            )
        made: Any = cls
        return _build(
            model, made(**{rate_name: base_learning_rate}, **kwargs), clip=max_gradient_norm
        )

    build.__name__ = "build_" + cls.__name__.removesuffix("Optimizer").lower()
    build.__doc__ = (
        f"Add the operators of {cls.__name__} to a model with gradient operators; give it.\n\n"
        "Keywords are those of the class. With `max_gradient_norm` the gradients are scaled so "
        "that the norm\nof all of them is no larger. Raises EnforceNotMet: there are no gradient "
        "operators, or an option\nthat is not here."
    )
    return build


build_sgd = _builder(SgdOptimizer, "base_learning_rate")
build_adam = _builder(AdamOptimizer, "alpha")
build_adagrad = _builder(AdagradOptimizer, "alpha")
build_adadelta = _builder(AdadeltaOptimizer, "alpha")
build_rms_prop = _builder(RmsPropOptimizer, "alpha")
build_wngrad = _builder(WngradOptimizer, "alpha")
build_storm = _builder(StormOptimizer, "lr")
