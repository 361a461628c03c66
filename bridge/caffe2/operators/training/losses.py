# SPDX-License-Identifier: Apache-2.0
"""Losses of probabilities and logits against labels, and their gradients."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import INT32
from bridge.caffe2.operators.layers.matrix_products import as_matrix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["CrossEntropy", "LabelCrossEntropy", "MakeTwoClass"]

SMALLEST = 1e-20  # lower bound of probabilities before their logarithm


class Labelled(FloatOperator):
    """An operator on a matrix X (N, D) and int32 labels of its rows, in [0, D)."""

    def labelled(self) -> tuple[Tensor, Tensor]:
        """Return X as a matrix, and the labels as indices (N, 1)."""
        x, label = self.x(0), self.x(1, INT32)
        rows = as_matrix(x, 1) if x.dim() else x.view(1, 1)
        self.enforce(label.dim() in (1, 2), "the labels have one dimension", label)
        self.enforce(label.numel() == rows.shape[0], "there is one label per row", label, x)
        self.enforce_range("labels", label, rows.shape[1])
        return rows, label.view(-1, 1).long()


@register_operator("LabelCrossEntropy")
class LabelCrossEntropy(Labelled):
    """(X: (N, D), label: (N) of int32) -> -log(max(X at the label, 1e-20)): (N).

    Raises EnforceNotMet: a label is out of range.
    Follows LabelCrossEntropyOp, caffe2/operators/cross_entropy_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        rows, label = self.labelled()
        found = rows.gather(1, label).view(-1)
        self.put(0, found.clamp_(min=SMALLEST).log_().neg_())


@register_operator("LabelCrossEntropyGradient")
class LabelCrossEntropyGradient(Labelled):
    """(X, label, dY: (N)) -> dX."""

    def RunOnDevice(self) -> None:
        rows, label = self.labelled()
        dy = self.x(2).view(-1, 1)
        self.enforce(dy.shape == label.shape, "there is one gradient per row", dy)
        at = -dy / rows.gather(1, label).clamp_(min=SMALLEST)
        dx = self.out(0, self.x(0).shape).zero_()
        dx.view(rows.shape).scatter_(1, label, at)


@register_operator("CrossEntropy")
class CrossEntropy(FloatOperator):
    """(X: (N, D), label: (N, D)) -> -sum(label * log(max(X, 1e-20))) of each row (N).

    Follows CrossEntropyOp, caffe2/operators/cross_entropy_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, label = self.x(0), self.x(1)
        self.enforce(x.shape == label.shape, "X and the labels have the same shape", x, label)
        rows = as_matrix(x, 1) if x.dim() else x.view(1, 1)
        logs = rows.clamp(min=SMALLEST).log_()
        self.put(0, (logs * label.view(rows.shape)).sum(1).neg_())


@register_operator("CrossEntropyGradient")
class CrossEntropyGradient(FloatOperator):
    """(X, label, dY: (N)) -> dX."""

    def RunOnDevice(self) -> None:
        x, label = self.x(0), self.x(1)
        self.enforce(x.shape == label.shape, "X and the labels have the same shape", x, label)
        rows = as_matrix(x, 1) if x.dim() else x.view(1, 1)
        slope = -self.x(2).view(-1, 1) * label.view(rows.shape)
        self.put(0, (slope / rows.clamp(min=SMALLEST)).view(x.shape))


@register_operator("MakeTwoClass")
class MakeTwoClass(FloatOperator):
    """X: (N...) -> (N..., 2), 1 - X and X.

    Follows MakeTwoClassOp, caffe2/operators/cross_entropy_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        self.put(0, torch.stack((1 - x, x), -1))


@register_operator("MakeTwoClassGradient")
class MakeTwoClassGradient(FloatOperator):
    """dY: (N..., 2) -> dX: (N...)."""

    def RunOnDevice(self) -> None:
        dy = self.x(0)
        self.enforce(dy.dim() >= 1 and dy.shape[-1] == 2, "the last dimension of dY has size 2", dy)
        torch.sub(dy[..., 1], dy[..., 0], out=self.out(0, dy.shape[:-1]))


class Logits(FloatOperator):
    """The base class of the losses of sigmoids and their gradients.

    Arguments: `log_D_trick`, `unjoined_lr_loss` (False); at most one may be set.
    """

    first = 0

    def operands(self) -> list[Tensor]:
        """Return logits, targets and, if there are any, weights as matrices (N, D)."""
        inputs = [self.x(i) for i in range(self.first, self.InputSize())]
        logits = inputs[0]
        for other in inputs[1:]:
            self.enforce(
                other.shape == logits.shape, "the inputs have the same shape", other, logits
            )
        self.trick = bool(self.GetSingleArgument("log_D_trick", False))
        self.unjoined = bool(self.GetSingleArgument("unjoined_lr_loss", False))
        self.enforce(
            not (self.trick and self.unjoined), "log_D_trick and unjoined_lr_loss are not both set"
        )
        inner = logits.shape[-1] if logits.dim() else 1
        return [one.reshape(-1, inner) for one in inputs]


class LogitsLoss(Logits):
    """(logits: (N..., D), targets, optionally weights) -> the mean loss of each row (N...).

    The loss is the cross entropy of the sigmoid of the logits and the targets.
    Follows SigmoidCrossEntropyWithLogitsOp and WeightedSigmoidCrossEntropyWithLogitsOp,
    caffe2/operators/cross_entropy_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, t, *weights = self.operands()
        positive = (x >= 0).to(x.dtype)
        tail = torch.exp(x - 2 * x * positive).add_(1).log_()
        if self.trick:
            losses = (2 * t - 1) * (x - x * positive - tail)
        elif self.unjoined:
            losses = x * t + (t - 1) * x * positive - (1 - t) * tail
        else:
            losses = x * (t - positive) - tail
        for weight in weights:
            losses = losses * weight
        shape = self.x(self.first).shape
        self.put(0, losses.mean(1).neg_().view(shape[:-1]))


class LogitsGradient(Logits):
    """(dY: (N...), logits, targets, optionally weights) -> the gradient of the logits."""

    first = 1

    def RunOnDevice(self) -> None:
        x, t, *weights = self.operands()
        dy = self.x(0).reshape(-1, 1)
        if self.trick:
            slopes = (2 * t - 1) * torch.sigmoid(-x)
        elif self.unjoined:
            slopes = t - (1 - t) * torch.sigmoid(x)
        else:
            slopes = t - torch.sigmoid(x)
        for weight in weights:
            slopes = slopes * weight
        self.put(0, (slopes * (-dy / x.shape[1])).view(self.x(1).shape))


@register_operator("SigmoidCrossEntropyWithLogits")
class SigmoidCrossEntropyWithLogits(LogitsLoss):
    """LogitsLoss without weights."""


@register_operator("WeightedSigmoidCrossEntropyWithLogits")
class WeightedSigmoidCrossEntropyWithLogits(LogitsLoss):
    """LogitsLoss with weights."""


@register_operator("SigmoidCrossEntropyWithLogitsGradient")
class SigmoidCrossEntropyWithLogitsGradient(LogitsGradient):
    """LogitsGradient without weights."""


@register_operator("WeightedSigmoidCrossEntropyWithLogitsGradient")
class WeightedSigmoidCrossEntropyWithLogitsGradient(LogitsGradient):
    """LogitsGradient with weights."""
