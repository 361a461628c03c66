# SPDX-License-Identifier: Apache-2.0
"""The functions of `brew` that multiply by a weight: fully connected layers and convolutions.

Follows caffe2/python/helpers/fc.py, conv.py and elementwise_linear.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.c10.errors import EnforceValueError
from bridge.caffe2.definitions.blob_reference import ScopedBlobReference
from bridge.caffe2.models.brew_helpers import (
    BIAS,
    WEIGHT,
    XAVIER,
    ZEROS,
    constant,
    cudnn_arguments,
    helper,
    parameter,
)
from bridge.caffe2.models.model_helper import ModelHelper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["conv", "conv_nd", "conv_transpose", "elementwise_linear", "fc", "group_conv"]


@helper
def fc(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    dim_out: int,
    weight_init: Any = None,
    bias_init: Any = None,
    WeightInitializer: Any = None,
    BiasInitializer: Any = None,
    **kwargs: Any,
) -> Any:
    """Add FC with a weight of shape (dim_out, dim_in) and a bias of shape (dim_out,)."""
    out = blob_out or model.net.NextName()
    shape, fill = [dim_out, dim_in], weight_init or XAVIER
    weight = parameter(model, out + "_w", shape, WeightInitializer, fill, WEIGHT)
    bias = parameter(model, out + "_b", [dim_out], BiasInitializer, bias_init or ZEROS, BIAS)
    return model.net.FC([blob_in, weight, bias], out, **kwargs)


def _conv(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    dim_out: int,
    kernels: list[int],
    kernel_arguments: dict[str, Any],
    weight_init: Any = None,
    bias_init: Any = None,
    WeightInitializer: Any = None,
    BiasInitializer: Any = None,
    group: int = 1,
    use_cudnn: bool = False,
    order: str = "NCHW",
    cudnn_exhaustive_search: bool = False,
    no_bias: Any = False,
    **kwargs: Any,
) -> Any:
    """Add Conv with kernels of the sizes `kernels`, passed to it as `kernel_arguments`."""
    if use_cudnn:
        if kwargs.get("engine") not in (None, "CUDNN"):
            raise EnforceValueError(
                'When use_cudnn=True, the only engine you can specify is "CUDNN"', "brew.conv"
            )
        kwargs.update(cudnn_arguments(cudnn_exhaustive_search))
    if group < 1:
        raise EnforceValueError(
            f"The number of groups must be positive, not {group}.",
            "brew.conv",
            condition="group >= 1",
        )
    out = blob_out or model.net.NextName()
    channels = [dim_in // group]
    shape = [dim_out, *channels, *kernels] if order == "NCHW" else [dim_out, *kernels, *channels]
    fill = weight_init or XAVIER
    inputs = [blob_in, parameter(model, out + "_w", shape, WeightInitializer, fill, WEIGHT)]
    if not no_bias:
        fill = bias_init or ZEROS
        inputs.append(parameter(model, out + "_b", [dim_out], BiasInitializer, fill, BIAS))
    if group != 1:
        kwargs["group"] = group
    return model.net.Conv(inputs, out, order=order, **kernel_arguments, **kwargs)


@helper
def conv(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    dim_out: int,
    kernel: Any,
    **kwargs: Any,
) -> Any:
    """Add Conv in two dimensions; `kernel` is one size, or a list of height and width."""
    if isinstance(kernel, (list, tuple)):
        if len(kernel) != 2:
            raise EnforceValueError(
                f"A kernel has a height and a width, not {len(kernel)} sizes; see conv_nd.",
                "brew.conv",
                condition="len(kernel) == 2",
            )
        height, width = kernel
        arguments = {"kernel_h": height, "kernel_w": width}
    else:
        height, width, arguments = kernel, kernel, {"kernel": kernel}
    return _conv(model, blob_in, blob_out, dim_in, dim_out, [height, width], arguments, **kwargs)


@helper
def conv_nd(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    dim_out: int,
    kernel: Any,
    **kwargs: Any,
) -> Any:
    """Add Conv in n dimensions, where n is the number of sizes in `kernel`."""
    kernels = list(kernel) if isinstance(kernel, (list, tuple)) else [kernel]
    return _conv(model, blob_in, blob_out, dim_in, dim_out, kernels, {"kernels": kernels}, **kwargs)


@helper
def group_conv(model: ModelHelper, *args: Any, **kwargs: Any) -> Any:
    """Add Conv, as `conv` does; the former name of `conv` with ``group=``."""
    return conv(model, *args, **kwargs)


def _listed_parameter(model: ModelHelper, name: Any, shape: list[int], fill: Any, tag: str) -> Any:
    """Create a parameter as older layers of Caffe2 do; return a reference to its blob.

    Unlike `parameter` it takes no initializer, and the model has no ParameterInfo of it before
    AddGradientOperators.
    """
    if model.init_params:
        blob = getattr(model.param_init_net, fill[0])([], name, shape=shape, **fill[1])
    else:
        blob = ScopedBlobReference(name, model.param_init_net)
    model.AddParameter(blob, tag)
    return blob


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
    """Add ConvTranspose with a square kernel and a bias of shape (dim_out,)."""
    out = blob_out or model.net.NextName()
    square = [kernel, kernel]
    shape = [dim_in, dim_out, *square] if order == "NCHW" else [dim_in, *square, dim_out]
    weight = _listed_parameter(model, out + "_w", shape, weight_init or XAVIER, WEIGHT)
    bias = _listed_parameter(model, out + "_b", [dim_out], bias_init or ZEROS, BIAS)
    if use_cudnn:
        kwargs.update(cudnn_arguments(cudnn_exhaustive_search, ws_nbytes_limit))
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
    """Add ElementwiseLinear with a weight of ones and a bias of zeros, of shape (dim,) each."""
    out = blob_out or model.net.NextName()
    weight = _listed_parameter(model, out + "_w", [dim], weight_init or constant(1.0), WEIGHT)
    bias = _listed_parameter(model, out + "_b", [dim], bias_init or constant(0.0), BIAS)
    return model.net.ElementwiseLinear([blob_in, weight, bias], out, **kwargs)
