# SPDX-License-Identifier: Apache-2.0
"""Further functions of brew that add a layer with its parameters.

Follows caffe2/python/helpers/normalization.py, conv.py, elementwise_linear.py and pooling.py,
PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.caffe2.definitions.blob_reference import ScopedBlobReference
from bridge.caffe2.models.brew_base import (
    BIAS,
    WEIGHT,
    XAVIER,
    ZEROS,
    constant,
    helper,
    on_cudnn,
    parameter,
)
from bridge.caffe2.models.model_helper import Initializer, ModelHelper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "conv_transpose",
    "elementwise_linear",
    "instance_norm",
    "layer_norm",
    "max_pool_with_index",
    "spatial_gn",
]


def _added(model: ModelHelper, name: Any, shape: list[int], fill: Any, tag: str) -> Any:
    """Make a parameter by an operator and its arguments, or refer to it, and list it.

    As older layers of Caffe2 do: it takes no initializers, and the model has no ParameterInfo of it
    before there are gradients, as `parameter` gives it one.
    """
    if model.init_params:
        made = getattr(model.param_init_net, fill[0])([], name, shape=shape, **fill[1])
    else:
        made = ScopedBlobReference(name, model.param_init_net)
    model.AddParameter(made, tag)
    return made


@helper
def conv_transpose(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    dim_out: int,
    kernel: int,
    weight_init: Any = None,
    bias_init: Any = None,
    use_cudnn: bool = False,
    order: str = "NCHW",
    cudnn_exhaustive_search: bool = False,
    ws_nbytes_limit: int | None = None,
    **kwargs: Any,
) -> Any:
    """Add ConvTranspose of a square kernel, with a weight and a bias of (dim_out,)."""
    out = blob_out or model.net.NextName()
    square = [kernel, kernel]
    shape = [dim_in, dim_out, *square] if order == "NCHW" else [dim_in, *square, dim_out]
    weight = _added(model, out + "_w", shape, weight_init or XAVIER, WEIGHT)
    bias = _added(model, out + "_b", [dim_out], bias_init or ZEROS, BIAS)
    if use_cudnn:
        kwargs.update(on_cudnn(cudnn_exhaustive_search, ws_nbytes_limit))
    return model.net.ConvTranspose(
        [blob_in, weight, bias], out, kernel=kernel, order=order, **kwargs
    )


@helper
def elementwise_linear(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim: int,
    weight_init: Any = None,
    bias_init: Any = None,
    **kwargs: Any,
) -> Any:
    """Add ElementwiseLinear, with a weight, ones, and a bias, zeros, of (dim,)."""
    out = blob_out or model.net.NextName()
    weight = _added(model, out + "_w", [dim], weight_init or constant(1.0), WEIGHT)
    bias = _added(model, out + "_b", [dim], bias_init or constant(0.0), BIAS)
    return model.net.ElementwiseLinear([blob_in, weight, bias], out, **kwargs)


@helper
def instance_norm(
    model: ModelHelper, blob_in: Any, blob_out: Any, dim_in: int, order: str = "NCHW", **kwargs: Any
) -> Any:
    """Add InstanceNorm, with a scale, ones, and a bias, zeros, of (dim_in,)."""
    out = blob_out or model.net.NextName()
    made = []
    for suffix, value, tag in (("_s", 1.0, WEIGHT), ("_b", 0.0, BIAS)):
        fill = model.param_init_net.ConstantFill([], out + suffix, shape=[dim_in], value=value)
        model.AddParameter(fill, tag)
        made.append(fill)
    outputs = [out] if kwargs.get("is_test") else [out, out + "_sm", out + "_siv"]
    normed = model.net.InstanceNorm([blob_in, *made], outputs, order=order, **kwargs)
    return normed[0] if isinstance(normed, tuple) else normed


@helper
def layer_norm(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int | list[int],
    axis: int = 1,
    epsilon: float = 1e-4,
    initial_scale: float = 1.0,
    initial_bias: float = 0.0,
) -> Any:
    """Add LayerNorm, with a scale and a bias of the sizes `dim_in`; return its three outputs."""
    shape = [dim_in] if isinstance(dim_in, int) else dim_in
    scales, shifts = (
        Initializer("ConstantFill", value=value) for value in (initial_scale, initial_bias)
    )
    scale = model.create_param(f"{blob_out}_scale", shape, scales, WEIGHT)
    bias = model.create_param(f"{blob_out}_bias", shape, shifts, BIAS)
    return model.net.LayerNorm(
        [blob_in, scale, bias],
        [blob_out, blob_out + "_mean", blob_out + "_std"],
        axis=axis,
        epsilon=epsilon,
        elementwise_affine=True,
    )


@helper
def max_pool_with_index(
    model: ModelHelper, blob_in: Any, blob_out: Any, order: str = "NCHW", **kwargs: Any
) -> Any:
    """Add MaxPoolWithIndex; return its first output, the values."""
    return model.net.MaxPoolWithIndex(
        blob_in, [blob_out, blob_out + "_index"], order=order, **kwargs
    )[0]


@helper
def spatial_gn(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    init_scale: float = 1.0,
    init_bias: float = 0.0,
    ScaleInitializer: Any = None,
    BiasInitializer: Any = None,
    order: str = "NCHW",
    **kwargs: Any,
) -> Any:
    """Add GroupNorm, with a scale and a bias of (dim_in,); return its first output."""
    out = blob_out or model.net.NextName()
    scales, shifts = constant(init_scale), constant(init_bias)
    scale = parameter(model, out + "_s", [dim_in], ScaleInitializer, scales, WEIGHT)
    bias = parameter(model, out + "_b", [dim_in], BiasInitializer, shifts, BIAS)
    return model.net.GroupNorm(
        [blob_in, scale, bias], [out, out + "_mean", out + "_std"], **kwargs
    )[0]
