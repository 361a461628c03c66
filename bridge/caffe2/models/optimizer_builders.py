# SPDX-License-Identifier: Apache-2.0
"""The functions that add an optimizer to a model: ``build_sgd`` and the others, and weight decay.

Follows caffe2/python/optimizer.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.definitions import scopes
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.models.optimizer_adaptive import (
    AdadeltaOptimizer,
    AdagradOptimizer,
    AdamOptimizer,
    StormOptimizer,
    WngradOptimizer,
)
from bridge.caffe2.models.optimizer_base import Optimizer
from bridge.caffe2.models.optimizer_clipping import norm_ratio
from bridge.caffe2.models.optimizer_gradient_descent import (
    RmsPropOptimizer,
    SgdOptimizer,
    WeightDecayBuilder,
)
from bridge.caffe2.nets.blob_devices import InferBlobDevices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "add_weight_decay",
    "build_adadelta",
    "build_adagrad",
    "build_adam",
    "build_rms_prop",
    "build_sgd",
    "build_storm",
    "build_wngrad",
]


def _build(
    model: Any, optimizer: Optimizer, weights_only: bool = False, clip: float | None = None
) -> Optimizer:
    """Add the operators of `optimizer` for each parameter, on the device of its gradient.

    weights_only: leave out parameters that are not weights. clip: the largest norm of all gradients
    together; None does not limit it.
    """
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
    """Add `weight_decay` times each weight of a model to its gradient.

    To be called after AddGradientOperators and before an optimizer is built.
    """
    _build(model, WeightDecayBuilder(weight_decay), weights_only=True)


def _builder(cls: type[Optimizer], rate_name: str) -> Callable[..., Optimizer]:
    """Return the function ``build_NAME(model, base_learning_rate, ...)``."""

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
                "allow_lr_injection and parameters are not supported.", build.__name__
            )
        constructor: Any = cls
        optimizer = constructor(**{rate_name: base_learning_rate}, **kwargs)
        return _build(model, optimizer, clip=max_gradient_norm)

    build.__name__ = "build_" + cls.__name__.removesuffix("Optimizer").lower()
    build.__doc__ = (
        f"Add the operators of {cls.__name__} to a model that has gradients; return the optimizer."
        "\n\nFurther keyword arguments are those of the class. With `max_gradient_norm` the "
        "gradients are scaled\nso that the norm of all of them together is at most that. Raises "
        "EnforceNotMet: the model has no\ngradient operators, or an option is not supported."
    )
    return build


build_sgd = _builder(SgdOptimizer, "base_learning_rate")
build_adam = _builder(AdamOptimizer, "alpha")
build_adagrad = _builder(AdagradOptimizer, "alpha")
build_adadelta = _builder(AdadeltaOptimizer, "alpha")
build_rms_prop = _builder(RmsPropOptimizer, "alpha")
build_wngrad = _builder(WngradOptimizer, "alpha")
build_storm = _builder(StormOptimizer, "lr")
