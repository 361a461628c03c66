# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.brew``: functions that add an operator, with its parameters.

The part of brew that image models are built with. Each function is called as
``brew.fc(model, blob_in, blob_out, ...)``. Its arguments come from the `arg_scope` of the model,
from `arg_scope` around the call, and from the call; later ones override earlier ones.

>>> from bridge.caffe2 import brew, model_helper
>>> model = model_helper.ModelHelper(name="brew_doc")
>>> with brew.arg_scope(brew.conv, pad=1, stride=2):
...     y = brew.relu(model, brew.conv(model, "x", "c", dim_in=3, dim_out=8, kernel=3), "y")
>>> [(op.type, len(op.input)) for op in model.net.Proto().op]
[('Conv', 3), ('Relu', 1)]

Follows caffe2/python/brew.py and caffe2/python/helpers, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from bridge.annotation import Any
from bridge.caffe2.base.wrapped_errors import EnforceAttributeError
from bridge.caffe2.brew.conditions import cond, loop
from bridge.caffe2.brew.helpers import arg_scope, has_helper, helper, helpers_by_name
from bridge.caffe2.brew.normalization import (
    instance_norm,
    layer_norm,
    lrn,
    moments_with_running_stats,
    spatial_bn,
    spatial_gn,
)
from bridge.caffe2.brew.plain_operators import (
    accuracy,
    arg_min,
    average_pool,
    batch_mat_mul,
    concat,
    depth_concat,
    dropout,
    fused_8bit_rowwise_quantized_to_float,
    mat_mul,
    max_pool,
    max_pool_with_index,
    prelu,
    reduce_sum,
    relu,
    softmax,
    sparse_lengths_sum_4bit_rowwise_sparse,
    sub,
    sum,
    tanh,
    transpose,
)
from bridge.caffe2.brew.products import (
    conv,
    conv_nd,
    conv_transpose,
    elementwise_linear,
    fc,
    group_conv,
    group_conv_deprecated,
)
from bridge.caffe2.brew.training import add_weight_decay, db_input, iter

__all__ = [
    "Register",
    "accuracy",
    "add_weight_decay",
    "arg_min",
    "arg_scope",
    "average_pool",
    "batch_mat_mul",
    "concat",
    "cond",
    "conv",
    "conv_nd",
    "conv_transpose",
    "db_input",
    "depth_concat",
    "dropout",
    "elementwise_linear",
    "fc",
    "fused_8bit_rowwise_quantized_to_float",
    "group_conv",
    "group_conv_deprecated",
    "has_helper",
    "instance_norm",
    "iter",
    "layer_norm",
    "loop",
    "lrn",
    "mat_mul",
    "max_pool",
    "max_pool_with_index",
    "moments_with_running_stats",
    "prelu",
    "reduce_sum",
    "relu",
    "softmax",
    "sparse_lengths_sum_4bit_rowwise_sparse",
    "spatial_bn",
    "spatial_gn",
    "sub",
    "sum",
    "tanh",
    "transpose",
]


def Register(helper_function: Callable[..., Any]) -> None:
    """Make a function available as ``brew.NAME(model, ...)``, under its own name.

    Raises EnforceNotMet, also an AttributeError: brew has a function of that name.
    """
    name = helper_function.__name__
    if name in helpers_by_name:
        raise EnforceAttributeError(f"Helper {name} already exists.", "brew.Register")
    globals()[name] = helper(helper_function)


# Functions of Caffe2's ``caffe2.python.helpers``, which an old PyTorch provides; see `install`.
_HELPERS_ELSEWHERE = {
    "control_ops": "cond loop",
    "conv": "group_conv_deprecated",
    "fc": "fc_decomp fc_prune fc_sparse packed_fc",
    "normalization": "moments_with_running_stats",
    "quantization": (
        "fused_8bit_rowwise_quantized_to_float sparse_lengths_sum_4bit_rowwise_sparse"
    ),
    "tools": "image_input video_input",
}


def __getattr__(name: str) -> Any:
    for module, names in _HELPERS_ELSEWHERE.items():
        if name in names.split():
            function = getattr(import_module(f"caffe2.python.helpers.{module}"), name)
            globals()[name] = found = helper(function)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
