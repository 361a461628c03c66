# SPDX-License-Identifier: Apache-2.0
"""Softmax with cross entropy in one operator, of rows and of images."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import INT32
from bridge.caffe2.operators.layers.matrix_products import as_matrix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from torch import Tensor

__all__ = ["SoftmaxWithLoss", "SpatialSoftmaxWithLoss"]


class RowLoss(FloatOperator):
    """The base class of SoftmaxWithLoss and its gradient.

    Arguments: `axis` (1); `scale` of the loss (1); `label_prob` (0): labels are probabilities of
    each class; `average_by_batch_size` (0): divide by N instead of the sum of the weights.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.scale = self.GetSingleArgument("scale", 1.0)
        self.enforce(self.scale >= 0, "scale is not negative", self.scale)
        self.enforce(self.image_order() == "NCHW", "order is NCHW")

    def targets(self, rows: Tensor, axis: int, weight: int) -> tuple[Tensor, Tensor]:
        """Return the probability of each class (N, D) and the weight of each row (N, 1).

        The weights are input 2 if there are more than `weight` inputs.
        """
        n, classes = rows.shape
        if self.GetSingleArgument("label_prob", 0):
            label = self.x(1)
            self.enforce(
                label.numel() == rows.numel(), "the labels have the shape of X", label, rows
            )
            target = label.view(rows.shape)
            sums = target.sum(1)
            fine = bool((target >= 0).all()) and bool(((sums - 1).abs() < 1e-5).all())
            self.enforce(fine, "the labels of a row are probabilities that add up to 1")
        else:
            label = self.x(1, INT32)
            self.enforce(label.numel() == n, "there is one label per row", label, rows)
            self.enforce_range("labels", label, classes)
            target = torch.zeros_like(rows).scatter_(1, label.view(-1, 1).long(), 1)
        if self.InputSize() <= weight:
            return target, rows.new_ones(n, 1)
        weights = self.x(2)
        self.enforce(weights.numel() == n, "there is one weight per row", weights, rows)
        return target, weights.view(-1, 1)

    def share(self, weights: Tensor) -> float:
        """Return the factor of the sum of the losses."""
        total = float(weights.sum())
        if self.GetSingleArgument("average_by_batch_size", 0):
            total = float(weights.numel()) if total else 0.0
        return self.scale / total if total else 0.0


@register_operator("SoftmaxWithLoss")
class SoftmaxWithLoss(RowLoss):
    """(X: (N..., D...), labels, optionally weights: (N)) -> softmax of X, mean loss ().

    Labels are int32 (N), or probabilities (N, D) with `label_prob`; see RowLoss.
    Raises EnforceNotMet: a label is out of range, or probabilities do not add up to 1.
    Follows SoftmaxWithLossOp, caffe2/operators/softmax_with_loss_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        axis = self.axis(x, "axis", 1)
        rows = as_matrix(x, axis)
        target, weights = self.targets(rows, axis, 2)
        logs = torch.log_softmax(rows, 1)
        loss = -(torch.where(target > 0, target * logs, logs.new_zeros(())) * weights).sum()
        self.put(0, logs.exp_().view(x.shape))
        self.put(1, loss * self.share(weights))


@register_operator("SoftmaxWithLossGradient")
class SoftmaxWithLossGradient(RowLoss):
    """(X, labels, optionally weights, P, dloss: ()) -> dX; see RowLoss.

    Follows SoftmaxWithLossGradientOp, caffe2/operators/softmax_with_loss_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        last = self.InputSize() - 1
        p, dloss = self.x(last - 1), self.x(last)
        axis = self.axis(p, "axis", 1)
        rows = as_matrix(p, axis)
        target, weights = self.targets(rows, axis, 4)
        self.enforce(dloss.numel() == 1, "the gradient of the loss has one element", dloss)
        dx = (rows - target) * weights * (dloss.view(()) * self.share(weights))
        self.put(0, dx.view(p.shape))


class ImageLoss(FloatOperator):
    """The base class of SpatialSoftmaxWithLoss and its gradient.

    Argument: `scale` (1), of the gradient.
    """

    def operands(self, x: Tensor, weighted: bool) -> tuple[Tensor, Tensor]:
        """Return the labels as indices (N, 1, H, W), and the weights; 0 for label -1."""
        label = self.x(1, INT32)
        self.enforce(
            x.dim() == 4 and label.dim() == 3,
            "X has sizes (N, D, H, W) and the labels have (N, H, W)",
        )
        self.enforce(
            label.shape == (x.shape[0], *x.shape[2:]), "there is one label per pixel", label, x
        )
        weights = torch.ones_like(label, dtype=x.dtype)
        if weighted:
            weights = self.x(2)
            self.enforce(weights.numel() == label.numel(), "there is one weight per pixel")
        self.enforce_range("labels", label, x.shape[1], start=-1)
        kept = weights.view(label.shape) * (label != -1)
        return label.unsqueeze(1).long().clamp_(min=0), kept.unsqueeze(1)


@register_operator("SpatialSoftmaxWithLoss")
class SpatialSoftmaxWithLoss(ImageLoss):
    """(X: (N, D, H, W), labels: (N, H, W), optionally weights) -> softmax, mean loss ().

    The softmax is over D. Labels are int32; pixels with label -1 are ignored.
    Follows SpatialSoftmaxWithLossOp, caffe2/operators/spatial_softmax_with_loss_op.cc, PyTorch
    1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        label, weights = self.operands(x, self.InputSize() == 3)
        logs = torch.log_softmax(x, 1)
        total = weights.sum()
        loss = -(logs.gather(1, label) * weights).sum()
        self.put(0, logs.exp_())
        # Only the gradient is scaled in Caffe2.
        self.put(1, loss / total if float(total) else torch.zeros(()))


@register_operator("SpatialSoftmaxWithLossGradient")
class SpatialSoftmaxWithLossGradient(ImageLoss):
    """(X, labels, optionally weights, P, dloss: ()) -> dX."""

    def RunOnDevice(self) -> None:
        last = self.InputSize() - 1
        p, dloss = self.x(last - 1), self.x(last)
        label, weights = self.operands(p, last == 4)
        total = float(weights.sum())
        dx = torch.scatter_add(p, 1, label, -p.new_ones(label.shape)) * weights
        scale = self.GetSingleArgument("scale", 1.0)
        self.put(0, dx * (dloss.view(()) * scale / total) if total else dx)
