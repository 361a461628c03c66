# SPDX-License-Identifier: Apache-2.0
"""Ftrl (follow the regularized leader): steps on whole tensors, by element or by group."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import require, single
from bridge.caffe2.operators.base.cpu_kernels import takes_few
from bridge.caffe2.operators.training import step_kernels
from bridge.caffe2.operators.training.optimizers import (
    alike,
    all_of,
    learning_rate_of,
    stepped,
    written,
)


class FtrlSettings:
    """Arguments `alpha` (0.005), `beta` (1), `lambda1`, `lambda2` (0.001); `grouped`: GFtrl."""

    takes = "float alpha, float beta, float lambda1, float lambda2"

    def __init__(self, arguments: Arguments) -> None:
        self.grouped = arguments.type == "GFtrl"
        self.has_alpha = arguments.has("alpha")
        self.reciprocal = 1 / single(arguments.single("alpha", 0.005))
        self.beta = arguments.single("beta", 1.0)
        self.lambda1 = single(arguments.single("lambda1", 0.001))
        self.lambda2 = single(arguments.single("lambda2", 0.001))

    def inverse(self, alpha: Tensor | None) -> Tensor | float:
        """Return 1 / alpha, of the input if it is given."""
        require(alpha is None or not self.has_alpha, "alpha is an input or an argument")
        if alpha is None:
            return self.reciprocal
        return torch.reciprocal(learning_rate_of(alpha).double())

    def for_kernel(self, alpha: Tensor | None) -> tuple[Any, ...]:
        """Return the settings for the kernel, which reads `alpha` itself if it is given."""
        inverse = self.inverse(alpha) if alpha is None else 1.0
        return inverse, self.beta, self.lambda1, self.lambda2


def ftrl_step(
    w: Tensor,
    n: Tensor,
    z: Tensor,
    g: Tensor,
    alpha: Tensor | None,
    settings: FtrlSettings,
    matrix: tuple[int, int] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return parameters, n and z after a step; `alpha` is an input.

    With `matrix`, the sizes of the parameters as a matrix, its columns are groups.
    """
    inverse, lambda1 = settings.inverse(alpha), settings.lambda1
    grown = n + g * g
    z = z + g - (grown.sqrt() - n.sqrt()) * inverse * w
    low = (settings.beta + grown.sqrt()) * inverse + settings.lambda2
    if matrix is not None:
        grouped = z.view(matrix)
        norm, least = grouped.norm(dim=0), lambda1 * matrix[0] ** 0.5
        new = grouped * (least / norm - 1) / low.view(matrix)
        return new.masked_fill(norm <= least, 0), grown, z
    new = (lambda1 * z.sign() - z) / low
    return new.masked_fill(~(z.abs() > lambda1), 0), grown, z


@operator("Ftrl", inplace="0>0,1>1", gradient="undefined", outputs=2)
@operator("GFtrl", inplace="0>0,1>1", gradient="undefined", outputs=2)
def ftrl(
    var: Tensor,
    n_z: Tensor,
    grad: Tensor,
    alpha: Tensor | None = None,
    *,
    settings: FtrlSettings,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(parameters, pairs of n and z, gradient, optionally alpha) -> parameters, pairs.

    GFtrl is that of groups: each column of parameters is 0 or not as a whole.
    Follows FtrlOp, caffe2/sgd/ftrl_op.cc, and GFtrlOp, caffe2/sgd/gftrl_op.cc, PyTorch 1.8.1.
    """
    matrix = None
    if settings.grouped:
        require(var.dim() > 0, "parameters have at least one dimension", var)
        matrix = (var.shape[0], var.shape[1:].numel())
    w, g = alike(var, grad)
    require(n_z.numel() == 2 * w.numel(), "there is one pair of n and z per parameter", n_z, w)
    if matrix is None and takes_few(w, n_z, g, *(() if alpha is None else (alpha,))):
        given = (None, g, alpha, *all_of(w), *settings.for_kernel(alpha))
        return stepped(step_kernels.ftrl, out, (var, n_z), *given)
    n, z = n_z.reshape(-1, 2).unbind(1)
    new, n, z = ftrl_step(w.view(-1), n, z, g.view(-1), alpha, settings, matrix)
    return written(out, new.view(w.shape), torch.stack([n, z], 1).view(n_z.shape))
