# SPDX-License-Identifier: Apache-2.0
"""Distances and similarities of pairs of rows, and their gradients.

(X, Y), both (N, ...) -> a value per pair of rows (N); the gradients are (X, Y, dZ: (N)) -> dX, dY.
They raise EnforceNotMet if X and Y have different shapes.
Follows the operators in caffe2/operators/distance_op.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_few
from bridge.caffe2.operators.layers import layer_kernels


def _pairs(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return X and Y as matrices, with one row if they have no dimensions."""
    require(x.shape == y.shape, "X and Y have the same shape", x, y)
    rows = x.shape[0] if x.dim() else 1
    if x.numel() == 0:  # the sizes of the rows do not matter, and may be 0
        return x.new_zeros((rows, 1)), y.new_zeros((rows, 1))
    return x.view(rows, -1), y.view(rows, -1)


def _declare(
    name: str, formula: str, kind: str, by_torch: Callable[[Tensor, Tensor, Out], Tensor]
) -> None:
    """Declare an operator; `kind`: that of `layer_kernels.compare`."""

    def compute(x: Tensor, y: Tensor, *, out: Out = None) -> Tensor:
        if kind == "product" and x.dim() and x.shape == y.shape and x.numel() == 0:
            return x.new_empty((0,))  # as Caffe2 has it
        x, y = _pairs(x, y)
        if takes_few(x, y):
            z = x.new_empty(x.shape[0]) if out is None else out
            return run_kernel(layer_kernels.compare, z, x, y, *x.shape, kind)
        return by_torch(x, y, out)

    compute.__doc__ = f"{formula}."
    compute.__name__ = compute.__qualname__ = name
    operator(name, gradient="$Gradient i0 i1 g0 > 0 1")(compute)


_declare(
    "SquaredL2Distance",
    "Half the sum of (X - Y)^2",
    "square",
    lambda x, y, out: torch.mul(torch.square(x - y).sum(1), 0.5, out=out),
)
_declare(
    "L1Distance",
    "The sum of |X - Y|",
    "absolute",
    lambda x, y, out: torch.sum(torch.abs(x - y), 1, out=out),
)
_declare(
    "DotProduct",
    "The sum of X * Y; that of empty rows is empty",
    "product",
    lambda x, y, out: torch.sum(x * y, 1, out=out),
)
_declare(
    "CosineSimilarity",
    "The sum of X * Y over the norms of X and Y, which are at least 1e-6",
    "cosine",
    lambda x, y, out: torch.mul((x * y).sum(1) * _inverse_norm(x), _inverse_norm(y), out=out),
)


def _inverse_norm(rows: Tensor) -> Tensor:
    """Return 1 / the norm of each row; the square of the norm is at least 1e-12."""
    return torch.rsqrt(torch.linalg.vector_norm(rows, dim=1).square().clamp(min=1e-12))


def _gradient_pairs(x: Tensor, y: Tensor, dz: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return X and Y as matrices, and dZ (N, 1)."""
    require(x.shape == y.shape, "X and Y have the same shape", x, y)
    rows = x.shape[0] if x.dim() else 1
    require(dz.shape == (rows,), "there is one gradient per row", dz)
    width = x.numel() // max(rows, 1)
    return x.reshape(rows, width), y.reshape(rows, width), dz.unsqueeze(1)


@operator("SquaredL2DistanceGradient")
def squared_l2_distance_gradient(
    x: Tensor, y: Tensor, dz: Tensor, *, out: Out = None
) -> tuple[Tensor, Tensor]:
    """dX = (X - Y) * dZ, dY = -dX."""
    a, b, dz = _gradient_pairs(x, y, dz)
    if takes_few(a, b, dz):
        dx, dy = (torch.empty_like(x), torch.empty_like(y)) if out is None else out
        return run_kernel(layer_kernels.half_square_gradient, dx, dy, a, b, dz, *a.shape), dy
    dx = ((a - b) * dz).view(x.shape)
    return dx, -dx


@operator("L1DistanceGradient")
def l1_distance_gradient(x: Tensor, y: Tensor, dz: Tensor) -> tuple[Tensor, Tensor]:
    """dX = dZ where X - Y > 1e-12, -dZ where it is < -1e-12, else 0; dY = -dX."""
    a, b, dz = _gradient_pairs(x, y, dz)
    apart = a - b
    dx = (torch.sign(apart) * (torch.abs(apart) > 1e-12) * dz).view(x.shape)
    return dx, -dx


@operator("DotProductGradient")
def dot_product_gradient(x: Tensor, y: Tensor, dz: Tensor) -> tuple[Tensor, Tensor]:
    """dX = Y * dZ, dY = X * dZ."""
    a, b, dz = _gradient_pairs(x, y, dz)
    return (b * dz).view(x.shape), (a * dz).view(x.shape)


@operator("CosineSimilarityGradient")
def cosine_similarity_gradient(x: Tensor, y: Tensor, dz: Tensor) -> tuple[Tensor, Tensor]:
    """dX = dZ * (Y / (|X| |Y|) - X * X.Y / (|X|^3 |Y|)), dY likewise."""
    a, b, dz = _gradient_pairs(x, y, dz)
    ia, ib = _inverse_norm(a).unsqueeze(1), _inverse_norm(b).unsqueeze(1)
    inner = (a * b).sum(1, keepdim=True)
    scale = dz * ia * ib
    dx = scale * b - scale * inner * ia * ia * a
    dy = scale * a - scale * inner * ib * ib * b
    return dx.view(x.shape), dy.view(x.shape)
