# SPDX-License-Identifier: Apache-2.0
"""The functions that add an optimizer to a model: ``build_sgd`` and the others, and weight decay.

Follows caffe2/python/optimizer.py, PyTorch 1.8.1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.definitions import scope
from bridge.caffe2.definitions.operator_types import IsOperator
from bridge.caffe2.optimizer.adagrad import AdagradOptimizer
from bridge.caffe2.optimizer.adaptive import (
    AdadeltaOptimizer,
    AdamOptimizer,
    FtrlOptimizer,
    GFtrlOptimizer,
    StormOptimizer,
    WngradOptimizer,
    YellowFinOptimizer,
)
from bridge.caffe2.optimizer.gradient_descent import (
    FP16SgdOptimizer,
    MultiPrecisionSgdOptimizer,
    RmsPropOptimizer,
    SgdOptimizer,
    WeightDecayBuilder,
)
from bridge.caffe2.optimizer.learning_rates import (
    devices_of_blobs,
    get_param_device,
    injected_rate,
    norm_ratio,
)
from bridge.caffe2.optimizer.optimizer_base import Optimizer


def add_optimizer(
    model: Any,
    optimizer: Optimizer,
    weights_only: bool = False,
    use_param_info_optim: bool = True,
    max_gradient_norm: float | None = None,
    allow_lr_injection: bool = False,
) -> Optimizer:
    """Add the operators of `optimizer` for each parameter, on its device; return the optimizer.

    weights_only: leave out parameters that are not weights. use_param_info_optim: whether the
    optimizer of a parameter itself goes before. max_gradient_norm: the largest norm of all
    gradients together; None does not limit it. allow_lr_injection: see `set_lr_injection`.
    """
    devices = devices_of_blobs(model)
    model.Validate()
    infos = model.GetOptimizationParamInfo()
    if weights_only:
        weights = set(map(str, model.weights))
        infos = [info for info in infos if info.name in weights]
    multiplier = None
    if max_gradient_norm is not None and infos:
        multiplier = norm_ratio(
            model, infos, "norm_clipped_grad_update", devices, max_gradient_norm
        )
    if allow_lr_injection:
        multiplier = injected_rate(model, multiplier)
    optimizer.add_lr_multiplier(multiplier)
    for info in infos:
        own = info.optimizer if use_param_info_optim else None
        with scope.DeviceScope(get_param_device(info.name, info.grad, devices)):
            (own or optimizer)(model.net, model.param_init_net, info)
    return optimizer


def add_weight_decay(model: Any, weight_decay: float) -> None:
    """Add `weight_decay` times each weight of a model to its gradient.

    To be called after AddGradientOperators and before an optimizer is built.
    """
    decay = WeightDecayBuilder(weight_decay)
    add_optimizer(model, decay, weights_only=True, use_param_info_optim=False)


def _builder(name: str, cls: type[Optimizer], rate_name: str) -> Callable[..., Optimizer]:
    """Return the function of optimizer that adds a `cls` whose rate is the argument `rate_name`."""

    def build(
        model: Any,
        base_learning_rate: float,
        max_gradient_norm: float | None = None,
        allow_lr_injection: bool = False,
        **kwargs: Any,
    ) -> Optimizer:
        constructor: Any = cls
        return add_optimizer(
            model,
            constructor(**{rate_name: base_learning_rate}, **kwargs),
            max_gradient_norm=max_gradient_norm,
            allow_lr_injection=allow_lr_injection,
        )

    build.__name__ = build.__qualname__ = name
    build.__doc__ = (
        f"Add the operators of {cls.__name__} to a model that has gradients; return the optimizer."
        "\n\nFurther keyword arguments go to the class. With `max_gradient_norm` the "
        "gradients are scaled\nso that the norm of all of them together is at most that. With "
        "`allow_lr_injection` the rates are\nscaled by the factor of `set_lr_injection`. Raises "
        "EnforceNotMet: the model has no gradient\noperators, or an option is not supported."
    )
    return build


def _with_parameters(build: Callable[..., Optimizer]) -> Callable[..., Optimizer]:
    """Add the argument `parameters`, which Caffe2's function takes, too, and does not use."""

    @functools.wraps(build)
    def build_with(
        model: Any,
        base_learning_rate: float,
        parameters: Any = None,
        max_gradient_norm: float | None = None,
        allow_lr_injection: bool = False,
        **kwargs: Any,
    ) -> Optimizer:
        return build(model, base_learning_rate, max_gradient_norm, allow_lr_injection, **kwargs)

    return build_with


build_sgd = _builder("build_sgd", SgdOptimizer, "base_learning_rate")
build_multi_precision_sgd = _builder(
    "build_multi_precision_sgd", MultiPrecisionSgdOptimizer, "base_learning_rate"
)
build_adam = _builder("build_adam", AdamOptimizer, "alpha")
build_rms_prop = _builder("build_rms_prop", RmsPropOptimizer, "alpha")
build_adagrad = _with_parameters(_builder("build_adagrad", AdagradOptimizer, "alpha"))
build_adadelta = _with_parameters(_builder("build_adadelta", AdadeltaOptimizer, "alpha"))
build_wngrad = _with_parameters(_builder("build_wngrad", WngradOptimizer, "alpha"))
build_storm = _with_parameters(_builder("build_storm", StormOptimizer, "lr"))


def build_fp16_sgd(model: Any, base_learning_rate: float, **kwargs: Any) -> Optimizer:
    """Add the operators of FP16SgdOptimizer to a model that has gradients; return the optimizer."""
    return add_optimizer(model, FP16SgdOptimizer(base_learning_rate, **kwargs))


def build_yellowfin(model: Any, base_learning_rate: float = 0.1, **kwargs: Any) -> Optimizer:
    """Add the operators of YellowFinOptimizer to a model that has gradients; return it."""
    return add_optimizer(model, YellowFinOptimizer(alpha=base_learning_rate, **kwargs))


def build_ftrl(model: Any, engine: str = "SIMD", **kwargs: Any) -> Optimizer:
    """Add the operators of FtrlOptimizer to a model that has gradients; return the optimizer.

    Raises EnforceNotMet, also an AssertionError: the default engine, which no Caffe2 that was
    published has; pass ``engine=""``.
    """
    _require_engine(engine, "build_ftrl", "Ftrl", "SparseFtrl")
    return add_optimizer(model, FtrlOptimizer(engine=engine, **kwargs))


def build_gftrl(model: Any, engine: str = "", **kwargs: Any) -> Optimizer:
    """Add the operators of GFtrlOptimizer to a model that has gradients; return the optimizer.

    Raises EnforceNotMet, also an AssertionError: the engine "SIMD", which does not exist.
    """
    _require_engine(engine, "build_gftrl", "GFtrl")
    return add_optimizer(model, GFtrlOptimizer(engine=engine, **kwargs))


def _require_engine(engine: str, caller: str, *types: str) -> None:
    if engine == "SIMD" and not all(IsOperator(f"{name}_ENGINE_SIMD") for name in types):
        raise EnforceAssertionError(
            f'There is no engine SIMD of {" and ".join(types)}; pass engine="".', caller
        )
