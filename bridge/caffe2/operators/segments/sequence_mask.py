# SPDX-License-Identifier: Apache-2.0
"""SequenceMask: elements of sequences masked."""

from __future__ import annotations

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOAT, INT32, TorchOperator, enforce

__all__: list[str] = []


@register_operator("SequenceMask")
class SequenceMask(TorchOperator):
    """Set masked elements of the rows of a tensor to `fill_val` (-inf).

    The argument `mode` is sequence: from the length of the row on, input 1; window: farther than
    `radius` from the center, input 1; upper, lower, upperdiag, lowerdiag: above or below the
    diagonal, exclusive or inclusive. Rows are the dimensions before `axis`, or from `batch` to it;
    columns end before `repeat_from_axis`.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        mode = self.GetSingleArgument("mode", "")
        fill = self.GetSingleArgument("fill_val", float("-inf"))
        if self.GetSingleArgument("grad", False):
            fill = 0.0
        axis = self._dim("axis", 1, x)
        rows, columns, batch = x.shape[:axis].numel(), x.shape[axis:].numel(), 1
        if self.HasArgument("batch"):
            from_dim = self._dim("batch", 0, x)
            enforce(from_dim < axis, "The argument batch must be less than axis.")
            batch = x.shape[: from_dim + 1].numel()
            rows //= max(batch, 1)
        inner = 1
        if self.HasArgument("repeat_from_axis"):
            repeat = self._dim("repeat_from_axis", -1, x)
            enforce(
                mode == "sequence" and batch == 1,
                "repeat_from_axis needs the mode sequence, without batch.",
            )
            enforce(repeat >= axis, f"repeat_from_axis must be at least axis, {axis}.")
            inner = x.shape[repeat:].numel()
            columns = x.shape[axis:repeat].numel()
        i, j = torch.arange(rows)[:, None], torch.arange(columns)
        if mode in ("sequence", "window"):
            enforce(self.InputSize() == 2, f"The mode {mode} needs an input 1.")
            given = self.x(1, INT32).reshape(-1)
            if len(given) < rows:
                raise EnforceNotMet(
                    f"Input 1 has {len(given)} elements, but there are {rows} rows."
                )
            given = given[:rows]
            if mode == "sequence":
                out = j >= given[:, None]
            else:
                out = (j - given[:, None]).abs() > self.GetSingleArgument("radius", 10)
        elif mode in ("upper", "lower", "upperdiag", "lowerdiag"):
            out = {"upper": j > i, "lower": j < i, "upperdiag": j >= i, "lowerdiag": j <= i}[mode]
        else:
            raise EnforceNotMet(f"There is no mode {mode!r}.")
        parts = x.reshape(batch, rows, columns, inner)
        masked = parts.masked_fill(out[:, :, None], fill)
        self.put(0, masked.reshape(x.shape))

    def _dim(self, name: str, default: int, x: torch.Tensor) -> int:
        dim = self.GetSingleArgument(name, default)
        enforce(
            -x.dim() <= dim < x.dim(), f"{name}, {dim}, is out of range for {x.dim()} dimensions."
        )
        return int(dim % x.dim())
