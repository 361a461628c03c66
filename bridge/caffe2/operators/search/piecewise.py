# SPDX-License-Identifier: Apache-2.0
"""Functions defined by pieces: StumpFunc, StumpFuncIndex, PiecewiseLinearTransform."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOAT, TorchOperator, enforce

__all__: list[str] = []


@register_operator("StumpFunc")
class StumpFunc(TorchOperator):
    """`low_value` where an element is at most `threshold`, else `high_value`."""

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        low = self.GetSingleArgument("low_value", 0.0)
        high = self.GetSingleArgument("high_value", 0.0)
        below = x <= self.GetSingleArgument("threshold", 0.0)
        self.put(0, torch.where(below, low, high).to(torch.float32))


@register_operator("StumpFuncIndex")
class StumpFuncIndex(TorchOperator):
    """The indices of elements that are at most `threshold`, and of the others."""

    def RunOnDevice(self) -> None:
        below = self.x(0, FLOAT).reshape(-1) <= self.GetSingleArgument("threshold", 0.0)
        self.put(0, below.nonzero().view(-1))
        self.put(1, (~below).nonzero().view(-1))


@register_operator("PiecewiseLinearTransform")
class PiecewiseLinearTransform(TorchOperator):
    """slope * x + intercept of the piece between `bounds` that x is in, per column.

    `bounds`, `slopes` and `intercepts` are arguments, or inputs 1 to 3. With `binary` there is one
    list, for the last column; the first one is 1 minus it.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        given = [self.GetRepeatedArgument(name) for name in ("bounds", "slopes", "intercepts")]
        enforce(
            all(given) or not any(given),
            "bounds, slopes and intercepts must all be set, or none of them.",
        )
        if all(given):
            enforce(self.InputSize() == 1, "The pieces are arguments or inputs, not both.")
            tables = [torch.tensor(one, dtype=torch.float32) for one in given]
        else:
            enforce(self.InputSize() == 4, "The pieces must be arguments or inputs 1 to 3.")
            tables = [self.x(i, FLOAT).reshape(-1) for i in (1, 2, 3)]
        bounds, slopes, intercepts = tables
        groups = len(bounds) - len(slopes)
        enforce(
            len(slopes) == len(intercepts)
            and groups > 0
            and len(slopes) >= groups
            and len(slopes) % groups == 0,
            f"{len(bounds)} bounds, {len(slopes)} slopes and {len(intercepts)} intercepts do not "
            "match.",
        )
        bounds = bounds.view(groups, -1)
        enforce(bool((bounds.diff(dim=1) >= 0).all()), "The bounds must be sorted.")
        slopes, intercepts = slopes.view(groups, -1), intercepts.view(groups, -1)
        if self.GetSingleArgument("binary", False):
            enforce(groups == 1, "With binary, there must be one list of pieces.")
            enforce(
                x.dim() == 1 or (x.dim() == 2 and x.size(1) in (1, 2)),
                "With binary, input 0 must have one or two columns.",
            )
            columns = x.reshape(len(x), -1)
            last = self._column(columns[:, -1], bounds[0], slopes[0], intercepts[0])
            parts = [last] if columns.size(1) == 1 else [1 - last, last]
        else:
            enforce(
                x.dim() == 2 and x.size(1) == groups,
                "There must be one list of pieces per column of the matrix input 0.",
            )
            parts = [
                self._column(x[:, i], bounds[i], slopes[i], intercepts[i]) for i in range(groups)
            ]
        self.put(0, torch.stack(parts, 1).reshape(x.shape))

    def _column(
        self, x: torch.Tensor, bounds: torch.Tensor, slopes: torch.Tensor, intercepts: torch.Tensor
    ) -> torch.Tensor:
        inside = x.clamp(bounds[0], bounds[-1])
        piece = (torch.bucketize(x.contiguous(), bounds) - 1).clamp(0, len(slopes) - 1)
        return slopes[piece] * inside + intercepts[piece]
