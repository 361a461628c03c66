# SPDX-License-Identifier: Apache-2.0
"""Functions that add an operator, with its parameters, to a ModelHelper.

The part of ``caffe2.python.brew`` that image models are built with. Each is called as
``brew.fc(model, blob_in, blob_out, ...)``; arguments come from the model's `arg_scope`, from
`arg_scope` around the call, and from the call, later ones counting.

Follows caffe2/python/brew.py and caffe2/python/helpers, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.c10.errors import EnforceAssertionError, EnforceValueError
from bridge.caffe2.base.errors import EnforceAttributeError
from bridge.caffe2.models.brew_base import (
    BIAS,
    COMPUTED,
    WEIGHT,
    XAVIER,
    ZEROS,
    arg_scope,
    constant,
    has_helper,
    helper,
    helpers_by_name,
    on_cudnn,
    parameter,
)
from bridge.caffe2.models.brew_layers import (
    conv_transpose,
    elementwise_linear,
    instance_norm,
    layer_norm,
    max_pool_with_index,
    spatial_gn,
)
from bridge.caffe2.models.brew_training import add_weight_decay, db_input, iter
from bridge.caffe2.models.model_helper import ModelHelper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "Register",
    "accuracy",
    "add_weight_decay",
    "arg_min",
    "arg_scope",
    "average_pool",
    "batch_mat_mul",
    "concat",
    "conv",
    "conv_nd",
    "conv_transpose",
    "db_input",
    "dropout",
    "elementwise_linear",
    "fc",
    "group_conv",
    "has_helper",
    "instance_norm",
    "iter",
    "layer_norm",
    "lrn",
    "mat_mul",
    "max_pool",
    "max_pool_with_index",
    "prelu",
    "reduce_sum",
    "relu",
    "softmax",
    "spatial_bn",
    "spatial_gn",
    "sub",
    "sum",
    "tanh",
    "transpose",
]


def Register(helper_function: Callable[..., Any]) -> None:
    """Have ``brew.NAME(model, ...)`` call the function, whose name that is.

    Raises EnforceNotMet, also an AttributeError: there is one of that name.
    """
    name = helper_function.__name__
    if name in helpers_by_name:
        raise EnforceAttributeError(f"Helper {name} already exists.", "brew.Register")
    globals()[name] = helper(helper_function)


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
    """Add FC, with a weight of (dim_out, dim_in) and a bias of (dim_out,)."""
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
    if use_cudnn:
        if kwargs.get("engine") not in (None, "CUDNN"):
            raise EnforceValueError(
                'When use_cudnn=True, the only engine you can specify is "CUDNN"', "brew.conv"
            )
        kwargs.update(on_cudnn(cudnn_exhaustive_search))
    if group < 1:
        raise EnforceValueError(
            f"There are no {group} groups.", "brew.conv", condition="group >= 1"
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
    """Add Conv in two dimensions; `kernel` is a size, or a list of height and width."""
    if isinstance(kernel, (list, tuple)):
        if len(kernel) != 2:
            raise EnforceValueError(
                f"A kernel has a height and a width, not {len(kernel)} sizes; see conv_nd.",
                "brew.conv",
                condition="len(kernel) == 2",
            )
        height, width = kernel
        named = {"kernel_h": height, "kernel_w": width}
    else:
        height, width, named = kernel, kernel, {"kernel": kernel}
    return _conv(model, blob_in, blob_out, dim_in, dim_out, [height, width], named, **kwargs)


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
    """Add Conv in as many dimensions as `kernel` has sizes."""
    kernels = list(kernel) if isinstance(kernel, (list, tuple)) else [kernel]
    return _conv(model, blob_in, blob_out, dim_in, dim_out, kernels, {"kernels": kernels}, **kwargs)


@helper
def group_conv(model: ModelHelper, *args: Any, **kwargs: Any) -> Any:
    """Add Conv, as `conv` does; the name of old for one with ``group=``."""
    return conv(model, *args, **kwargs)


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
    """Add SpatialBN, with scale, bias, running mean and running variance."""
    out = blob_out or model.net.NextName()
    inputs = [blob_in]
    for suffix, initializer, value, tag in (
        ("_s", ScaleInitializer, init_scale, WEIGHT),
        ("_b", BiasInitializer, init_bias, BIAS),
        ("_rm", RunningMeanInitializer, 0.0, COMPUTED),
        ("_riv", RunningVarianceInitializer, 1.0, COMPUTED),
    ):
        fill = constant(value)
        inputs.append(parameter(model, out + suffix, [dim_in], initializer, fill, tag))
    if kwargs.get("is_test"):
        return model.net.SpatialBN(inputs, [out], order=order, **kwargs)
    outputs = [out, inputs[3], inputs[4], out + "_sm", out + "_siv"]
    return model.net.SpatialBN(inputs, outputs, order=order, **kwargs)[0]


@helper
def prelu(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    num_channels: int = 1,
    slope_init: Any = None,
    **kwargs: Any,
) -> Any:
    """Add PRelu, with a slope for each channel."""
    fill = slope_init or constant(0.25)
    slope = parameter(model, blob_out + "_slope", [num_channels], None, fill, None)
    return model.net.PRelu([blob_in, slope], [blob_out])


def _plain(name: str, operator: str, has_engine: bool = False) -> Callable[..., Any]:
    """Make the function that adds one operator without parameters, on cuDNN where it is there."""

    def add(model: ModelHelper, blob_in: Any, blob_out: Any = None, **kwargs: Any) -> Any:
        if has_engine and kwargs.pop("use_cudnn", False):
            kwargs["engine"] = "CUDNN"
        return getattr(model.net, operator)(blob_in, blob_out, **kwargs)

    add.__name__ = name
    add.__doc__ = f"Add {operator}."
    return helper(add)


max_pool = _plain("max_pool", "MaxPool", True)
average_pool = _plain("average_pool", "AveragePool", True)
relu = _plain("relu", "Relu", True)
tanh = _plain("tanh", "Tanh", True)
softmax = _plain("softmax", "Softmax", True)
transpose = _plain("transpose", "Transpose", True)
accuracy = _plain("accuracy", "Accuracy")
sum = _plain("sum", "Sum")
sub = _plain("sub", "Sub")
reduce_sum = _plain("reduce_sum", "ReduceSum")
mat_mul = _plain("mat_mul", "MatMul")
batch_mat_mul = _plain("batch_mat_mul", "BatchMatMul")
arg_min = _plain("arg_min", "ArgMin")


@helper
def lrn(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """Add LRN; its scale goes into a blob beside the output."""
    kwargs.pop("use_cudnn", None)
    return model.net.LRN(blob_in, [blob_out, "_" + blob_out + "_scale"], **kwargs)[0]


@helper
def dropout(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """Add Dropout. Raises EnforceNotMet, also an AssertionError: is_test is not given."""
    if "is_test" not in kwargs:
        raise EnforceAssertionError("Argument 'is_test' is required", "brew.dropout")
    kwargs["engine"] = "CUDNN" if kwargs.pop("use_cudnn", False) else "DEFAULT"
    return model.net.Dropout(blob_in, [blob_out, "_" + blob_out + "_mask"], **kwargs)[0]


@helper
def concat(model: ModelHelper, blobs_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """Add Concat, along channels unless `axis` says otherwise."""
    if kwargs.get("order") and kwargs.get("axis"):
        del kwargs["order"]
    return model.net.Concat(blobs_in, [blob_out, "_" + blob_out + "_concat_dims"], **kwargs)[0]
