# SPDX-License-Identifier: Apache-2.0
"""Distances and similarities of pairs of rows, and their gradients."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__: list[str] = []


class Pairwise(FloatOperator):
    """(X, Y), both (N, ...) -> a value per pair of rows (N).

    Raises EnforceNotMet: X and Y have different shapes.
    Follows the operators in caffe2/operators/distance_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, y = self.x(0), self.x(1)
        self.enforce(x.shape == y.shape, "X and Y have the same shape", x, y)
        rows = x.shape[0] if x.dim() else 1
        out = self.out(0, (rows,))
        if x.numel() == 0:
            out.zero_()
        else:
            self.compare(x.view(rows, -1), y.view(rows, -1), out)

    def compare(self, x: Tensor, y: Tensor, out: Tensor) -> None:
        """Compare matrices row by row into `out`."""
        raise NotImplementedError


@register_operator("SquaredL2Distance")
class SquaredL2Distance(Pairwise):
    """Half the sum of (X - Y)^2; see Pairwise."""

    def compare(self, x: Tensor, y: Tensor, out: Tensor) -> None:
        torch.sum((x - y).square_(), 1, out=out).mul_(0.5)


@register_operator("L1Distance")
class L1Distance(Pairwise):
    """The sum of |X - Y|; see Pairwise."""

    def compare(self, x: Tensor, y: Tensor, out: Tensor) -> None:
        torch.sum((x - y).abs_(), 1, out=out)


@register_operator("DotProduct")
class DotProduct(Pairwise):
    """The sum of X * Y; see Pairwise. The output of empty rows is empty."""

    def RunOnDevice(self) -> None:
        x, y = self.x(0), self.x(1)
        if x.dim() and x.shape == y.shape and x.numel() == 0:
            self.out(0, (0,))
        else:
            super().RunOnDevice()

    def compare(self, x: Tensor, y: Tensor, out: Tensor) -> None:
        torch.sum(x * y, 1, out=out)


@register_operator("CosineSimilarity")
class CosineSimilarity(Pairwise):
    """The sum of X * Y over the norms of X and Y, which are at least 1e-6; see Pairwise."""

    def compare(self, x: Tensor, y: Tensor, out: Tensor) -> None:
        torch.sum(x * y, 1, out=out).mul_(inverse_norm(x)).mul_(inverse_norm(y))


def inverse_norm(rows: Tensor) -> Tensor:
    """Return 1 / the norm of each row; the square of the norm is at least 1e-12."""
    return rows.square().sum(1).clamp_(min=1e-12).rsqrt_()


class PairwiseGradient(FloatOperator):
    """The gradients of a Pairwise operator: (X, Y, dZ: (N)) -> dX, dY."""

    def RunOnDevice(self) -> None:
        x, y, dz = self.x(0), self.x(1), self.x(2)
        rows = x.shape[0] if x.dim() else 1
        self.enforce(x.shape == y.shape, "X and Y have the same shape", x, y)
        self.enforce(dz.shape == (rows,), "there is one gradient per row", dz)
        if x.numel() == 0:
            self.out(0, x.shape)
            self.out(1, x.shape)
            return
        dx, dy = self.spread(x.view(rows, -1), y.view(rows, -1), dz.unsqueeze(1))
        self.put(0, dx.view(x.shape))
        self.put(1, dy.view(x.shape))

    def spread(self, x: Tensor, y: Tensor, dz: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients of matrices; dz: (N, 1)."""
        raise NotImplementedError


@register_operator("SquaredL2DistanceGradient")
class SquaredL2DistanceGradient(PairwiseGradient):
    """dX = (X - Y) * dZ, dY = -dX."""

    def spread(self, x: Tensor, y: Tensor, dz: Tensor) -> tuple[Tensor, Tensor]:
        dx = (x - y).mul_(dz)
        return dx, -dx


@register_operator("L1DistanceGradient")
class L1DistanceGradient(PairwiseGradient):
    """dX = dZ where X - Y > 1e-12, -dZ where it is < -1e-12, else 0; dY = -dX."""

    def spread(self, x: Tensor, y: Tensor, dz: Tensor) -> tuple[Tensor, Tensor]:
        apart = x - y
        dx = torch.where(apart.abs() <= 1e-12, 0.0, apart.sign()) * dz
        return dx, -dx


@register_operator("DotProductGradient")
class DotProductGradient(PairwiseGradient):
    """dX = Y * dZ, dY = X * dZ."""

    def spread(self, x: Tensor, y: Tensor, dz: Tensor) -> tuple[Tensor, Tensor]:
        return y * dz, x * dz


@register_operator("CosineSimilarityGradient")
class CosineSimilarityGradient(PairwiseGradient):
    """dX = dZ * (Y / (|X| |Y|) - X * X.Y / (|X|^3 |Y|)), dY likewise."""

    def spread(self, x: Tensor, y: Tensor, dz: Tensor) -> tuple[Tensor, Tensor]:
        ix, iy = inverse_norm(x).unsqueeze(1), inverse_norm(y).unsqueeze(1)
        inner = (x * y).sum(1, keepdim=True)
        scale = dz * ix * iy
        dx = scale * y - scale * inner * ix * ix * x
        dy = scale * x - scale * inner * iy * iy * y
        return dx, dy
