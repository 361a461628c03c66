# SPDX-License-Identifier: Apache-2.0
"""Codes of one or more bytes: indices into a list of values, and linear steps."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import row_indices
from bridge.caffe2.operators.base.torch_operator import FLOAT, TorchOperator, enforce

__all__: list[str] = []

_CODES = (c10.uint8, c10.uint16, c10.int32)


class _Decode(TorchOperator):
    """The base class of QuantDecode and its gradient."""

    def codebook(self) -> torch.Tensor:
        """Return input 0, flat."""
        return self.x(0, FLOAT).reshape(-1)

    def codes(self, i: int, n: int) -> torch.Tensor:
        """Return the codes of input `i` as indices in [0, n), flat."""
        return row_indices(self.x(i, _CODES).to(torch.int64), n)


@register_operator("QuantDecode")
class QuantDecode(_Decode):
    """The values of input 0 at the codes (uint8, uint16 or int32) in each further input.

    Raises EnforceNotMet: a code is out of range.
    Follows QuantDecodeOp, caffe2/operators/quant_decode_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        enforce(
            self.OutputSize() == self.InputSize() - 1,
            "There must be one output per input of codes.",
        )
        book = self.codebook()
        found = [self.codes(i, len(book)) for i in range(1, self.InputSize())]
        for o, codes in enumerate(found):
            self.put(o, book[codes].reshape(list(self.Input(o + 1).sizes())))


@register_operator("QuantDecodeGradient")
class QuantDecodeGradient(_Decode):
    """(values, all codes, gradients of all outputs) -> the gradient of the values."""

    def RunOnDevice(self) -> None:
        book = self.codebook()
        n = (self.InputSize() - 1) // 2
        result = torch.zeros_like(book)
        for i in range(1, n + 1):
            codes, dy = self.codes(i, len(book)), self.x(i + n, FLOAT)
            enforce(dy.numel() == len(codes), f"There must be one gradient per code of input {i}.")
            result.index_add_(0, codes, dy.reshape(-1))
        self.put(0, result.reshape(list(self.Input(0).sizes())))


@register_operator("ByteWeightDequant")
class ByteWeightDequant(TorchOperator):
    """Bytes as float32 from `min` (-3) to `max` (3), with the sizes `shape`.

    Raises EnforceNotMet: there are fewer bytes than elements.
    Follows ByteWeightDequantOp, caffe2/operators/byte_weight_dequant_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0, (c10.uint8,)).reshape(-1)
        low, high = self.GetSingleArgument("min", -3.0), self.GetSingleArgument("max", 3.0)
        sizes = self.GetRepeatedArgument("shape", [0]) if self.HasArgument("shape") else []
        enforce(min(sizes, default=0) >= 0, f"Sizes must not be negative: {sizes}.")
        n = torch.Size(sizes).numel()
        enforce(n <= len(x), f"{len(x)} bytes are too few for the sizes {sizes}.")
        self.put(0, (x[:n].float() / 255 * (high - low) + low).reshape(sizes))
