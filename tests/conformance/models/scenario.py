# SPDX-License-Identifier: Apache-2.0
"""Calls of layers, each of a model of its own; for Python 3.8, too."""

CONVOLVED = ["x", "c", 4, 8]
# A method of CNNModelHelper, its arguments and its keyword arguments.
METHODS = [
    ["Conv", [*CONVOLVED, 3], {}],
    ["Conv", [*CONVOLVED, [3, 2]], {"group": 2, "no_bias": True, "pad": 1}],
    ["Conv", [*CONVOLVED, 3], {"float16_compute": True}],
    ["GroupConv", [*CONVOLVED, 3], {"group": 2}],
    ["GroupConv_Deprecated", [*CONVOLVED, 3], {"group": 2}],
    ["ConvTranspose", [*CONVOLVED, 3], {"stride": 2}],
    ["ConvNd", [*CONVOLVED, [3, 3, 3]], {}],
    ["FC", ["x", "f", 4, 5], {}],
    ["FC", ["x", "f", 4, 5], {"enable_tensor_core": True, "float16_compute": True}],
    ["FC", ["x", "f", 4, 5], {"freeze_bias": 1}],
    ["Dropout", ["x", "d"], {"is_test": 0}],
    ["LRN", ["x", "l"], {"size": 3, "alpha": 1.0, "beta": 2.0}],
    ["Softmax", ["x", "s"], {}],
    ["SpatialBN", ["x", "b", 4], {}],
    ["SpatialGN", ["x", "g", 4], {"group": 2}],
    ["InstanceNorm", ["x", "i", 4], {}],
    ["Relu", ["x", "r"], {}],
    ["PRelu", ["x", "p"], {}],
    ["Concat", [["x", "y"], "z"], {}],
    ["Sum", [["x", "y"], "z"], {}],
    ["Transpose", ["x", "t"], {}],
    ["Iter", ["iter"], {}],
    ["MaxPool", ["x", "m"], {"kernel": 2}],
    ["AveragePool", ["x", "a"], {"kernel": 2}],
    ["PadImage", ["x", "p"], {"pad": 1}],
]
# A function of brew, its arguments but the model, and its keyword arguments.
LAYERS = [
    ["moments_with_running_stats", ["x", "y", 4], {}],
    ["fused_8bit_rowwise_quantized_to_float", ["x", "y"], {}],
    ["sparse_lengths_sum_4bit_rowwise_sparse", [["d", "i", "l", "m"], "y"], {}],
    ["batch_mat_mul", [["x", "y"], "z"], {"enable_tensor_core": True}],
    ["conv", [*CONVOLVED, 3], {"ws_nbytes_limit": 5}],
    ["conv", [*CONVOLVED, 3], {"use_cudnn": False, "engine": "NNPACK"}],
    ["conv", [*CONVOLVED, 3], {"use_cudnn": False, "engine": "CUDNN"}],
    ["conv", [*CONVOLVED, 3], {"use_cudnn": True, "engine": "NNPACK"}],
    ["conv_nd", [*CONVOLVED, [3, 3]], {"order": "NHWC"}],
    ["group_conv_deprecated", ["x", "c", 4, 7, 3], {"group": 2}],
]
QUESTIONS = [["cnn", order, *one] for order in ("NCHW", "NHWC") for one in METHODS]
QUESTIONS += [["brew", None, *one] for one in LAYERS]


def answer(caffe2, kind, order, name, args, kwargs):
    """Add a layer to a new model of `caffe2`, an object with the modules; show what was added."""
    if kind == "cnn":
        model = caffe2.cnn.CNNModelHelper(order, "model", ws_nbytes_limit=100)
        getattr(model, name)(*args, **kwargs)
    else:
        model = caffe2.model_helper.ModelHelper("model")
        getattr(caffe2.brew, name)(model, *args, **kwargs)
    lists = [model.params, model.weights, model.biases, model.GetComputedParams()]
    return {
        "operators": [[shown(op) for op in net.op] for net in (model.InitProto(), model.Proto())],
        "parameters": [list(map(str, one)) for one in lists],
    }


def shown(op):
    """Show an operator; arguments of one name are in no particular order."""
    arguments = sorted(argument.SerializeToString().hex() for argument in op.arg)
    return [op.type, list(op.input), list(op.output), arguments, op.engine]
