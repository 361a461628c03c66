# SPDX-License-Identifier: Apache-2.0
"""Ftrl (follow the regularized leader): steps on whole tensors, by element or by group."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.training.optimizers import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ftrl_step"]


@register_operator("Ftrl")
class Ftrl(Optimizer):
    """(parameters, pairs of n and z, gradient, optionally alpha) -> parameters, pairs.

    Arguments: `alpha` (0.005), `beta` (1), `lambda1`, `lambda2` (0.001).
    Follows FtrlOp, caffe2/sgd/ftrl_op.cc, PyTorch 1.8.1.
    """

    def given(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the parameters, their pairs of n and z, and the gradient."""
        w, g = self.alike(0, 2)
        pairs = self.x(1)
        self.enforce(
            pairs.numel() == 2 * w.numel(), "there is one pair of n and z per parameter", pairs, w
        )
        return w, pairs, g

    def RunOnDevice(self) -> None:
        w, pairs, g = self.given()
        n, z = pairs.view(-1, 2).unbind(1)
        new, n, z = ftrl_step(self, w.view(-1), n, z, g.view(-1), 3)
        self.store(new.view(w.shape), torch.stack([n, z], 1).view(pairs.shape))


@register_operator("GFtrl")
class GFtrl(Ftrl):
    """Ftrl of groups: each column of parameters is 0 or not as a whole.

    Follows GFtrlOp, caffe2/sgd/gftrl_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        w, pairs, g = self.given()
        self.enforce(w.dim() > 0, "parameters have at least one dimension", w)
        n, z = pairs.reshape(-1, 2).unbind(1)
        matrix = torch.Size([w.shape[0], w.shape[1:].numel()])
        new, n, z = ftrl_step(self, w.view(-1), n, z, g.view(-1), 3, matrix)
        self.store(new.view(w.shape), torch.stack([n, z], 1).view(pairs.shape))


def ftrl_step(
    op: Optimizer,
    w: Tensor,
    n: Tensor,
    z: Tensor,
    g: Tensor,
    alpha: int,
    matrix: torch.Size | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return parameters, n and z after a step; input `alpha`, if it exists, is alpha.

    With `matrix`, the sizes of the parameters as a matrix, its columns are groups.
    """
    given = op.InputSize() > alpha
    op.enforce(not (given and op.HasArgument("alpha")), "alpha is an input or an argument")
    inverse = 1 / (float(op.rate(alpha)) if given else op.single("alpha", 0.005))
    lambda1 = op.single("lambda1", 0.001)
    grown = n + g * g
    z = z + g - (grown.sqrt() - n.sqrt()) * inverse * w
    low = (op.single("beta", 1.0) + grown.sqrt()) * inverse + op.single("lambda2", 0.001)
    if matrix is not None:
        grouped = z.view(matrix)
        norm, least = grouped.norm(dim=0), lambda1 * matrix[0] ** 0.5
        new = grouped * (least / norm - 1) / low.view(matrix)
        return new.masked_fill(norm <= least, 0), grown, z
    new = (lambda1 * z.sign() - z) / low
    return new.masked_fill(~(z.abs() > lambda1), 0), grown, z
