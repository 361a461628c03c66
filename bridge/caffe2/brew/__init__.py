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

from bridge.caffe2.brew.helpers import find_helper as _find_helper
from bridge.lazy import lazily

_get, __dir__ = lazily(
    __name__,
    {
        "bridge.caffe2.brew.plain_operators": (
            "accuracy add_weight_decay arg_min average_pool batch_mat_mul concat cond db_input "
            "depth_concat dropout fused_8bit_rowwise_quantized_to_float iter loop mat_mul max_pool "
            "max_pool_with_index prelu reduce_sum relu softmax "
            "sparse_lengths_sum_4bit_rowwise_sparse sub sum tanh transpose"
        ),
        "bridge.caffe2.brew.helpers": "Register arg_scope has_helper",
        "bridge.caffe2.brew.normalization": (
            "instance_norm layer_norm lrn moments_with_running_stats spatial_bn spatial_gn"
        ),
        "bridge.caffe2.brew.products": (
            "conv conv_nd conv_transpose elementwise_linear fc group_conv group_conv_deprecated"
        ),
    },
    now="cond fc iter relu spatial_bn",  # of each module, which registers its functions
)


def __getattr__(name: str) -> object:
    try:
        return _get(name)
    except AttributeError:
        found = _find_helper(name)
        if found is None:
            raise
        return found
