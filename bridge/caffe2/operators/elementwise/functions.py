# SPDX-License-Identifier: Apache-2.0
"""Unary elementwise functions."""

from __future__ import annotations

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import row_indices
from bridge.caffe2.operators.base.torch_operator import (
    BOOL,
    FLOAT,
    FLOATS,
    INTS,
    LARGEST,
    NUMBERS,
    TorchOperator,
    enforce,
)
from bridge.caffe2.operators.base.variants import register_variant

__all__: list[str] = []


class _Unary(TorchOperator):
    """A torch function of the elements of input 0."""

    function: str
    types: tuple[TypeMeta, ...]

    def RunOnDevice(self) -> None:
        """Compute into the output's own buffer, which may be the input's."""
        x, out = self.x_and_out(self.types)
        getattr(torch, self.function)(x, out=out)


# Caffe2's operator: torch's function, the supported types.
_FUNCTIONS: dict[str, tuple[str, tuple[TypeMeta, ...]]] = {
    "Abs": ("abs", FLOAT),
    "Acos": ("acos", FLOAT),
    "Asin": ("asin", FLOAT),
    "Atan": ("atan", FLOAT),
    "Ceil": ("ceil", FLOAT),
    "Cos": ("cos", FLOAT),
    "Cosh": ("cosh", FLOAT),
    "Erf": ("erf", FLOAT),
    "Exp": ("exp", FLOAT),
    "Floor": ("floor", FLOAT),
    "Log": ("log", FLOAT),
    "Negative": ("neg", NUMBERS),
    "Not": ("logical_not", BOOL),
    "Reciprocal": ("reciprocal", FLOAT),
    "Rsqrt": ("rsqrt", FLOAT),
    "Sign": ("sign", NUMBERS),
    "Sin": ("sin", FLOAT),
    "Sinh": ("sinh", FLOAT),
    "Sqr": ("square", FLOAT),
    "Sqrt": ("sqrt", FLOATS),
    "Tan": ("tan", FLOAT),
}

for _name, (_function, _types) in _FUNCTIONS.items():
    register_variant(
        _name,
        _Unary,
        f"torch.{_function} of each element.",
        function=_function,
        types=_types,
    )


@register_operator("Cube")
class Cube(TorchOperator):
    """The third power of each element."""

    def RunOnDevice(self) -> None:
        x, out = self.x_and_out(NUMBERS)
        torch.mul(x * x, x, out=out)


@register_operator("Cbrt")
class Cbrt(TorchOperator):
    """The real cube root of each element."""

    def RunOnDevice(self) -> None:
        x, out = self.x_and_out(FLOAT)
        torch.copysign(x.abs().double().pow(1 / 3).float(), x, out=out)


@register_operator("Mod")
class Mod(TorchOperator):
    """The remainder by `divisor`, with the sign of the element (`sign_follow_divisor`: its own)."""

    def RunOnDevice(self) -> None:
        x = self.x(0, INTS)
        divisor = self.GetSingleArgument("divisor", 0)
        enforce(divisor != 0, "The argument divisor must not be 0.")
        follow = self.GetSingleArgument("sign_follow_divisor", False)
        function = torch.remainder if follow else torch.fmod
        function(x, divisor, out=self.out(0, x.shape, self.Input(0).dtype()))


@register_operator("IsNaN")
class IsNaN(TorchOperator):
    """1 where an element is NaN, else 0, as uint8."""

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOATS)
        self.out(0, x.shape, c10.uint8).copy_(torch.isnan(x))


@register_operator("ReplaceNaN")
class ReplaceNaN(TorchOperator):
    """Input 0 with NaN replaced by `value` (0)."""

    def RunOnDevice(self) -> None:
        x, out = self.x_and_out(FLOATS)
        value = self.GetSingleArgument("value", 0.0)
        torch.nan_to_num(x, value, float("inf"), float("-inf"), out=out)


@register_operator("Scale")
class Scale(TorchOperator):
    """Each element times `scale` (1)."""

    def RunOnDevice(self) -> None:
        x, out = self.x_and_out(FLOATS)
        torch.mul(x, self.GetSingleArgument("scale", 1.0), out=out)


@register_operator("Clip")
class Clip(TorchOperator):
    """Each element clamped to [`min`, `max`]."""

    def RunOnDevice(self) -> None:
        x, out = self.x_and_out(FLOAT)
        torch.clamp(x, *self.limits(), out=out)

    def limits(self) -> tuple[float, float]:
        """Return the arguments `min` and `max`; by default the limits of float32."""
        low, high = self.GetSingleArgument("min", -LARGEST), self.GetSingleArgument("max", LARGEST)
        return low, high


@register_operator("EnsureClipped")
class EnsureClipped(Clip):
    """Clip in place; with inputs 1 and 2, indices and a gradient, only rows at the indices."""

    def RunOnDevice(self) -> None:
        if self.InputSize() == 1:
            super().RunOnDevice()
            return
        x, indices, gradient = self.x(0, FLOAT), self.x(1, INTS), self.x(2)
        rows = x.numel() // max(x.size(0), 1)
        enforce(
            gradient.numel() == rows * indices.numel(),
            f"The gradient has {gradient.numel()} elements, not {indices.numel()} rows of {rows}.",
        )
        places = row_indices(indices, x.size(0))
        low, high = self.limits()
        clipped = x.index_select(0, places).clamp_(low, high)
        self.out(0, x.shape, c10.float32).index_copy_(0, places, clipped)


@register_operator("ClipTensorByScaling")
class ClipTensorByScaling(TorchOperator):
    """Input 0 scaled down by `threshold` / norm (input 1), if the norm exceeds the threshold.

    Input 2, if there is one, multiplies the threshold.
    """

    def RunOnDevice(self) -> None:
        x, norm = self.x(0, FLOAT), self.x(1, FLOAT)
        enforce(x.numel() > 0, "Input 0 must not be empty.")
        enforce(norm.numel() == 1, "The norm must have one element.")
        threshold = self.GetSingleArgument("threshold", 0.0)
        enforce(threshold > 0, "The argument threshold must be positive.")
        if self.InputSize() > 2:
            extra = self.x(2, FLOAT)
            enforce(extra.numel() == 1, "The factor of the threshold must have one element.")
            threshold *= extra.item()
        out = self.out(0, x.shape, c10.float32)
        if norm.item() > threshold:
            torch.mul(x, threshold / norm.item(), out=out)
        elif not self._in_place:
            out.copy_(x)


@register_operator("Accumulate")
class Accumulate(TorchOperator):
    """Input 0 plus `gamma` (1) times the output's former elements, if it has the same sizes."""

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        before = self.Output(0)
        known = before.dtype() is c10.float32 and before.storage_initialized()
        if not known or list(before.sizes()) != list(x.shape):
            self.out(0, x.shape, c10.float32).copy_(x)
            return
        gamma = self.GetSingleArgument("gamma", 1.0)
        self.out(0, x.shape, c10.float32).mul_(gamma).add_(x)
