# SPDX-License-Identifier: Apache-2.0
"""Engines of lower precision: DNNLOWP, on Int8 tensors with parameters chosen by their values.

Other tensors are quantized first. Results are Int8 tensors, too, unless the
argument `dequantize_output` is set; their scale and zero point are the arguments `Y_scale` and
`Y_zero_point`, or those of the range that the plain operator's result has. Sums are formed in
float32 of the quantized numbers, and rounded once: results are those of Caffe2 to one step.

FC of the engines FAKE rounds its operands to a smaller type, and computes in float32.

Follows caffe2/quantization/server, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.blobs.int8 import Int8TensorCPU
from bridge.caffe2.blobs.torch_io import operand
from bridge.caffe2.definitions.operator_types import classes_of
from bridge.caffe2.definitions.schemas import Schema, declare_schema
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require, single
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.quantized.dnnlowp_arithmetic import (
    PackedWeights,
    chosen,
    hyperbolic_tangents,
    packed,
    quantized,
    range_of,
    reals,
    tangent_scale,
)
from bridge.caffe2.operators.quantized.int8_operator import Int8Operator, Quantized

# The inputs that are quantized if they are not yet, by type: activations, and weights.
_INPUTS: dict[str, tuple[tuple[int, ...], int | None]] = {
    "Add": ((), None),
    "AveragePool": ((0,), None),
    "BatchMatMul": ((0, 1), None),
    "Concat": ((), None),
    "Conv": ((0,), 1),
    "ElementwiseLinear": ((0,), 1),
    "FC": ((0,), 1),
    "GroupNorm": ((0,), None),
    "LSTMUnit": ((0, 1, 2), None),
    "Mul": ((0, 1), None),
    "SpatialBN": ((0,), None),
    "Sum": ((), None),
}
# Those whose result is not quantized before `dequantize_output`, and those that do not have it.
_DIRECT = ("FC", "GroupNorm")
_INT8_ONLY = ("AveragePool", "Conv", "MaxPool")


class _Lowp(Int8Operator):
    @classmethod
    def check(cls, definition: Definition) -> Any:
        name = _name(definition.type)
        wants = Arguments(definition).single("dequantize_output", 0)
        require(not (wants and name in _INT8_ONLY), f"{name} has no dequantize_output", wants)
        return _plain(name).bind(definition)

    @property
    def symmetric(self) -> bool:
        """Whether 0 of activations of both signs is in the middle."""
        return bool(self.GetSingleArgument("preserve_activation_sparsity", 0))

    @property
    def dequantizes(self) -> bool:
        """Whether the output is a tensor of float32."""
        return bool(self.GetSingleArgument("dequantize_output", 0))

    def activation(self, i: int) -> Quantized:
        """Return input `i`, quantized if it is float32."""
        if self.InputIsType(i, Int8TensorCPU):
            return self.quantized(i)
        x = self.x(i, (c10.float32,))
        parameters = chosen(*range_of(x), self.symmetric)
        return Quantized(quantized(x, *parameters), *parameters)

    def real(self, i: int) -> Tensor:
        """Return input `i` as it is, or the numbers that it stands for."""
        if self.InputIsType(i, PackedWeights):
            return self.Input(i, PackedWeights).reals()
        if not self.InputIsType(i, Int8TensorCPU):
            return self.x(i)
        held = self.Input(i, Int8TensorCPU)
        return reals(operand(held.t), held.scale, held.zero_point)

    def parameters(self, y: Tensor | None) -> tuple[float, int]:
        """Return the scale and the zero point of an output, which the plain operator makes `y`."""
        follower = self.GetSingleArgument("followed_by", "")
        if y is None or self.HasArgument("Y_scale"):
            return self.scale, self.zero_point
        if follower in ("Sigmoid", "Tanh"):
            return single(tangent_scale() * (2 if follower == "Sigmoid" else 1)), 128
        low, high = range_of(y)
        if follower == "Relu" and not isinstance(self, Quantize):
            low = max(low, 0.0)
        return chosen(low, high, self.symmetric)

    def finish(self, o: int, y: Tensor, parameters: tuple[float, int]) -> None:
        """Set output `o` to float32, quantized or, after that, dequantized."""
        made = Quantized(quantized(y, *parameters), *parameters)
        if self.dequantizes:
            self.put(o, reals(*made))
        else:
            self.put_quantized(o, made)

    def plainly(self, operands: list[Tensor]) -> tuple[Tensor, ...]:
        """Return the result of the plain operator on float32.

        Raises EnforceNotMet: an operand of another type than the plain operator takes, whose
        kernels read its memory as one of those.
        """
        bound = self._definition.checked
        dtypes = [c10.TypeMeta.Make(one.dtype) for one in operands]
        for i, (dtype, allowed) in enumerate(zip(dtypes, bound.types, strict=True)):
            types = (dtypes[allowed],) if isinstance(allowed, int) else allowed
            if types is not None and dtype not in types:
                self._refuse_type(i, types)
        found = bound.function(*operands, **bound.arguments)
        results: tuple[Tensor, ...] = found if isinstance(found, tuple) else (found,)
        if self._definition.type.endswith("Relu"):
            results = (results[0].clamp(min=0), *results[1:])
        return results

    @property
    def _in_place(self) -> dict[int, int]:
        return self._definition.checked.in_place


class Computed(_Lowp):
    """Sums, products and means of quantized operands."""

    def RunOnDevice(self) -> None:
        """Compute with the quantized operands, for a range that float32 would have."""
        name = _name(self._definition.type)
        activations, weights = _INPUTS[name]
        plain = [self.real(i) for i in range(self.InputSize())]
        operands = list(plain)
        for i in activations:
            fits = name != "Conv" or self.InputIsType(i, Int8TensorCPU)
            require(fits, "X is an Int8 tensor, as the operator Quantize makes it")
            operands[i] = reals(*self.activation(i))
        if weights is not None and self.InputIsTensorType(weights, c10.DeviceType.CPU):
            operands[weights] = self.weights(plain[weights]).reals()
        known = self.HasArgument("Y_scale")
        ranges = () if known else self.plainly(plain)
        for o, y in enumerate(self.plainly(operands)):
            if o >= self.OutputSize():
                break
            as_it_is = o > 0 and name != "LSTMUnit"
            if as_it_is or (self.dequantizes and name in _DIRECT):
                self.put(o, y)
            else:
                self.finish(o, y, self.parameters(None if known else ranges[o]))

    def weights(self, w: Tensor) -> PackedWeights:
        """Return weights quantized: together, by group or by row."""
        parts = 1
        if self.GetSingleArgument("quantize_groupwise", 0):
            parts = self.GetSingleArgument("group", 1)
        by_row = self._definition.engine == "DNNLOWP_ROWWISE"
        if by_row or self.GetSingleArgument("quantize_channelwise", 0):
            parts = w.shape[0]
        symmetric = bool(self.GetSingleArgument("preserve_weight_sparsity", 0))
        return packed(w, parts, symmetric)


class Moved(_Lowp):
    """Bytes that keep their scale and zero point: MaxPool, Gather, ChannelShuffle, Relu."""

    def RunOnDevice(self) -> None:
        """Compute with the bytes."""
        name = _name(self._definition.type)
        if name == "Gather" and not self.InputIsType(0, Int8TensorCPU):
            (y,) = self.plainly([self.x(0, (c10.float32,)), self.x(1)])
            if self.dequantizes:
                self.put(0, y)
            else:
                self.finish(0, y, self.parameters(y))
            return
        x = self.activation(0) if name == "MaxPool" else self.quantized(0)
        operands = [(x.bytes.to(torch.int32) - x.zero_point).to(torch.float32)]
        operands += [self.x(i) for i in range(1, self.InputSize())]
        (y, *_rest) = self.plainly(operands)
        made = (y + x.zero_point).to(torch.uint8)
        self.put_quantized(0, Quantized(made, x.scale, x.zero_point))


class Tangent(_Lowp):
    """Sigmoid and Tanh by a table; X is quantized for it, by ``followed_by`` of its producer."""

    def RunOnDevice(self) -> None:
        """Look the bytes up."""
        table = hyperbolic_tangents()
        if _name(self._definition.type) == "Sigmoid":
            table, scale, zero_point = table + 127, 1 / 254, 0
        else:
            table, scale, zero_point = table + 128, 1 / 127, 128
        x = self.quantized(0)
        made = table.to(torch.uint8)[x.bytes.long()]
        self.put_quantized(0, Quantized(made, single(scale), zero_point))


class _Conversion(_Lowp):
    @classmethod
    def check(cls, definition: Definition) -> Any:
        return Int8Operator.check(definition)

    @property
    def _in_place(self) -> dict[int, int]:
        return self._definition.checked


class Quantize(_Conversion):
    """Float32 as an Int8 tensor."""

    def RunOnDevice(self) -> None:
        """Quantize."""
        require(self.InputSize() == 1, "parameters are arguments, not a blob", self.InputSize())
        x = self.x(0, (c10.float32,))
        parameters = self.parameters(x)
        self.put_quantized(0, Quantized(quantized(x, *parameters), *parameters))


class Dequantize(_Conversion):
    """An Int8 tensor as float32."""

    def RunOnDevice(self) -> None:
        """Dequantize."""
        self.put(0, reals(*self.quantized(0)))


class PackWeights(_Conversion):
    """Weights quantized beforehand, and biases as int32 for the scale `in_scale` of X."""

    def RunOnDevice(self) -> None:
        """Quantize the weights, by row with `quantize_channelwise`, and the biases."""
        w = self.real(0)
        by_row = self._definition.engine == "DNNLOWP_ROWWISE"
        by_row = by_row or bool(self.GetSingleArgument("quantize_channelwise", 0))
        symmetric = bool(self.GetSingleArgument("preserve_weight_sparsity", 0))
        bias = self.x(1, (c10.float32,)) if self.InputSize() > 1 else None
        made = packed(w, w.shape[0] if by_row else 1, symmetric, bias)
        if self.OutputSize() > 1:
            if bias is None:
                raise EnforceNotMet("There are no biases for output 1.", self._definition.type)
            require(len(made.parameters) == 1, "biases are quantized with weights of one scale")
            require(self.HasArgument("in_scale"), "there is an argument in_scale for the biases")
            in_scale = single(self.GetSingleArgument("in_scale", 1.0))
            scale = single(in_scale * made.parameters[0][0])
            counts = (bias / scale).round_().to(torch.int32)
            self.put_quantized(1, Quantized(counts, scale, 0))
        self.OutputBlob(0).Reset(made)


def _name(op_type: str) -> str:
    """Return the plain type: ``Conv`` for ``Int8ConvRelu``."""
    name = op_type.removeprefix("Int8")
    return name if name == "Relu" else name.removesuffix("Relu")


def _plain(name: str) -> Any:
    """Return the declaration of a plain operator."""
    found: Any = classes_of(name)
    return found["cpu"]._declaration


# The schemas of the types that have no other engine.
_SCHEMAS = """
Dequantize:1:1: Int8BatchMatMul:2:1: Int8ConvPackWeight:1-2:1: Int8ElementwiseLinear:3:1:
Int8FCPackWeight:1-2:1-2: Int8FCRelu:3-4:1: Int8Gather:2:1: Int8GroupNorm:3:1|3: Int8LSTMUnit:4-5:2:
Int8Mul:2:1: Int8SpatialBN:5:1: Int8SpatialBNRelu:5:1: Int8Tanh:1:1: Quantize:1-2:1:
SumRelu:1-*:1:0>0
"""


def _register() -> None:
    for one in _SCHEMAS.split():
        name, _, text = one.partition(":")
        declare_schema(name, Schema(text), is_built_in=True)
    groups: list[tuple[type[Int8Operator], list[str]]] = [
        (Computed, [*_INPUTS, "ConvRelu", "SumRelu"]),
        (Moved, ["ChannelShuffle", "Gather", "MaxPool", "Relu"]),
        (Tangent, ["Sigmoid", "Tanh"]),
        (Quantize, ["Quantize"]),
        (Dequantize, ["Dequantize"]),
    ]
    for cls, names in groups:
        for name in names:
            register_operator(name, engine="DNNLOWP")(cls)
            register_operator(f"Int8{name}", engine="DNNLOWP")(cls)
    for name in ("FC", "Conv", "ConvRelu", "Int8FC", "Int8Conv", "Int8ConvRelu"):
        register_operator(name, engine="DNNLOWP_ACC16")(Computed)
    for name in ("FC", "Int8FC", "Int8FCRelu"):
        register_operator(name, engine="DNNLOWP_ROWWISE")(Computed)
    for name in ("Int8SpatialBNRelu", "Int8FCRelu"):
        register_operator(name, engine="DNNLOWP")(Computed)
    for prefix in ("", "Int8"):
        register_operator(f"{prefix}Quantize", engine="DNNLOWP_ROWWISE")(Quantize)
        register_operator(f"{prefix}Dequantize", engine="DNNLOWP_ROWWISE")(Dequantize)
    for engine in ("DNNLOWP", "DNNLOWP_ACC16", "DNNLOWP_ROWWISE"):
        register_operator("Int8FCPackWeight", engine=engine)(PackWeights)
        if engine != "DNNLOWP_ROWWISE":
            register_operator("Int8ConvPackWeight", engine=engine)(PackWeights)
    register_operator("Int8FCPackWeight")(PackWeights)


_register()


def _half(x: Tensor) -> Tensor:
    """Return float32 rounded to float16."""
    return x.half().float()


def _cut(x: Tensor, bits: int, rounds: bool = False) -> Tensor:
    """Return float32 without the last `bits` bits; rounded, halves away from zero, or cut off."""
    found = x.contiguous().view(torch.int32)
    if rounds:
        found = found + (1 << (bits - 1))
    return (found >> bits << bits).view(torch.float32)


_ENGINES: dict[str, Callable[[Tensor], Tensor]] = {
    "FAKE_FP16": _half,
    "FAKE_BFP_14": partial(_cut, bits=18),
    "FAKE_BFP_16": partial(_cut, bits=16),
    "FAKE_BFP_16_ROUND": partial(_cut, bits=16, rounds=True),
    "FAKE_BFP_24": partial(_cut, bits=8),
}


class Rounded(TorchOperator):
    """The plain operator of operands that are rounded as the engine says."""

    @classmethod
    def check(cls, definition: Definition) -> Any:
        """Return the plain operator's function with the arguments of the definition."""
        return _plain(definition.type).bind(definition)

    def RunOnDevice(self) -> None:
        """Round, and compute."""
        bound = self._definition.checked
        rounded = _ENGINES[self._definition.engine]
        operands = [rounded(self.x(i, (c10.float32,))) for i in range(self.InputSize())]
        results = bound.function(*operands, **bound.arguments)
        for o, result in enumerate(results if isinstance(results, tuple) else (results,)):
            if o < self.OutputSize():
                self.put(o, result)

    @property
    def _in_place(self) -> dict[int, int]:
        return self._definition.checked.in_place


for _engine in _ENGINES:
    for _type in ("FC", "FCGradient"):
        register_operator(_type, engine=_engine)(Rounded)
