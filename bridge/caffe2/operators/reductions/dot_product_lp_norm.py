# SPDX-License-Identifier: Apache-2.0
"""DotProductWithPadding and LpNorm, with their gradients."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import functional, torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["DotProductWithPadding", "LpNorm"]


class Padded(FloatOperator):
    """The base class of DotProductWithPadding and its gradient.

    Arguments: `pad_value` (0), which shorter rows are filled up with; `replicate` (False): shorter
    rows are repeated instead.
    """

    def rows(self) -> tuple[Tensor, Tensor]:
        """Return X and Y as matrices, each with its own width."""
        x, y = self.x(0), self.x(1)
        self.enforce(
            x.dim() == y.dim() > 0, "X and Y have the same number of dimensions, at least one", x, y
        )
        self.enforce(x.shape[0] == y.shape[0], "X and Y have the same number of rows", x, y)
        x, y = (one.reshape(one.shape[0], one.shape[1:].numel()) for one in (x, y))
        self.replicate = bool(self.GetSingleArgument("replicate", False))
        if self.replicate:
            self.enforce(min(x.shape[1], y.shape[1]) > 0, "rows to repeat are not empty", x, y)
        return x, y

    def filled(self, rows: Tensor, width: int) -> Tensor:
        """Return the rows padded or repeated to `width`."""
        if self.replicate:
            return rows.repeat(1, width // rows.shape[1])
        pad = self.GetSingleArgument("pad_value", 0.0)
        padded: Tensor = functional.pad(rows, (0, width - rows.shape[1]), value=pad)
        return padded


@register_operator("DotProductWithPadding")
class DotProductWithPadding(Padded):
    """(X: (N, ...), Y: (N, ...)) -> the sum of X * Y per row (N), shorter rows padded.

    Follows DotProductWithPaddingOp, caffe2/operators/distance_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        if not self.Input(0).numel():
            self.out(0, (0,))  # as in Caffe2, whatever the number of rows
            return
        x, y = self.rows()
        width = max(x.shape[1], y.shape[1])
        if self.replicate:  # a multiple of the shorter row
            width -= width % min(x.shape[1], y.shape[1])
        products = self.filled(x[:, :width], width) * self.filled(y[:, :width], width)
        torch.sum(products, 1, out=self.out(0, x.shape[:1]))


@register_operator("DotProductWithPaddingGradient")
class DotProductWithPaddingGradient(Padded):
    """(X, Y, dZ: (N)) -> dX, dY."""

    def RunOnDevice(self) -> None:
        x, y = self.rows()
        short, long = sorted((x.shape[1], y.shape[1]))
        if self.replicate:
            self.enforce(long % short == 0, "one row length divides the other", x, y)
        dz = self.x(2).view(-1, 1)
        width = max(x.shape[1], y.shape[1])
        dx, dy = dz * self.filled(y, width), dz * self.filled(x, width)
        self.put(0, self.folded(dx, x).view(self.x(0).shape))
        self.put(1, self.folded(dy, y).view(self.x(1).shape))

    def folded(self, gradient: Tensor, rows: Tensor) -> Tensor:
        """Return the gradient of widened rows as that of `rows`."""
        width = rows.shape[1]
        if self.replicate:
            times = gradient.shape[1] // width
            return gradient.view(rows.shape[0], times, width).sum(1)
        return gradient[:, :width].contiguous()


class Norm(FloatOperator):
    """The base class of LpNorm and its gradient."""

    def power(self) -> int:
        """Return the argument `p`, 1 or 2."""
        p: int = self.GetSingleArgument("p", 2)
        self.enforce(p in (1, 2), "p is 1 or 2", p)
        return p

    def scale(self, x: Tensor) -> float:
        """Return 1, or 1 / the number of elements if the argument `average` is set."""
        return 1 / x.numel() if self.GetSingleArgument("average", False) and x.numel() else 1.0


@register_operator("LpNorm")
class LpNorm(Norm):
    """Y (1) = the sum of |X|^p, without a root; arguments `p` (2), `average` (False).

    Follows LpNormOp, caffe2/operators/lpnorm_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        p, x = self.power(), self.x(0).reshape(-1)
        total = torch.dot(x, x) if p == 2 else x.abs().sum()
        self.put(0, total.mul_(self.scale(x)).view(1))


@register_operator("LpNormGradient")
class LpNormGradient(Norm):
    """(X, dY: (1)) -> dX."""

    def RunOnDevice(self) -> None:
        p, x, dy = self.power(), self.x(0), self.x(1)
        self.enforce(dy.numel() == 1, "the gradient has one element", dy)
        slope = x.sign() if p == 1 else 2 * x
        torch.mul(slope, dy.view(()) * self.scale(x), out=self.out(0, x.shape))
