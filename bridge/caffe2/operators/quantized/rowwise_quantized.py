# SPDX-License-Identifier: Apache-2.0
"""Rows of bytes, each followed by its scale and bias.

A value is byte * scale + bias. They are float32, or float16 for types with HalfScaleBias. Follows
fused_rowwise_8bit_conversion_ops.h, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import along_rows, select_rows
from bridge.caffe2.operators.base.torch_operator import FLOAT, INTS, TorchOperator, enforce
from bridge.caffe2.operators.base.variants import register_variant

__all__: list[str] = []


def quantized(x: torch.Tensor, parameters: torch.dtype) -> torch.Tensor:
    """Return the rows of a float32 matrix as rows of bytes."""
    if x.size(1):
        low, high = x.amin(1, keepdim=True), x.amax(1, keepdim=True)
    else:
        # The initial values of Caffe2's search for the extremes.
        low = x.new_full((len(x), 1), torch.finfo(x.dtype).max)
        high = -low
    scale, bias = (high - low) / 255, low
    inverse = 255 / (high - low + 1e-8)
    if parameters == torch.float16:
        # Quantized with the rounded scale and bias, which are stored.
        bias = low.half()
        scale = ((high - bias.float()) / 255).half()
        scale = torch.where(scale == 0, 1.0, scale)
        inverse = 1 / scale.float()
    numbers = ((x - bias.float()) * inverse).round().clamp(0, 255).to(torch.uint8)
    return torch.cat([numbers, torch.cat([scale, bias], 1).view(torch.uint8)], 1)


def _rows_of(x: torch.Tensor) -> int:
    """Return the number of rows, which may be empty."""
    return int(torch.Size(x.shape[:-1]).numel())


def dequantized(rows: torch.Tensor, parameters: torch.dtype) -> torch.Tensor:
    """Return rows of bytes as a float32 matrix."""
    tail = 2 * parameters.itemsize
    ends = rows[:, rows.size(1) - tail :].clone(memory_format=torch.contiguous_format)
    ends = ends.view(parameters).float()
    return rows[:, : rows.size(1) - tail].float() * ends[:, :1] + ends[:, 1:]


class _Rows(TorchOperator):
    """An operator on such rows; `half`: scale and bias are float16, four bytes instead of eight."""

    half = False

    @property
    def parameters(self) -> torch.dtype:
        """The type of scale and bias."""
        return torch.float16 if self.half else torch.float32

    def rows(self) -> torch.Tensor:
        """Return input 0, whose last dimension is rows of bytes."""
        rows = self.x(0, (c10.uint8,))
        enforce(
            rows.dim() > 0 and rows.size(-1) > (4 if self.half else 8),
            f"Rows of sizes {list(rows.shape)} are too short for scale and bias.",
        )
        return rows


class _Quantize(_Rows):
    """Quantize rows, the last dimension."""

    types: tuple[c10.TypeMeta, ...] = FLOAT

    def RunOnDevice(self) -> None:
        x = self.x(0, self.types)
        enforce(x.dim() > 0, "Input 0 must have at least one dimension.")
        done = quantized(x.reshape(_rows_of(x), x.size(-1)).float(), self.parameters)
        self.put(0, done.reshape(*x.shape[:-1], done.size(1)))


class _Dequantize(_Rows):
    """Convert rows of bytes, the last dimension, to numbers."""

    result: c10.TypeMeta = c10.float32

    def RunOnDevice(self) -> None:
        x = self.rows()
        done = dequantized(x.reshape(_rows_of(x), x.size(-1)), self.parameters)
        self.put(0, done.to(self.result.torch).reshape(*x.shape[:-1], done.size(1)))


_HALF: dict[str, object] = {"types": (c10.float16,)}
_OPERATORS: dict[str, tuple[type[_Rows], dict[str, object]]] = {
    "FloatToFused8BitRowwiseQuantized": (_Quantize, {}),
    "FloatToFused8BitRowwiseQuantizedHalfScaleBias": (_Quantize, {"half": True}),
    "HalfFloatToFused8BitRowwiseQuantized": (_Quantize, _HALF),
    "HalfFloatToFused8BitRowwiseQuantizedHalfScaleBias": (_Quantize, {**_HALF, "half": True}),
    "Fused8BitRowwiseQuantizedToFloat": (_Dequantize, {}),
    "Fused8BitRowwiseQuantizedHalfScaleBiasToFloat": (_Dequantize, {"half": True}),
    "Fused8BitRowwiseQuantizedToHalfFloat": (_Dequantize, {"result": c10.float16}),
    # float32 in spite of its name, as in Caffe2
    "Fused8BitRowwiseQuantizedHalfScaleBiasToHalfFloat": (_Dequantize, {"half": True}),
}


@register_operator("GatherFused8BitRowwise")
class GatherFused8BitRowwise(_Rows):
    """The rows at the indices in input 1, as float32."""

    def RunOnDevice(self) -> None:
        rows, indices = self.rows(), self.x(1, INTS)
        enforce(rows.dim() == 2, f"Input 0 must have two dimensions, not sizes {list(rows.shape)}.")
        found = dequantized(select_rows(rows, indices.reshape(-1)), self.parameters)
        self.put(0, found.view(*indices.shape, found.size(1)))


for _name, (_base, _attributes) in _OPERATORS.items():
    register_variant(_name, _base, **_attributes)


@register_operator("FloatToRowwiseQuantized8Bits")
class FloatToRowwiseQuantized8Bits(TorchOperator):
    """The bytes of input 0, with its sizes; output 1: scale and bias of each row."""

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        enforce(x.dim() > 0 and x.numel() > 0, "Input 0 must have at least one dimension.")
        rows = x.reshape(x.size(0), -1)
        low, high = rows.amin(1, keepdim=True), rows.amax(1, keepdim=True)
        scale = (high - low) / 255
        divisor = torch.where(scale > 1e-8 / 255, scale, 1.0)
        self.put(0, ((rows - low) / divisor).round().clamp(0, 255).to(torch.uint8).view(x.shape))
        self.put(1, torch.cat([scale, low], 1))


@register_operator("Rowwise8BitQuantizedToFloat")
class Rowwise8BitQuantizedToFloat(TorchOperator):
    """The bytes of input 0 as float32, by scale and bias of each row in input 1."""

    def RunOnDevice(self) -> None:
        x, ends = self.x(0, (c10.uint8,)), self.x(1, FLOAT)
        enforce(
            x.dim() > 0 and ends.shape == (x.size(0), 2),
            "There must be one scale and one bias per row.",
        )
        scale, bias = (along_rows(one, x) for one in ends.unbind(1))
        self.put(0, x.float() * scale + bias)
