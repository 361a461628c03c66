# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from bridge.caffe2.brew.helpers import Register as Register
from bridge.caffe2.brew.helpers import arg_scope as arg_scope
from bridge.caffe2.brew.helpers import has_helper as has_helper
from bridge.caffe2.brew.normalization import instance_norm as instance_norm
from bridge.caffe2.brew.normalization import layer_norm as layer_norm
from bridge.caffe2.brew.normalization import lrn as lrn
from bridge.caffe2.brew.normalization import (
    moments_with_running_stats as moments_with_running_stats,
)
from bridge.caffe2.brew.normalization import spatial_bn as spatial_bn
from bridge.caffe2.brew.normalization import spatial_gn as spatial_gn
from bridge.caffe2.brew.plain_operators import accuracy as accuracy
from bridge.caffe2.brew.plain_operators import add_weight_decay as add_weight_decay
from bridge.caffe2.brew.plain_operators import arg_min as arg_min
from bridge.caffe2.brew.plain_operators import average_pool as average_pool
from bridge.caffe2.brew.plain_operators import batch_mat_mul as batch_mat_mul
from bridge.caffe2.brew.plain_operators import concat as concat
from bridge.caffe2.brew.plain_operators import cond as cond
from bridge.caffe2.brew.plain_operators import db_input as db_input
from bridge.caffe2.brew.plain_operators import depth_concat as depth_concat
from bridge.caffe2.brew.plain_operators import dropout as dropout
from bridge.caffe2.brew.plain_operators import (
    fused_8bit_rowwise_quantized_to_float as fused_8bit_rowwise_quantized_to_float,
)
from bridge.caffe2.brew.plain_operators import iter as iter
from bridge.caffe2.brew.plain_operators import loop as loop
from bridge.caffe2.brew.plain_operators import mat_mul as mat_mul
from bridge.caffe2.brew.plain_operators import max_pool as max_pool
from bridge.caffe2.brew.plain_operators import max_pool_with_index as max_pool_with_index
from bridge.caffe2.brew.plain_operators import prelu as prelu
from bridge.caffe2.brew.plain_operators import reduce_sum as reduce_sum
from bridge.caffe2.brew.plain_operators import relu as relu
from bridge.caffe2.brew.plain_operators import softmax as softmax
from bridge.caffe2.brew.plain_operators import (
    sparse_lengths_sum_4bit_rowwise_sparse as sparse_lengths_sum_4bit_rowwise_sparse,
)
from bridge.caffe2.brew.plain_operators import sub as sub
from bridge.caffe2.brew.plain_operators import sum as sum
from bridge.caffe2.brew.plain_operators import tanh as tanh
from bridge.caffe2.brew.plain_operators import transpose as transpose
from bridge.caffe2.brew.products import conv as conv
from bridge.caffe2.brew.products import conv_nd as conv_nd
from bridge.caffe2.brew.products import conv_transpose as conv_transpose
from bridge.caffe2.brew.products import elementwise_linear as elementwise_linear
from bridge.caffe2.brew.products import fc as fc
from bridge.caffe2.brew.products import group_conv as group_conv
from bridge.caffe2.brew.products import group_conv_deprecated as group_conv_deprecated

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
