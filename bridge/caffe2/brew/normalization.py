# SPDX-License-Identifier: Apache-2.0
"""The functions of `brew` that normalize their input.

Follows caffe2/python/helpers/normalization.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.caffe2.brew.helpers import BIAS, COMPUTED, WEIGHT, constant, helper, parameter
from bridge.caffe2.modeling.initializers import Initializer
from bridge.caffe2.modeling.model_helper import ModelHelper


def _channel_parameters(
    model: ModelHelper, out: Any, dim_in: int, *kinds: tuple[str, Any, float, str]
) -> list[Any]:
    """Create parameters of shape (dim_in,), each of a suffix, initializer, value and tag."""
    return [
        parameter(model, out + suffix, [dim_in], initializer, constant(value), tag)
        for suffix, initializer, value, tag in kinds
    ]


@helper
def spatial_bn(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    init_scale: float = 1.0,
    init_bias: float = 0.0,
    ScaleInitializer: Any = None,
    BiasInitializer: Any = None,
    RunningMeanInitializer: Any = None,
    RunningVarianceInitializer: Any = None,
    order: str = "NCHW",
    **kwargs: Any,
) -> Any:
    """Add SpatialBN with scale, bias, running mean and variance; return its first output."""
    out = blob_out or model.net.NextName()
    parameters = _channel_parameters(
        model,
        out,
        dim_in,
        ("_s", ScaleInitializer, init_scale, WEIGHT),
        ("_b", BiasInitializer, init_bias, BIAS),
        ("_rm", RunningMeanInitializer, 0.0, COMPUTED),
        ("_riv", RunningVarianceInitializer, 1.0, COMPUTED),
    )
    inputs = [blob_in, *parameters]
    if kwargs.get("is_test"):
        return model.net.SpatialBN(inputs, [out], order=order, **kwargs)
    outputs = [out, *parameters[2:], out + "_sm", out + "_siv"]
    return model.net.SpatialBN(inputs, outputs, order=order, **kwargs)[0]


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
    """Add GroupNorm with a scale and a bias of shape (dim_in,); return its first output."""
    out = blob_out or model.net.NextName()
    parameters = _channel_parameters(
        model,
        out,
        dim_in,
        ("_s", ScaleInitializer, init_scale, WEIGHT),
        ("_b", BiasInitializer, init_bias, BIAS),
    )
    return model.net.GroupNorm(
        [blob_in, *parameters], [out, out + "_mean", out + "_std"], **kwargs
    )[0]


@helper
def instance_norm(
    model: ModelHelper, blob_in: Any, blob_out: Any, dim_in: int, order: str = "NCHW", **kwargs: Any
) -> Any:
    """Add InstanceNorm with a scale of ones and a bias of zeros, of shape (dim_in,) each.

    Return the first output.
    """
    out = blob_out or model.net.NextName()
    inputs = [blob_in]
    for suffix, value, tag in (("_s", 1.0, WEIGHT), ("_b", 0.0, BIAS)):
        blob = model.param_init_net.ConstantFill([], out + suffix, shape=[dim_in], value=value)
        model.AddParameter(blob, tag)
        inputs.append(blob)
    outputs = [out] if kwargs.get("is_test") else [out, out + "_sm", out + "_siv"]
    normalized = model.net.InstanceNorm(inputs, outputs, order=order, **kwargs)
    return normalized[0] if isinstance(normalized, tuple) else normalized


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
    """Add LayerNorm with a scale and a bias of shape `dim_in`; return its three outputs."""
    shape = [dim_in] if isinstance(dim_in, int) else dim_in
    parameters = [
        model.create_param(
            f"{blob_out}_{name}", shape, Initializer("ConstantFill", value=value), tag
        )
        for name, value, tag in (("scale", initial_scale, WEIGHT), ("bias", initial_bias, BIAS))
    ]
    return model.net.LayerNorm(
        [blob_in, *parameters],
        [blob_out, blob_out + "_mean", blob_out + "_std"],
        axis=axis,
        epsilon=epsilon,
        elementwise_affine=True,
    )


@helper
def moments_with_running_stats(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    RunningMeanInitializer: Any = None,
    RunningVarianceInitializer: Any = None,
    order: str = "NCHW",
    **kwargs: Any,
) -> Any:
    """Add Moments of each channel, and computed parameters for running ones; return its outputs.

    The parameters, ``OUT_rm`` of zeros and ``OUT_riv`` of ones, are used by operators added later.
    """
    _channel_parameters(
        model,
        blob_out,
        dim_in,
        ("_rm", RunningMeanInitializer, 0.0, COMPUTED),
        ("_riv", RunningVarianceInitializer, 1.0, COMPUTED),
    )
    return model.net.Moments(
        [blob_in],
        [blob_out + "_sm", blob_out + "_sv"],
        axes=[0, 2, 3] if order == "NCHW" else [0, 1, 2],
        order=order,
        keepdims=False,
        **kwargs,
    )


@helper
def lrn(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """Add LRN; its scale is a second blob, ``_NAME_scale``. Return the first output."""
    kwargs.pop("use_cudnn", None)
    return model.net.LRN(blob_in, [blob_out, "_" + blob_out + "_scale"], **kwargs)[0]
