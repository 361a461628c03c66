# SPDX-License-Identifier: Apache-2.0
"""The functions of `brew` that add one operator or a few, with few parameters or none.

Follows caffe2/python/brew.py and caffe2/python/helpers, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceKeyError
from bridge.caffe2.base.data_types import DataType
from bridge.caffe2.brew.helpers import constant, helper, parameter
from bridge.caffe2.core.control_ops_util import add_if_op, add_while_op
from bridge.caffe2.definitions.create_operator import DeviceOption
from bridge.caffe2.definitions.scope import CurrentNameScope
from bridge.caffe2.modeling import model_helper
from bridge.caffe2.modeling.model_helper import ModelHelper


def _operator(name: str, op_type: str, has_engine: bool = False) -> Callable[..., Any]:
    """Return the function of brew that adds one operator without parameters.

    has_engine: whether there is an implementation for cuDNN, which ``use_cudnn=True`` selects.
    """

    def add(model: ModelHelper, blob_in: Any, blob_out: Any = None, **kwargs: Any) -> Any:
        if has_engine and kwargs.pop("use_cudnn", False):
            kwargs["engine"] = "CUDNN"
        return getattr(model.net, op_type)(blob_in, blob_out, **kwargs)

    add.__name__ = name
    add.__doc__ = f"Add {op_type}."
    return helper(add)


max_pool = _operator("max_pool", "MaxPool", has_engine=True)
average_pool = _operator("average_pool", "AveragePool", has_engine=True)
relu = _operator("relu", "Relu", has_engine=True)
tanh = _operator("tanh", "Tanh", has_engine=True)
softmax = _operator("softmax", "Softmax", has_engine=True)
transpose = _operator("transpose", "Transpose", has_engine=True)
accuracy = _operator("accuracy", "Accuracy")
sum = _operator("sum", "Sum")
sub = _operator("sub", "Sub")
reduce_sum = _operator("reduce_sum", "ReduceSum")
mat_mul = _operator("mat_mul", "MatMul")
sparse_lengths_sum_4bit_rowwise_sparse = _operator(
    "sparse_lengths_sum_4bit_rowwise_sparse", "SparseLengthsSum4BitRowwiseSparse"
)
arg_min = _operator("arg_min", "ArgMin")


@helper
def batch_mat_mul(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    enable_tensor_core: bool = False,
    **kwargs: Any,
) -> Any:
    """Add BatchMatMul."""
    if enable_tensor_core:
        kwargs["engine"] = "TENSORCORE"
    return model.net.BatchMatMul(blob_in, blob_out, **kwargs)


@helper
def fused_8bit_rowwise_quantized_to_float(model: ModelHelper, blob_in: Any, blob_out: Any) -> Any:
    """Add Fused8BitRowwiseQuantizedToFloat."""
    return model.net.Fused8BitRowwiseQuantizedToFloat(blob_in, blob_out)


@helper
def prelu(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    num_channels: int = 1,
    slope_init: Any = None,
    **kwargs: Any,
) -> Any:
    """Add PRelu with a slope for each channel."""
    fill = slope_init or constant(0.25)
    slope = parameter(model, blob_out + "_slope", [num_channels], None, fill, None)
    return model.net.PRelu([blob_in, slope], [blob_out])


@helper
def dropout(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """Add Dropout; return its first output.

    Raises EnforceNotMet, also an AssertionError: is_test is not given.
    """
    if "is_test" not in kwargs:
        raise EnforceAssertionError("Argument 'is_test' is required", "brew.dropout")
    kwargs["engine"] = "CUDNN" if kwargs.pop("use_cudnn", False) else "DEFAULT"
    return model.net.Dropout(blob_in, [blob_out, "_" + blob_out + "_mask"], **kwargs)[0]


@helper
def concat(model: ModelHelper, blobs_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """Add Concat, along the channels unless `axis` is given; return its first output."""
    if kwargs.get("order") and kwargs.get("axis"):
        del kwargs["order"]
    return model.net.Concat(blobs_in, [blob_out, "_" + blob_out + "_concat_dims"], **kwargs)[0]


@helper
def depth_concat(model: ModelHelper, blobs_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """Add Concat, as `concat` does; the former name."""
    return concat(model, blobs_in, blob_out, **kwargs)


@helper
def max_pool_with_index(
    model: ModelHelper, blob_in: Any, blob_out: Any, order: str = "NCHW", **kwargs: Any
) -> Any:
    """Add MaxPoolWithIndex; return its first output, the values."""
    return model.net.MaxPoolWithIndex(
        blob_in, [blob_out, blob_out + "_index"], order=order, **kwargs
    )[0]


@helper
def cond(
    model: ModelHelper,
    cond_blob: Any,
    external_blobs: Any,
    then_model: ModelHelper,
    else_model: ModelHelper | None = None,
) -> None:
    """Add If, which runs the net of one of two models.

    external_blobs: the blobs of `model` that they may use; see `add_if_op`.
    """
    other = else_model.net if else_model else None
    add_if_op(model.net, cond_blob, external_blobs, then_model.net, other)


@helper
def loop(
    model: ModelHelper,
    cond_blob: Any,
    external_blobs: Any,
    loop_model: ModelHelper,
    cond_model: ModelHelper | None = None,
) -> None:
    """Add While, which runs the net of a model as long as a condition holds.

    external_blobs: the blobs of `model` that it may use. cond_model: a model that computes the
    condition before each run; see `add_while_op`.
    """
    other = cond_model.net if cond_model else None
    add_while_op(model.net, cond_blob, external_blobs, loop_model.net, other)


@helper
def iter(model: ModelHelper, blob_out: Any, **kwargs: Any) -> Any:
    """Add a counter of the runs of the net, an int64 on the CPU that starts at 0."""
    kwargs.pop("device_option", None)
    model.param_init_net.ConstantFill(
        [],
        blob_out,
        shape=[1],
        value=0,
        dtype=DataType.INT64,
        device_option=DeviceOption(0, 0),
        **kwargs,
    )
    return model.net.Iter(blob_out, blob_out, **kwargs)


@helper
def add_weight_decay(model: ModelHelper, weight_decay: float) -> None:
    """Add `weight_decay` times each weight of the current name scope to its gradient.

    Raises EnforceNotMet, also a KeyError: a weight has no gradient.
    """
    if weight_decay <= 0.0:
        return
    decay = model.param_init_net.ConstantFill([], "wd", shape=[1], value=weight_decay)
    one = model.param_init_net.ConstantFill([], "ONE", shape=[1], value=1.0)
    scope = CurrentNameScope()
    for weight in model.weights:
        if not scope or weight.GetNameScope() == scope:
            gradient = model.param_to_grad.get(weight)
            if gradient is None:
                raise EnforceKeyError(
                    f"Weight {str(weight)!r} has no gradient; call model.AddGradientOperators "
                    "first.",
                    "brew.add_weight_decay",
                )
            model.net.WeightedSum([gradient, one, weight, decay], gradient)


db_input = helper(model_helper.db_input)
