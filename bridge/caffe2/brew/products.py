# SPDX-License-Identifier: Apache-2.0
"""The functions of `brew` that multiply by a weight: fully connected layers and convolutions.

Follows caffe2/python/helpers/fc.py, conv.py and elementwise_linear.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceValueError
from bridge.caffe2.brew.helpers import (
    BIAS,
    COMPUTED,
    WEIGHT,
    XAVIER,
    ZEROS,
    constant,
    cudnn_arguments,
    helper,
    listed_parameter,
    parameter,
)
from bridge.caffe2.modeling.model_helper import ModelHelper


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
    enable_tensor_core: bool = False,
    float16_compute: bool = False,
    **kwargs: Any,
) -> Any:
    """Add FC with a weight of shape (dim_out, dim_in) and a bias of shape (dim_out,).

    freeze_bias: if given, the bias is a computed parameter, which is not trained.
    """
    out = blob_out or model.net.NextName()
    bias_tags = [BIAS, COMPUTED] if "freeze_bias" in kwargs else BIAS
    if enable_tensor_core:
        kwargs["engine"] = "TENSORCORE"
    if float16_compute:
        kwargs["float16_compute"] = True
    shape, fill = [dim_out, dim_in], weight_init or XAVIER
    weight = parameter(model, out + "_w", shape, WeightInitializer, fill, WEIGHT)
    bias = parameter(model, out + "_b", [dim_out], BiasInitializer, bias_init or ZEROS, bias_tags)
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
    transform_inputs: Any = None,
    ws_nbytes_limit: int | None = None,
    float16_compute: bool = False,
    **kwargs: Any,
) -> Any:
    """Add Conv with kernels of the sizes `kernels`, passed to it as `kernel_arguments`.

    transform_inputs: a function of the model, the name of the output and the list of inputs,
    which may change the list.
    """
    # Without an engine, `use_cudnn` chooses it; with one, the two must not contradict each other.
    engine = kwargs.get("engine")
    if (use_cudnn and engine not in (None, "CUDNN")) or (not use_cudnn and engine == "CUDNN"):
        only = "CUDNN" if use_cudnn else ""
        raise EnforceValueError(
            f'When use_cudnn={bool(use_cudnn)}, the only engine you can specify is "{only}"',
            "brew.conv",
        )
    if use_cudnn:
        kwargs.update(cudnn_arguments(cudnn_exhaustive_search, ws_nbytes_limit))
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
    if transform_inputs is not None:
        transform_inputs(model, out, inputs)
    if float16_compute:
        kwargs["float16_compute"] = True
    if group != 1:
        kwargs["group"] = group
    return model.net.Conv(inputs, out, order=order, **kernel_arguments, **kwargs)


# The parameters of convolutions after `kernel`, which may be given without their names.
_AFTER_KERNEL = (
    *("weight_init", "bias_init", "WeightInitializer", "BiasInitializer"),
    *("group", "transform_inputs"),
)


@helper
def conv(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    dim_out: int,
    kernel: Any,
    *more: Any,
    **kwargs: Any,
) -> Any:
    """Add Conv in two dimensions; `kernel` is one size, or a list of height and width.

    After it may follow weight_init, bias_init, WeightInitializer, BiasInitializer, group and
    transform_inputs.
    """
    kwargs.update(zip(_AFTER_KERNEL, more, strict=False))
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
    *more: Any,
    order: str = "NCHW",
    **kwargs: Any,
) -> Any:
    """Add Conv in n dimensions, where n is the number of sizes in `kernel`; see `conv`.

    Raises EnforceNotMet, also an AssertionError: `order` is not "NCHW".
    """
    kwargs.update(zip(_AFTER_KERNEL, more, strict=False))
    if order != "NCHW":
        raise EnforceAssertionError("ConvNd only supported for NCHW storage.", "brew.conv_nd")
    kernels = list(kernel) if isinstance(kernel, (list, tuple)) else [kernel]
    return _conv(model, blob_in, blob_out, dim_in, dim_out, kernels, {"kernels": kernels}, **kwargs)


@helper
def group_conv(model: ModelHelper, *args: Any, **kwargs: Any) -> Any:
    """Add Conv, as `conv` does; the former name of `conv` with ``group=``."""
    return conv(model, *args, **kwargs)


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
    weight = listed_parameter(model, out + "_w", shape, weight_init or XAVIER, WEIGHT)
    bias = listed_parameter(model, out + "_b", [dim_out], bias_init or ZEROS, BIAS)
    if use_cudnn:
        kwargs.update(cudnn_arguments(cudnn_exhaustive_search, ws_nbytes_limit))
    return model.net.ConvTranspose(
        [blob_in, weight, bias], out, kernel=kernel, order=order, **kwargs
    )


@helper
def group_conv_deprecated(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    dim_out: int,
    kernel: int,
    weight_init: Any = None,
    bias_init: Any = None,
    group: int = 1,
    use_cudnn: bool = False,
    order: str = "NCHW",
    cudnn_exhaustive_search: bool = False,
    ws_nbytes_limit: int | None = None,
    no_bias: Any = False,
    **kwargs: Any,
) -> Any:
    """Add a convolution with groups as DepthSplit, a Conv for each group, and Concat.

    `conv` with ``group=`` computes the same in one operator. Raises EnforceNotMet, also a
    ValueError: the channels cannot be divided into the groups.
    """
    for name, channels in (("dim_in", dim_in), ("dim_out", dim_out)):
        if channels % group:
            raise EnforceValueError(
                f"{name} should be divisible by group: {channels} by {group}.",
                "brew.group_conv_deprecated",
            )
    if use_cudnn:
        kwargs.update(cudnn_arguments(cudnn_exhaustive_search, ws_nbytes_limit))
    parts = model.net.DepthSplit(
        blob_in,
        [f"_{blob_out}_gconv_split_{number}" for number in range(group)],
        dimensions=[dim_in // group] * group,
        order=order,
    )
    ins, outs, square = [dim_in // group], [dim_out // group], [kernel, kernel]
    shape = [*outs, *ins, *square] if order == "NCHW" else [*outs, *square, *ins]
    results = []
    for number, part in enumerate(parts if isinstance(parts, tuple) else [parts]):
        name = f"{blob_out}_gconv_{number}"
        inputs = [part, listed_parameter(model, f"{name}_w", shape, weight_init or XAVIER, WEIGHT)]
        if not no_bias:
            inputs.append(listed_parameter(model, f"{name}_b", outs, bias_init or ZEROS, BIAS))
        result = f"{blob_out}_gconv_{number}"
        results.append(model.net.Conv(inputs, result, kernel=kernel, order=order, **kwargs))
    dimensions = f"_{blob_out}_concat_dims"
    return model.net.Concat(results, [blob_out, dimensions], order=order)[0]


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
    weight = listed_parameter(model, out + "_w", [dim], weight_init or constant(1.0), WEIGHT)
    bias = listed_parameter(model, out + "_b", [dim], bias_init or constant(0.0), BIAS)
    return model.net.ElementwiseLinear([blob_in, weight, bias], out, **kwargs)
