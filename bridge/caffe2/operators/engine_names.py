# SPDX-License-Identifier: Apache-2.0
"""The engines of Caffe2: other implementations of operator types, by the names they register.

An operator that asks for one of these runs the implementation that there is, on the CPU and on
CUDA: results agree to the precision of float32. Operators of the quantized arithmetic DNNLOWP are
in `quantized.dnnlowp`, those that round their operands (FAKE_FP16) in `quantized`, too. Quantized
arithmetic of 16 bits (DNNLOWP_16), and types that exist for an engine only, are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.definitions.operator_types import classes, classes_of, registry_key
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.operator import Operator

# The operator types by engine, as RegisteredOperators lists them in PyTorch 1.8.1.
_TYPES = {
    "CHANNELWISE_3D": "Conv ConvGradient",
    "CUDNN": """
    AveragePool AveragePool1D AveragePool1DGradient AveragePool2D AveragePool2DGradient
    AveragePool3D AveragePool3DGradient AveragePoolGradient Conv Conv1D Conv1DGradient Conv2D
    Conv2DGradient Conv3D Conv3DGradient ConvGradient ConvTranspose ConvTransposeGradient Dropout
    DropoutGrad Elu EluGradient LRN LRNGradient MaxPool MaxPool1D MaxPool1DGradient MaxPool2D
    MaxPool2DGradient MaxPool3D MaxPool3DGradient MaxPoolGradient NCHW2NHWC NHWC2NCHW Recurrent
    RecurrentGradient RecurrentParamGet RecurrentParamSet Sigmoid SigmoidGradient Softmax
    SoftmaxGradient SpatialBN SpatialBNGradient Tanh TanhGradient Transpose
    """,
    "DEPTHWISE_3x3": "Conv ConvGradient",
    "DNNLOWP": """
    Add AveragePool BatchMatMul ChannelShuffle Concat Conv ConvRelu Dequantize ElementwiseLinear
    FC Gather GroupNorm Int8Add Int8AveragePool Int8BatchMatMul Int8ChannelShuffle Int8Concat
    Int8Conv Int8ConvPackWeight Int8ConvRelu Int8Dequantize Int8DequantizeRowWise
    Int8ElementwiseLinear Int8FC Int8FCPackWeight Int8FCRelu Int8Gather Int8GroupNorm Int8LSTMUnit
    Int8MaxPool Int8Mul Int8Quantize Int8Relu Int8Sigmoid Int8SpatialBN Int8SpatialBNRelu Int8Sum
    Int8SumRelu Int8Tanh LSTMUnit MaxPool Mul Quantize Relu Sigmoid SpatialBN Sum SumRelu Tanh
    """,
    "DNNLOWP_16": """
    AveragePool BatchMatMul ChannelShuffle Conv ConvRelu Dequantize FC MaxPool Quantize Relu Sum
    SumRelu
    """,
    "DNNLOWP_ACC16": """
    Conv ConvRelu FC Int8Conv Int8ConvPackWeight Int8ConvRelu Int8FC Int8FCPackWeight
    """,
    "DNNLOWP_ROWWISE": """
    Dequantize FC Int8Dequantize Int8FC Int8FCPackWeight Int8FCRelu Int8Quantize Quantize
    """,
    "DNNLOWP_ROWWISE_16": "Dequantize FC Quantize",
    "EIGEN": "Conv Conv1D Conv2D Conv3D",
    **dict.fromkeys(
        ("FAKE_BFP_14", "FAKE_BFP_16", "FAKE_BFP_16_ROUND", "FAKE_BFP_24", "FAKE_FP16"),
        "FC FCGradient",
    ),
    "GLOO": """
    Allgather Allreduce Barrier Broadcast CloneCommonWorld CreateCommonWorld DestroyCommonWorld
    ReduceScatter
    """,
    "NNPACK": "Conv",
    "SIMD": """
    Adagrad RowWiseSparseAdagrad RowWiseSparseAdagradFusedWithSparseLengthsMeanGradient
    RowWiseSparseAdagradFusedWithSparseLengthsMeanGradientApprox
    RowWiseSparseAdagradFusedWithSparseLengthsSumGradient
    RowWiseSparseAdagradFusedWithSparseLengthsSumGradientApprox
    RowWiseSparseAdagradFusedWithSparseLengthsWeightedSumGradient
    RowWiseSparseAdagradFusedWithSparseLengthsWeightedSumGradientApprox SparseAdagrad
    """,
    "TENSORCORE": "BatchMatMul FC FCGradient FCTransposed FCTransposedGradient",
}


class RefusedEngine(Operator):
    """An operator of an engine whose results nothing here computes."""

    @classmethod
    def check(cls, definition: Definition) -> Any:
        """Raise EnforceNotMet: it cannot be run."""
        raise EnforceNotMet(
            f"{definition.type} of the engine {definition.engine} is not available here: its "
            "results are those of another arithmetic. Clear the engine, if the operator exists "
            "without it, to compute in float32.",
            definition.type,
            condition="engine",
        )


def registry_keys() -> Iterator[str]:
    """Yield the registry keys of the operator types with engines."""
    for engine, types in _TYPES.items():
        for op_type in types.split():
            yield registry_key(op_type, engine)


def load(key: str) -> None:
    """Register the class of an operator type with an engine, if `key` is one of `registry_keys`."""
    op_type, _, engine = key.partition("_ENGINE_")
    if op_type in _TYPES.get(engine, "").split():
        plain = None if engine.startswith(("FAKE_", "DNNLOWP")) else classes_of(op_type)
        refused: dict[str, type] = {"cpu": RefusedEngine, "cuda": RefusedEngine}
        classes.setdefault(key, refused if plain is None else plain)
